//! Rows of the queue of captured tool output.

use baton_core::observation::{QueueStats, QueueStatus};
use baton_core::{Repo, SessionId, Timestamp, Venture};

use crate::column::{Column, FromRow, Row};
use crate::error::StoreError;
use crate::record::{columns, record, select};
use crate::sql::{QueryBuilder, parts};
use crate::tx::Tx;

/// Captured tool output to be added to the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewQueueItem {
    /// Session that used the tool.
    pub session_id: SessionId,
    pub venture: Venture,
    /// Repository of the session.
    pub repo: Repo,
    pub tool_name: String,
    /// Id that the agent assigned to this tool use.
    pub tool_use_id: Option<String>,
    /// Files named in the input of the tool.
    pub files_touched: Vec<String>,
    /// Packed input and output of the tool.
    pub raw: RawOutput,
    /// Size of the output before packing.
    pub raw_bytes: u64,
    /// Earliest time of processing.
    pub run_at: Timestamp,
    /// Time of capture.
    pub created_at: Timestamp,
}

/// Location of packed raw output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawOutput {
    Row(Vec<u8>),
    /// In the blob of this name.
    Blob(String),
}

/// A queue item without its raw output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueItem {
    pub id: i64,
    /// Session that used the tool.
    pub session_id: SessionId,
    pub venture: Venture,
    /// Repository of the session.
    pub repo: Repo,
    pub tool_name: String,
    /// Id that the agent assigned to this tool use.
    pub tool_use_id: Option<String>,
    /// Files named in the input of the tool.
    pub files_touched: Vec<String>,
    /// Processing status.
    pub status: QueueStatus,
    /// Number of claims, including the current one. Claims released without counting are excluded.
    pub attempts: i64,
    /// Earliest time of processing.
    pub run_at: Timestamp,
    /// End of the current lease.
    pub lease_until: Option<Timestamp>,
    /// Number of the claim. A write with an older number is rejected.
    pub fence: i64,
    /// Time of the last failure.
    pub failed_at: Option<Timestamp>,
    /// Error message of the last failure.
    pub last_error: Option<String>,
    /// Size of the output before packing.
    pub raw_bytes: u64,
    /// Time of capture.
    pub created_at: Timestamp,
    /// Time at which the item was done or failed finally.
    pub settled_at: Option<Timestamp>,
    /// The packed raw output. A claim returns it if it is in the row and short.
    pub raw_output: Option<Vec<u8>>,
}

/// How to claim items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueClaim {
    /// The current time.
    pub now: Timestamp,
    /// End of the lease. After that others may claim the items.
    pub lease_until: Timestamp,
    /// Maximum number of items.
    pub limit: u32,
}

/// How to release a claimed item for a later attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRelease {
    /// Earliest time of the next attempt.
    pub run_at: Timestamp,
    /// True if this attempt counts towards the maximum.
    pub counts: bool,
    /// Time of the failure; `None` if the item did not fail, for example at a shutdown.
    pub failed_at: Option<Timestamp>,
    /// Error message.
    pub error: Option<String>,
}

/// Items that were deleted from the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgedItems {
    /// Number of items.
    pub count: u64,
    /// Blobs of their raw output, which no row refers to any more.
    pub blobs: Vec<String>,
}

record! {
    "pending_queue", QueueItem {
        id, session_id, venture, repo, tool_name, tool_use_id, files_touched, status, attempts, run_at, lease_until,
        fence, failed_at, last_error, raw_bytes, created_at, settled_at,
    }
    .. { raw_output: None }
}

/// Reads the columns `blob` and `raw_output`.
impl FromRow for RawOutput {
    fn from_row(row: &mut Row<'_>) -> Result<Self, StoreError> {
        Ok(match row.get()? {
            Some(blob) => Self::Blob(blob),
            None => Self::Row(row.get()?),
        })
    }
}

/// Returns the statement that claims items by a condition, in an order.
fn claim_statement(tx: &dyn Tx, condition: &str, order: &str) -> String {
    let due = format!("SELECT id FROM pending_queue WHERE {condition} ORDER BY {order} LIMIT $3");
    let claim = |ids: &str| {
        // The raw output is returned if it is short, which saves a second query.
        format!(
            "UPDATE pending_queue SET status = 'processing', lease_until = $1, attempts = attempts + 1, \
             fence = fence + 1 WHERE id IN ({ids}) RETURNING {}, \
             CASE WHEN blob IS NULL AND octet_length(raw_output) <= 65536 THEN raw_output END",
            columns::<QueueItem>()
        )
    };
    if tx.is_sqlite() {
        return claim(&due);
    }
    // MATERIALIZED: a subquery in the condition could be executed again for each row and exceed the limit.
    format!("WITH due AS MATERIALIZED ({due} FOR UPDATE SKIP LOCKED) {}", claim("SELECT id FROM due"))
}

impl dyn Tx + '_ {
    /// Adds an item and returns its id; `None` if this tool use is already queued.
    pub fn enqueue(&mut self, item: &NewQueueItem) -> Result<Option<i64>, StoreError> {
        let (blob, bytes) = match &item.raw {
            RawOutput::Row(bytes) => (None, bytes.as_slice()),
            RawOutput::Blob(name) => (Some(name), [].as_slice()),
        };
        let ids: Vec<i64> = self.query(
            "INSERT INTO pending_queue (session_id, venture, repo, tool_name, tool_use_id, files_touched, status, \
             run_at, created_at, raw_bytes, blob, raw_output) \
             VALUES ($1, $2, $3, $4, $5, $6, 'raw', $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING RETURNING id",
            &[
                item.session_id.into(),
                (&item.venture).into(),
                (&item.repo).into(),
                (&item.tool_name).into(),
                item.tool_use_id.as_ref().into(),
                item.files_touched.param()?,
                item.run_at.into(),
                item.created_at.into(),
                item.raw_bytes.into(),
                blob.into(),
                bytes.into(),
            ],
        )?;
        if !ids.is_empty() {
            self.announce_queue()?;
        }
        Ok(ids.into_iter().next())
    }

    /// Claims items with an expired lease, then due items, oldest first. No two valid claims share an item.
    pub fn claim_queue(&mut self, claim: QueueClaim) -> Result<Vec<QueueItem>, StoreError> {
        let mut items = Vec::new();
        for (condition, order) in [
            ("status = 'processing' AND lease_until <= $2", "lease_until, id"),
            ("status = 'raw' AND run_at <= $2", "run_at, id"),
        ] {
            let left = claim.limit.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            let sql = claim_statement(self, condition, order);
            let params = [claim.lease_until.into(), claim.now.into(), left.into()];
            let mut found: Vec<(QueueItem, Option<Vec<u8>>)> = self.query(&sql, &params)?;
            found.sort_by_key(|(item, _)| (item.run_at, item.id));
            items.extend(found.into_iter().map(|(item, raw_output)| QueueItem { raw_output, ..item }));
        }
        Ok(items)
    }

    /// Finds an item.
    pub fn queue_item(&mut self, id: i64) -> Result<Option<QueueItem>, StoreError> {
        self.record("WHERE id = $1", &[id.into()])
    }

    /// Lists ids of items of any status after `after`.
    pub fn queue_ids(&mut self, after: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        self.query(
            "SELECT id FROM pending_queue WHERE id > $1 ORDER BY id LIMIT $2",
            &[after.into(), limit.into()],
        )
    }

    /// Returns the location of an item's raw output.
    pub fn queue_raw(&mut self, id: i64) -> Result<Option<RawOutput>, StoreError> {
        self.query_one("SELECT blob, raw_output FROM pending_queue WHERE id = $1", &[id.into()])
    }

    /// Marks claimed items, given as id and fence, as done. Returns the ids whose claim is still the latest one.
    pub fn finish_queue_items(
        &mut self,
        claims: &[(i64, i64)],
        at: Timestamp,
    ) -> Result<Vec<i64>, StoreError> {
        let mut finished = Vec::with_capacity(claims.len());
        for part in parts(claims) {
            let mut query = QueryBuilder::new("UPDATE pending_queue SET status = 'done', lease_until = NULL");
            query.with(", last_error = NULL, settled_at = $? WHERE status = 'processing' AND (", at);
            for (index, (id, fence)) in part.iter().enumerate() {
                query.text(if index == 0 { "(" } else { " OR (" });
                query.with("id = $?", *id).with(" AND fence = $?)", *fence);
            }
            query.text(") RETURNING id");
            finished.extend(self.query::<i64>(query.sql(), query.params())?);
        }
        Ok(finished)
    }

    /// Releases a claimed item. Returns false if the claim is no longer the latest one.
    pub fn release_queue_item(
        &mut self,
        id: i64,
        fence: i64,
        release: &QueueRelease,
    ) -> Result<bool, StoreError> {
        let refund = i64::from(!release.counts);
        let changed = self.execute(
            "UPDATE pending_queue SET status = 'raw', lease_until = NULL, run_at = $1, attempts = attempts - $2, \
             failed_at = coalesce($3, failed_at), last_error = coalesce($4, last_error) \
             WHERE id = $5 AND fence = $6 AND status = 'processing'",
            &[
                release.run_at.into(),
                refund.into(),
                release.failed_at.into(),
                release.error.as_ref().into(),
                id.into(),
                fence.into(),
            ],
        )?;
        Ok(changed == 1)
    }

    /// Marks a claimed item as failed. Returns false if the claim is no longer the latest one.
    pub fn fail_queue_item(
        &mut self,
        id: i64,
        fence: i64,
        error: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let changed = self.execute(
            "UPDATE pending_queue SET status = 'error', lease_until = NULL, failed_at = $1, settled_at = $1, \
             last_error = $2 WHERE id = $3 AND fence = $4 AND status = 'processing'",
            &[at.into(), error.into(), id.into(), fence.into()],
        )?;
        Ok(changed == 1)
    }

    /// Counts items by status.
    pub fn queue_stats(&mut self) -> Result<QueueStats, StoreError> {
        let mut count = |status: QueueStatus| {
            // Literal conditions, so that each count uses its partial index.
            let sql = match status {
                QueueStatus::Raw => "SELECT count(*) FROM pending_queue WHERE status = 'raw'",
                QueueStatus::Processing => "SELECT count(*) FROM pending_queue WHERE status = 'processing'",
                QueueStatus::Done => "SELECT count(*) FROM pending_queue WHERE status = 'done'",
                QueueStatus::Error => "SELECT count(*) FROM pending_queue WHERE status = 'error'",
            };
            self.number(sql, &[])
        };
        Ok(QueueStats {
            raw: count(QueueStatus::Raw)?,
            processing: count(QueueStatus::Processing)?,
            done: count(QueueStatus::Done)?,
            error: count(QueueStatus::Error)?,
        })
    }

    /// Returns the time at which the next item is due or the next lease expires.
    pub fn next_queue_due_at(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let mut earliest = None;
        for sql in [
            "SELECT run_at FROM pending_queue WHERE status = 'raw' ORDER BY run_at LIMIT 1",
            "SELECT lease_until FROM pending_queue WHERE status = 'processing' ORDER BY lease_until LIMIT 1",
        ] {
            let found = self.query_one(sql, &[])?;
            earliest = match (earliest, found) {
                (Some(one), Some(other)) => Some(std::cmp::min::<Timestamp>(one, other)),
                (one, other) => one.or(other),
            };
        }
        Ok(earliest)
    }

    /// Lists items of one status with an id lower than `below`, newest first.
    pub fn queue_items(
        &mut self,
        status: QueueStatus,
        below: Option<i64>,
        limit: u32,
    ) -> Result<Vec<QueueItem>, StoreError> {
        let condition = format!("WHERE status = '{}'", status.as_str());
        let mut query = QueryBuilder::new(&select::<QueueItem>(&condition));
        // Most items are done, so scanning down by id finds them quickly. Items of other statuses are few: the
        // expression `id + 0` disables the primary key index, so that they are found by status and sorted.
        let id = if status == QueueStatus::Done { "id" } else { "id + 0" };
        query.text(" AND ").text(id).with(" < $?", below.unwrap_or(i64::MAX));
        query.text(" ORDER BY ").text(id).with(" DESC LIMIT $?", limit);
        self.query(query.sql(), query.params())
    }

    /// Lists the unprocessed items of a session, oldest first.
    pub fn open_queue_items(&mut self, session: SessionId, limit: u32) -> Result<Vec<QueueItem>, StoreError> {
        self.records(
            "WHERE session_id = $1 AND status IN ('raw', 'processing') ORDER BY id LIMIT $2",
            &[session.into(), limit.into()],
        )
    }

    /// Makes one or all failed items due again and returns their number.
    pub fn retry_queue(&mut self, id: Option<i64>, now: Timestamp) -> Result<u64, StoreError> {
        let mut query = QueryBuilder::new("UPDATE pending_queue SET status = 'raw', attempts = 0");
        query.with(", settled_at = NULL, run_at = $? WHERE status = 'error'", now);
        query.with_some(" AND id = $?", id);
        let changed = self.execute(query.sql(), query.params())?;
        if changed > 0 {
            self.announce_queue()?;
        }
        Ok(changed)
    }

    /// Deletes at most `limit` items that were settled before a time, with their raw output.
    pub fn purge_queue(
        &mut self,
        status: QueueStatus,
        before: Timestamp,
        limit: u32,
    ) -> Result<PurgedItems, StoreError> {
        let mut query =
            QueryBuilder::new("DELETE FROM pending_queue WHERE id IN (SELECT id FROM pending_queue");
        query.text(" WHERE status = '").text(status.as_str());
        query
            .with("' AND settled_at < $?", before)
            .with(" ORDER BY settled_at, id LIMIT $?) RETURNING blob", limit);
        purge(self, &query)
    }
}

/// Runs a statement that deletes queue items and returns the blob of each.
pub(super) fn purge(tx: &mut dyn Tx, query: &QueryBuilder<'_>) -> Result<PurgedItems, StoreError> {
    let purged: Vec<Option<String>> = tx.query(query.sql(), query.params())?;
    Ok(PurgedItems { count: purged.len() as u64, blobs: purged.into_iter().flatten().collect() })
}
