//! `queue.stats`, `queue.list`, `queue.retry` and `queue.purge`: inspects and manages the capture queue.

use baton_core::observation::{QueueStats, QueueStatus};
use baton_core::{ErrorCode, SessionId, Timestamp};
use baton_store::QueueItem;

use crate::page::{cut, limit_of};
use crate::prelude::*;

/// Maximum number of items that one call deletes.
const PURGE_BATCH: u32 = 10_000;

/// No parameters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReadQueueStats {}

/// Filters and page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListQueue {
    /// Filter by status. Defaults to `error`.
    pub status: Option<QueueStatus>,
    /// Show items with an id lower than this: the `next_before` of the previous page.
    pub before: Option<i64>,
    /// Maximum number of items, 1 to 200. Defaults to 50.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
}

/// One page of queue items, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListQueueOutput {
    /// Items that match, newest first.
    pub items: Vec<QueueItemView>,
    /// Value of `before` for the next page, or null on the last page.
    pub next_before: Option<i64>,
}

/// A queue item. Absent values are `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueItemView {
    /// Id of the item, a number such as `42`.
    pub id: i64,
    /// Session of the tool use.
    pub session_id: SessionId,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: String,
    /// Tool name, for example `Bash` or `Edit`.
    pub tool_name: String,
    /// Files named in the tool input.
    pub files_touched: Vec<String>,
    /// `raw` (pending), `processing`, `done` or `error`.
    pub status: QueueStatus,
    /// Number of attempts to process the item.
    pub attempts: i64,
    /// Error of the last attempt.
    pub last_error: Option<String>,
    /// Size of the raw output in bytes.
    #[schemars(with = "i64")]
    pub raw_bytes: u64,
    /// Time when the tool use was captured.
    pub created_at: Timestamp,
    /// Time of the next attempt.
    pub run_at: Timestamp,
    /// Time when the item was completed or failed.
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

/// The items to retry.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RetryQueueParams")]
pub struct RetryQueue {
    /// Id of the item. Defaults to all failed items.
    pub id: Option<i64>,
}

/// Result of the retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetryQueueOutput {
    /// Number of items returned to the queue.
    #[schemars(with = "i64")]
    pub retried: u64,
}

/// The items to delete.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PurgeQueueParams")]
pub struct PurgeQueue {
    /// `done` or `error`. Defaults to `done`.
    pub status: Option<QueueStatus>,
    /// Delete only items that completed or failed at least this many hours ago. Defaults to all.
    #[schemars(range(min = 0, max = 876_000))]
    pub older_than_hours: Option<u32>,
}

/// Result of the purge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PurgeQueueOutput {
    /// Number of items deleted with their raw output.
    #[schemars(with = "i64")]
    pub purged: u64,
    /// True if more items match. Call again to delete them.
    pub more: bool,
}

impl Operation<OnStore> for ReadQueueStats {
    const NAME: &'static str = "queue.stats";
    const SUMMARY: &'static str = "Count queue items by status.";
    const EFFECT: Effect = Effect::Read;
    type Output = QueueStats;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, _: &Self::Input) -> Result<Self::Output, Fault> {
        context.actor.require_every_venture()?;
        tx.queue_stats().map_err(Fault::from)
    }
}

impl Operation<OnStore> for ListQueue {
    const NAME: &'static str = "queue.list";
    const SUMMARY: &'static str =
        "List captured tool uses of one status, newest first, with their last error.";
    const EFFECT: Effect = Effect::Read;
    type Output = ListQueueOutput;
    params_and!(u32, |params| limit_of(params.limit, 50));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, limit) = input;
        let status = params.status.unwrap_or(QueueStatus::Error);
        let mut found = tx.queue_items(status, params.before, limit + 1)?;
        let next_before = cut(&mut found, *limit, |item| item.id);
        found.retain(|item| context.actor.may_access(&item.venture));
        Ok(ListQueueOutput { items: found.into_iter().map(Into::into).collect(), next_before })
    }
}

impl Operation<OnStore> for RetryQueue {
    const NAME: &'static str = "queue.retry";
    const SUMMARY: &'static str = "Retry failed queue items.";
    const EFFECT: Effect = Effect::Write;
    type Output = RetryQueueOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        context.actor.require_every_venture()?;
        // The summaries of their sessions were created without these items, so they are requested again.
        tx.renew_summaries(params.id, context.now)?;
        let retried = tx.retry_queue(params.id, context.now)?;
        match params.id {
            Some(id) if retried == 0 => {
                Err(Fault::new(ErrorCode::NotFound, format!("there is no failed item {id}"))
                    .hint("list failed items with baton queue list --errors"))
            }
            _ => Ok(RetryQueueOutput { retried }),
        }
    }
}

impl Operation<OnStore> for PurgeQueue {
    const NAME: &'static str = "queue.purge";
    const SUMMARY: &'static str = "Delete done or failed queue items and their raw output.";
    const EFFECT: Effect = Effect::Purge;
    const FREES_SPACE: bool = true;
    type Output = PurgeQueueOutput;
    params_as_input!(|params| {
        let is_pending = matches!(params.status, Some(QueueStatus::Raw | QueueStatus::Processing));
        Fault::require(!is_pending, "status", "must be `done` or `error`; pending items cannot be purged")
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        context.actor.require_every_venture()?;
        let status = params.status.unwrap_or(QueueStatus::Done);
        let hours = u64::from(params.older_than_hours.unwrap_or(0));
        // Includes items that were completed or failed in the current millisecond.
        let before = Timestamp::from_millis(context.now.as_millis() + 1)
            .minus(std::time::Duration::from_secs(hours * 3_600));
        let purged = context.effects.purged(tx.purge_queue(status, before, PURGE_BATCH)?);
        Ok(PurgeQueueOutput { purged, more: purged == u64::from(PURGE_BATCH) })
    }
}
