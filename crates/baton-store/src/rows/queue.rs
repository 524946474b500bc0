//! Rows of the queue of captured tool output.

use baton_core::observation::{QueueStats, QueueStatus};
use baton_core::{Repo, SessionId, Timestamp, Venture};

use crate::error::StoreError;
use crate::sql::{Columns, QueryBuilder, RowReader, Sql, parts};

/// Tool output to be taken into the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewQueueItem {
    /// The session whose tool it was.
    pub session_id: SessionId,
    /// Its undertaking.
    pub venture: Venture,
    /// Its repository.
    pub repo: Repo,
    /// The tool.
    pub tool_name: String,
    /// The agent's own id of this use.
    pub tool_use_id: Option<String>,
    /// The files that the tool was asked about.
    pub files_touched: Vec<String>,
    /// What it was asked and what it said, packed.
    pub raw: RawOutput,
    /// How long what it said was.
    pub raw_bytes: u64,
    /// Not to be worked on before this.
    pub run_at: Timestamp,
    /// When it was captured.
    pub created_at: Timestamp,
}

/// Where packed raw output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawOutput {
    /// In the row.
    Row(Vec<u8>),
    /// In the blob of this name.
    Blob(String),
}

/// An item of the queue, without its raw output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueItem {
    /// Its number.
    pub id: i64,
    /// The session whose tool it was.
    pub session_id: SessionId,
    /// Its undertaking.
    pub venture: Venture,
    /// Its repository.
    pub repo: Repo,
    /// The tool.
    pub tool_name: String,
    /// The agent's own id of this use.
    pub tool_use_id: Option<String>,
    /// The files that the tool was asked about.
    pub files_touched: Vec<String>,
    /// How far it has come.
    pub status: QueueStatus,
    /// How often it was claimed, this time included, and not given back for reasons that it has nothing to do with.
    pub attempts: i64,
    /// Not to be worked on before this.
    pub run_at: Timestamp,
    /// Until when it belongs to whoever claimed it.
    pub lease_until: Option<Timestamp>,
    /// Proves that this claim is the latest one.
    pub fence: i64,
    /// When it failed for the last time.
    pub failed_at: Option<Timestamp>,
    /// What went wrong then.
    pub last_error: Option<String>,
    /// How long what the tool said was.
    pub raw_bytes: u64,
    /// When it was captured.
    pub created_at: Timestamp,
    /// When it was done or given up.
    pub settled_at: Option<Timestamp>,
    /// The packed raw output, where a claim brought it along: it is in the row, and not long.
    pub raw_output: Option<Vec<u8>>,
}

/// How items are claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueClaim {
    /// The present.
    pub now: Timestamp,
    /// Until when the items are ours; past it others may claim them.
    pub lease_until: Timestamp,
    /// How many at the most.
    pub limit: u32,
}

/// How a claimed item is given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRelease {
    /// Not to be worked on before this.
    pub run_at: Timestamp,
    /// Whether the attempt counts.
    pub counts: bool,
    /// When it failed; none when it did not, as at a shutdown.
    pub failed_at: Option<Timestamp>,
    /// What went wrong.
    pub error: Option<String>,
}

/// Items that were deleted from the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgedItems {
    /// Number of items.
    pub count: u64,
    /// The blobs of their raw output, which no row refers to any more.
    pub blobs: Vec<String>,
}

/// What a transaction can do with the queue.
pub trait QueueRows {
    /// Adds an item and gives its number; none when this use of a tool was queued before.
    fn enqueue(&mut self, item: &NewQueueItem) -> Result<Option<i64>, StoreError>;

    /// Claims items whose lease ran out, then items that are due, oldest first. No two live claims share an item.
    fn claim_queue(&mut self, claim: QueueClaim) -> Result<Vec<QueueItem>, StoreError>;

    /// Finds an item.
    fn queue_item(&mut self, id: i64) -> Result<Option<QueueItem>, StoreError>;

    /// Lists the ids of items of any status after one of them.
    fn queue_ids(&mut self, after: i64, limit: u32) -> Result<Vec<i64>, StoreError>;

    /// Finds where the raw output of an item is.
    fn queue_raw(&mut self, id: i64) -> Result<Option<RawOutput>, StoreError>;

    /// Marks claimed items, each with the fence of its claim, as done; gives those whose claim is still the latest one.
    fn finish_queue_items(&mut self, claims: &[(i64, i64)], at: Timestamp) -> Result<Vec<i64>, StoreError>;

    /// Gives a claimed item back; false when the claim is no longer the latest one.
    fn release_queue_item(&mut self, id: i64, fence: i64, release: &QueueRelease)
    -> Result<bool, StoreError>;

    /// Gives a claimed item up; false when the claim is no longer the latest one.
    fn fail_queue_item(
        &mut self,
        id: i64,
        fence: i64,
        error: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Counts items.
    fn queue_stats(&mut self) -> Result<QueueStats, StoreError>;

    /// Tells when the next item is due or the next lease runs out.
    fn queue_wakes_at(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// Lists items of one status, newest first, below a number.
    fn queue_items(
        &mut self,
        status: QueueStatus,
        below: Option<i64>,
        limit: u32,
    ) -> Result<Vec<QueueItem>, StoreError>;

    /// Lists what a session has waiting, oldest first.
    fn open_queue_items(&mut self, session: SessionId, limit: u32) -> Result<Vec<QueueItem>, StoreError>;

    /// Makes items that were given up wait again: this one, or all; tells how many.
    fn retry_queue(&mut self, id: Option<i64>, now: Timestamp) -> Result<u64, StoreError>;

    /// Drops items that were settled before a moment, with their raw output, at most `limit` of them; tells how many.
    fn purge_queue(
        &mut self,
        status: QueueStatus,
        before: Timestamp,
        limit: u32,
    ) -> Result<PurgedItems, StoreError>;
}

macro_rules! columns {
    () => {
        "id, session_id, venture, repo, tool_name, tool_use_id, files_touched, status, attempts, run_at, \
         lease_until, fence, failed_at, last_error, raw_bytes, created_at, settled_at"
    };
}

fn read(columns: &dyn Columns) -> Result<QueueItem, StoreError> {
    let row = RowReader { table: "pending_queue", columns };
    Ok(QueueItem {
        id: row.int(0)?,
        session_id: row.parsed(1)?,
        venture: row.parsed(2)?,
        repo: row.parsed(3)?,
        tool_name: row.text(4)?,
        tool_use_id: row.opt_text(5)?,
        files_touched: row.json(6)?,
        status: QueueStatus::from_wire(&row.text(7)?).ok_or_else(|| row.wrong(7, "unknown status"))?,
        attempts: row.int(8)?,
        run_at: row.time(9)?,
        lease_until: row.opt_time(10)?,
        fence: row.int(11)?,
        failed_at: row.opt_time(12)?,
        last_error: row.opt_text(13)?,
        raw_bytes: row.unsigned(14)?,
        created_at: row.time(15)?,
        settled_at: row.opt_time(16)?,
        raw_output: None,
    })
}

/// Reads an item that was claimed just now, with its raw output if that came along.
fn read_claimed(columns: &dyn Columns) -> Result<QueueItem, StoreError> {
    let row = RowReader { table: "pending_queue", columns };
    Ok(QueueItem { raw_output: row.opt_bytes(17)?, ..read(columns)? })
}

/// The raw output of a claimed item, where reading it at once saves asking again and takes up little.
macro_rules! short_output {
    () => {
        ", CASE WHEN blob IS NULL AND octet_length(raw_output) <= 65536 THEN raw_output END"
    };
}

/// Claims by one condition: what it asks for, and in which order.
macro_rules! claim {
    ($condition:literal, $order:literal) => {
        (
            concat!(
                "UPDATE pending_queue SET status = 'processing', lease_until = $1, attempts = attempts + 1, \
                 fence = fence + 1 WHERE id IN (SELECT id FROM pending_queue WHERE ",
                $condition,
                " ORDER BY ",
                $order,
                " LIMIT $3) RETURNING ",
                columns!(),
                short_output!()
            ),
            // Materialized: a subquery in the condition may be run again for each row, past the limit.
            concat!(
                "WITH due AS MATERIALIZED (SELECT id FROM pending_queue WHERE ",
                $condition,
                " ORDER BY ",
                $order,
                " LIMIT $3 FOR UPDATE SKIP LOCKED) \
                 UPDATE pending_queue SET status = 'processing', lease_until = $1, attempts = attempts + 1, \
                 fence = fence + 1 WHERE id IN (SELECT id FROM due) RETURNING ",
                columns!(),
                short_output!()
            ),
        )
    };
}

const LEFT_BEHIND: (&str, &str) = claim!("status = 'processing' AND lease_until <= $2", "lease_until, id");
const DUE: (&str, &str) = claim!("status = 'raw' AND run_at <= $2", "run_at, id");

impl<S: Sql> QueueRows for S {
    fn enqueue(&mut self, item: &NewQueueItem) -> Result<Option<i64>, StoreError> {
        let (blob, bytes) = match &item.raw {
            RawOutput::Row(bytes) => (None, bytes.as_slice()),
            RawOutput::Blob(name) => (Some(name), [].as_slice()),
        };
        let files = serde_json::to_string(&item.files_touched)
            .map_err(|problem| StoreError::corrupt("pending_queue", problem))?;
        let ids = self.query(
            "INSERT INTO pending_queue (session_id, venture, repo, tool_name, tool_use_id, files_touched, status, \
             run_at, created_at, raw_bytes, blob, raw_output) \
             VALUES ($1, $2, $3, $4, $5, $6, 'raw', $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING RETURNING id",
            &[
                (&item.session_id.to_string()).into(),
                item.venture.as_str().into(),
                item.repo.as_str().into(),
                (&item.tool_name).into(),
                item.tool_use_id.as_ref().into(),
                (&files).into(),
                item.run_at.into(),
                item.created_at.into(),
                item.raw_bytes.into(),
                blob.into(),
                bytes.into(),
            ],
            &mut |columns| RowReader { table: "pending_queue", columns }.int(0),
        )?;
        if !ids.is_empty() {
            self.announce_queue()?;
        }
        Ok(ids.into_iter().next())
    }

    fn claim_queue(&mut self, claim: QueueClaim) -> Result<Vec<QueueItem>, StoreError> {
        let mut items = Vec::new();
        for (sqlite, postgres) in [LEFT_BEHIND, DUE] {
            let left = claim.limit.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            let sql = self.pick(sqlite, postgres);
            let mut found = self.query(
                sql,
                &[claim.lease_until.into(), claim.now.into(), left.into()],
                &mut read_claimed,
            )?;
            found.sort_by_key(|item| (item.run_at, item.id));
            items.append(&mut found);
        }
        Ok(items)
    }

    fn queue_item(&mut self, id: i64) -> Result<Option<QueueItem>, StoreError> {
        let sql = concat!("SELECT ", columns!(), " FROM pending_queue WHERE id = $1");
        self.query_one(sql, &[id.into()], &mut read)
    }

    fn queue_ids(&mut self, after: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        self.query(
            "SELECT id FROM pending_queue WHERE id > $1 ORDER BY id LIMIT $2",
            &[after.into(), limit.into()],
            &mut |columns| RowReader { table: "pending_queue", columns }.int(0),
        )
    }

    fn queue_raw(&mut self, id: i64) -> Result<Option<RawOutput>, StoreError> {
        self.query_one(
            "SELECT blob, raw_output FROM pending_queue WHERE id = $1",
            &[id.into()],
            &mut |columns| {
                let row = RowReader { table: "pending_queue", columns };
                Ok(match row.opt_text(0)? {
                    Some(blob) => RawOutput::Blob(blob),
                    None => RawOutput::Row(row.bytes(1)?),
                })
            },
        )
    }

    fn finish_queue_items(&mut self, claims: &[(i64, i64)], at: Timestamp) -> Result<Vec<i64>, StoreError> {
        let mut finished = Vec::with_capacity(claims.len());
        for part in parts(claims) {
            let mut query = QueryBuilder::new("UPDATE pending_queue SET status = 'done', lease_until = NULL");
            query.with(", last_error = NULL, settled_at = $? WHERE status = 'processing' AND (", at);
            for (index, (id, fence)) in part.iter().enumerate() {
                query.text(if index == 0 { "(" } else { " OR (" });
                query.with("id = $?", *id).with(" AND fence = $?)", *fence);
            }
            query.text(") RETURNING id");
            finished.append(&mut self.query(query.sql(), query.params(), &mut |columns| {
                RowReader { table: "pending_queue", columns }.int(0)
            })?);
        }
        Ok(finished)
    }

    fn release_queue_item(
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

    fn fail_queue_item(
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

    fn queue_stats(&mut self) -> Result<QueueStats, StoreError> {
        let mut count = |status: QueueStatus| {
            // Spelled out, so that each is counted in the index of its own.
            let sql = match status {
                QueueStatus::Raw => "SELECT count(*) FROM pending_queue WHERE status = 'raw'",
                QueueStatus::Processing => "SELECT count(*) FROM pending_queue WHERE status = 'processing'",
                QueueStatus::Done => "SELECT count(*) FROM pending_queue WHERE status = 'done'",
                QueueStatus::Error => "SELECT count(*) FROM pending_queue WHERE status = 'error'",
            };
            let found = self.query_one(sql, &[], &mut |columns| {
                RowReader { table: "pending_queue", columns }.unsigned(0)
            })?;
            Ok::<u64, StoreError>(found.unwrap_or(0))
        };
        Ok(QueueStats {
            raw: count(QueueStatus::Raw)?,
            processing: count(QueueStatus::Processing)?,
            done: count(QueueStatus::Done)?,
            error: count(QueueStatus::Error)?,
        })
    }

    fn queue_wakes_at(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let mut earliest = None;
        for sql in [
            "SELECT run_at FROM pending_queue WHERE status = 'raw' ORDER BY run_at LIMIT 1",
            "SELECT lease_until FROM pending_queue WHERE status = 'processing' ORDER BY lease_until LIMIT 1",
        ] {
            let found = self
                .query_one(sql, &[], &mut |columns| RowReader { table: "pending_queue", columns }.time(0))?;
            earliest = match (earliest, found) {
                (Some(one), Some(other)) => Some(std::cmp::min::<Timestamp>(one, other)),
                (one, other) => one.or(other),
            };
        }
        Ok(earliest)
    }

    fn queue_items(
        &mut self,
        status: QueueStatus,
        below: Option<i64>,
        limit: u32,
    ) -> Result<Vec<QueueItem>, StoreError> {
        let mut query = QueryBuilder::new(concat!("SELECT ", columns!(), " FROM pending_queue"));
        query.text(" WHERE status = '").text(status.as_str()).text("'");
        // Most items are done: going down by number meets them at once. Of the others there are few, which are sorted
        // rather than looked for among all: an expression keeps the numbers' own index out of it.
        let id = if status == QueueStatus::Done { "id" } else { "id + 0" };
        query.text(" AND ").text(id).with(" < $?", below.unwrap_or(i64::MAX));
        query.text(" ORDER BY ").text(id).with(" DESC LIMIT $?", limit);
        self.query(query.sql(), query.params(), &mut read)
    }

    fn open_queue_items(&mut self, session: SessionId, limit: u32) -> Result<Vec<QueueItem>, StoreError> {
        let sql = concat!(
            "SELECT ",
            columns!(),
            " FROM pending_queue WHERE session_id = $1 AND status IN ('raw', 'processing') ORDER BY id LIMIT $2"
        );
        self.query(sql, &[(&session.to_string()).into(), limit.into()], &mut read)
    }

    fn retry_queue(&mut self, id: Option<i64>, now: Timestamp) -> Result<u64, StoreError> {
        let mut query = QueryBuilder::new("UPDATE pending_queue SET status = 'raw', attempts = 0");
        query.with(", settled_at = NULL, run_at = $? WHERE status = 'error'", now);
        if let Some(id) = id {
            query.with(" AND id = $?", id);
        }
        let changed = self.execute(query.sql(), query.params())?;
        if changed > 0 {
            self.announce_queue()?;
        }
        Ok(changed)
    }

    fn purge_queue(
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
        let purged = self.query(query.sql(), query.params(), &mut |columns| {
            RowReader { table: "pending_queue", columns }.opt_text(0)
        })?;
        Ok(PurgedItems { count: purged.len() as u64, blobs: purged.into_iter().flatten().collect() })
    }
}
