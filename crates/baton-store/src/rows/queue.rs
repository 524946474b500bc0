//! Rows of the queue of captured tool output.

use baton_core::{SessionId, Timestamp};

use crate::error::StoreError;
use crate::sql::{Columns, RowReader, Sql};

/// Tool output to be taken into the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewQueueItem {
    /// The session whose tool it was.
    pub session_id: SessionId,
    /// The tool.
    pub tool_name: String,
    /// What it said.
    pub raw_output: Vec<u8>,
    /// Not to be worked on before this.
    pub run_at: Timestamp,
    /// When it was captured.
    pub created_at: Timestamp,
}

/// A claimed item of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueItem {
    /// Its number.
    pub id: i64,
    /// The session whose tool it was.
    pub session_id: SessionId,
    /// The tool.
    pub tool_name: String,
    /// What it said.
    pub raw_output: Vec<u8>,
    /// How often it was claimed, this time included.
    pub attempts: i64,
    /// Proves that this claim is the latest one.
    pub fence: i64,
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

/// What a transaction can do with the queue.
pub trait QueueRows {
    /// Adds an item and gives its number.
    fn enqueue(&mut self, item: &NewQueueItem) -> Result<i64, StoreError>;

    /// Claims items that are due, or whose lease ran out, oldest first. No two live claims share an item.
    fn claim_queue(&mut self, claim: QueueClaim) -> Result<Vec<QueueItem>, StoreError>;

    /// Marks a claimed item as done; false when the claim is no longer the latest one.
    fn finish_queue_item(&mut self, id: i64, fence: i64) -> Result<bool, StoreError>;
}

fn read(columns: &dyn Columns) -> Result<QueueItem, StoreError> {
    let row = RowReader { table: "pending_queue", columns };
    Ok(QueueItem {
        id: row.int(0)?,
        session_id: row.parsed(1)?,
        tool_name: row.text(2)?,
        raw_output: row.bytes(3)?,
        attempts: row.int(4)?,
        fence: row.int(5)?,
    })
}

impl<S: Sql> QueueRows for S {
    fn enqueue(&mut self, item: &NewQueueItem) -> Result<i64, StoreError> {
        self.insert(
            "INSERT INTO pending_queue (session_id, tool_name, raw_output, status, run_at, created_at) \
             VALUES ($1, $2, $3, 'raw', $4, $5)",
            &[
                (&item.session_id.to_string()).into(),
                (&item.tool_name).into(),
                (&item.raw_output).into(),
                item.run_at.into(),
                item.created_at.into(),
            ],
        )
    }

    fn claim_queue(&mut self, claim: QueueClaim) -> Result<Vec<QueueItem>, StoreError> {
        let sql = self.pick(
            "UPDATE pending_queue SET status = 'processing', lease_until = $1, attempts = attempts + 1, \
             fence = fence + 1 WHERE id IN (SELECT id FROM pending_queue WHERE \
             (status = 'raw' AND run_at <= $2) OR (status = 'processing' AND lease_until <= $2) \
             ORDER BY id LIMIT $3) \
             RETURNING id, session_id, tool_name, raw_output, attempts, fence",
            // Materialized: a subquery in the condition may be run again for each row, past the limit.
            "WITH due AS MATERIALIZED (SELECT id FROM pending_queue WHERE \
             (status = 'raw' AND run_at <= $2) OR (status = 'processing' AND lease_until <= $2) \
             ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED) \
             UPDATE pending_queue SET status = 'processing', lease_until = $1, attempts = attempts + 1, \
             fence = fence + 1 WHERE id IN (SELECT id FROM due) \
             RETURNING id, session_id, tool_name, raw_output, attempts, fence",
        );
        let mut items =
            self.query(sql, &[claim.lease_until.into(), claim.now.into(), claim.limit.into()], &mut read)?;
        items.sort_by_key(|item| item.id);
        Ok(items)
    }

    fn finish_queue_item(&mut self, id: i64, fence: i64) -> Result<bool, StoreError> {
        let changed = self.execute(
            "UPDATE pending_queue SET status = 'done', lease_until = NULL \
             WHERE id = $1 AND fence = $2 AND status = 'processing'",
            &[id.into(), fence.into()],
        )?;
        Ok(changed == 1)
    }
}
