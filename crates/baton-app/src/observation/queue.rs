//! `queue.stats`, `queue.list`, `queue.retry` and `queue.purge`: what waits, what failed, and what to do about it.

use baton_core::observation::{QueueStats, QueueStatus};
use baton_core::{ErrorCode, Fault, SessionId, Timestamp};
use baton_store::{QueueItem, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Context, Effect, Operation, store_fault};
use crate::page::limit_of;

const DEFAULT_LIMIT: u32 = 50;
/// How many items one call drops at the most.
const PURGE_BATCH: u32 = 10_000;

/// Counts the queue.
#[derive(Debug)]
pub struct ReadQueueStats;

/// Lists the queue.
#[derive(Debug)]
pub struct ListQueue;

/// Makes items that were given up wait again.
#[derive(Debug)]
pub struct RetryQueue;

/// Drops items with their raw output.
#[derive(Debug)]
pub struct PurgeQueue;

/// Nothing to be told.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReadQueueStatsParams {}

/// Which items.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListQueueParams {
    /// Of this status; those that were given up when left out.
    #[serde(default)]
    pub status: Option<QueueStatus>,
    /// Below this number: the last `id` of the page before.
    #[serde(default)]
    pub before: Option<i64>,
    /// How many at the most: 1 to 200, 50 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
}

/// Items of the queue, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListQueueOutput {
    /// The items.
    pub items: Vec<QueueItemView>,
    /// Pass it as `before` for the next page; `null` on the last one.
    pub next_before: Option<i64>,
}

/// An item of the queue. What is absent is `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueItemView {
    /// Its number.
    pub id: i64,
    /// The session whose tool it was.
    pub session_id: SessionId,
    /// The repository.
    pub repo: String,
    /// The tool.
    pub tool_name: String,
    /// The files that the tool was asked about.
    pub files_touched: Vec<String>,
    /// How far it has come.
    pub status: QueueStatus,
    /// How often it was tried.
    pub attempts: i64,
    /// What went wrong the last time.
    pub last_error: Option<String>,
    /// How long the raw output is.
    #[schemars(with = "i64")]
    pub raw_bytes: u64,
    /// When it was captured.
    pub created_at: Timestamp,
    /// When it is tried next.
    pub run_at: Timestamp,
    /// When it was done or given up.
    pub settled_at: Option<Timestamp>,
}

impl From<QueueItem> for QueueItemView {
    fn from(item: QueueItem) -> Self {
        Self {
            id: item.id,
            session_id: item.session_id,
            repo: item.repo.into(),
            tool_name: item.tool_name,
            files_touched: item.files_touched,
            status: item.status,
            attempts: item.attempts,
            last_error: item.last_error,
            raw_bytes: item.raw_bytes,
            created_at: item.created_at,
            run_at: item.run_at,
            settled_at: item.settled_at,
        }
    }
}

/// Which items are tried again.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct RetryQueueParams {
    /// This one; all that were given up when left out.
    #[serde(default)]
    pub id: Option<i64>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetryQueueOutput {
    /// So many wait again.
    #[schemars(with = "i64")]
    pub retried: u64,
}

/// Which items are dropped.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct PurgeQueueParams {
    /// Those that are `done`, or those that ended in `error`; the former when left out.
    #[serde(default)]
    pub status: Option<QueueStatus>,
    /// Settled at least so many hours ago; all when left out.
    #[serde(default)]
    #[schemars(range(min = 0, max = 876_000))]
    pub older_than_hours: Option<u32>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PurgeQueueOutput {
    /// So many were dropped, with their raw output.
    #[schemars(with = "i64")]
    pub purged: u64,
    /// Whether there are more.
    pub more: bool,
}

impl Operation for ReadQueueStats {
    const NAME: &'static str = "queue.stats";
    const SUMMARY: &'static str =
        "Count what waits to become observations, what is worked on, done and given up.";
    const EFFECT: Effect = Effect::Read;
    type Params = ReadQueueStatsParams;
    type Output = QueueStats;

    fn run(context: &Context<'_>, tx: &mut dyn Tx, _: &Self::Params) -> Result<Self::Output, Fault> {
        context.require_every_venture()?;
        tx.queue_stats().map_err(store_fault)
    }
}

impl Operation for ListQueue {
    const NAME: &'static str = "queue.list";
    const SUMMARY: &'static str =
        "List captured tool uses of one status, newest first, with what went wrong.";
    const EFFECT: Effect = Effect::Read;
    type Params = ListQueueParams;
    type Output = ListQueueOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        limit_of(params.limit, DEFAULT_LIMIT).map(|_| ())
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let limit = limit_of(params.limit, DEFAULT_LIMIT)?;
        let status = params.status.unwrap_or(QueueStatus::Error);
        let mut found = tx.queue_items(status, params.before, limit + 1).map_err(store_fault)?;
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let next_before = found.last().filter(|_| more).map(|item| item.id);
        found.retain(|item| context.actor.reaches(&item.venture));
        Ok(ListQueueOutput { items: found.into_iter().map(Into::into).collect(), next_before })
    }
}

impl Operation for RetryQueue {
    const NAME: &'static str = "queue.retry";
    const SUMMARY: &'static str = "Try captured tool uses again that were given up.";
    const EFFECT: Effect = Effect::Write;
    type Params = RetryQueueParams;
    type Output = RetryQueueOutput;

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        context.require_every_venture()?;
        // What comes of them belongs into the summaries that were made without them.
        tx.renew_summaries(params.id, context.now).map_err(store_fault)?;
        let retried = tx.retry_queue(params.id, context.now).map_err(store_fault)?;
        match params.id {
            Some(id) if retried == 0 => {
                Err(Fault::new(ErrorCode::NotFound, format!("there is no item {id} that was given up"))
                    .hint("baton queue list --errors shows those that were"))
            }
            _ => Ok(RetryQueueOutput { retried }),
        }
    }
}

impl Operation for PurgeQueue {
    const NAME: &'static str = "queue.purge";
    const SUMMARY: &'static str =
        "Drop captured tool uses that are done or were given up, with their raw output.";
    const EFFECT: Effect = Effect::Write;
    const FREES_SPACE: bool = true;
    const DESTRUCTIVE: bool = true;
    type Params = PurgeQueueParams;
    type Output = PurgeQueueOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        match params.status {
            Some(QueueStatus::Raw | QueueStatus::Processing) => {
                Err(Fault::invalid("status", "must be `done` or `error`: what waits is not thrown away"))
            }
            _ => Ok(()),
        }
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        context.require_every_venture()?;
        let status = params.status.unwrap_or(QueueStatus::Done);
        let hours = u64::from(params.older_than_hours.unwrap_or(0));
        // What was settled this very millisecond goes too.
        let before = Timestamp::from_millis(context.now.as_millis() + 1)
            .minus(std::time::Duration::from_secs(hours * 3_600));
        let purged = tx.purge_queue(status, before, PURGE_BATCH).map_err(store_fault)?;
        let count = purged.count;
        purged.blobs.into_iter().for_each(|blob| context.after.unreferenced_blob(blob));
        Ok(PurgeQueueOutput { purged: count, more: count == u64::from(PURGE_BATCH) })
    }
}
