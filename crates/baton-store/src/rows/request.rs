//! Rows of the request log.

use baton_core::{RequestRecord, Timestamp};

use crate::error::StoreError;
use crate::sql::{Columns, RowReader, Sql};

/// What a transaction can do with the request log.
pub trait RequestRows {
    /// Adds a call to the log.
    fn log_request(&mut self, record: &RequestRecord) -> Result<(), StoreError>;

    /// Lists calls, newest first.
    fn requests(&mut self, limit: u32) -> Result<Vec<RequestRecord>, StoreError>;

    /// Drops calls before a moment, at most `limit` of them, and tells how many.
    fn delete_requests(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}

fn read(columns: &dyn Columns) -> Result<RequestRecord, StoreError> {
    let row = RowReader { table: "request_log", columns };
    Ok(RequestRecord {
        id: row.parsed(0)?,
        timestamp: row.time(1)?,
        correlation_id: row.parsed(2)?,
        endpoint: row.text(3)?,
        method: row.text(4)?,
        actor_key_id: row.opt_parsed(5)?,
        agent: row.opt_text(6)?,
        venture: row.opt_text(7)?,
        repo: row.opt_text(8)?,
        track: row.opt_int(9)?,
        issue_number: row.opt_int(10)?,
        status_code: u16::try_from(row.int(11)?).map_err(|problem| row.wrong(11, problem))?,
        duration_ms: row.int(12)?,
        error_message: row.opt_text(13)?,
        idempotency_key: row.opt_text(14)?,
        idempotency_hit: row.bool(15)?,
    })
}

impl<S: Sql> RequestRows for S {
    fn log_request(&mut self, record: &RequestRecord) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO request_log (id, timestamp, correlation_id, endpoint, method, actor_key_id, agent, \
             venture, repo, track, issue_number, status_code, duration_ms, error_message, idempotency_key, \
             idempotency_hit) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
            &[
                (&record.id.to_string()).into(),
                record.timestamp.into(),
                record.correlation_id.as_str().into(),
                (&record.endpoint).into(),
                (&record.method).into(),
                record.actor_key_id.as_ref().map(|id| id.as_str()).into(),
                record.agent.as_ref().into(),
                record.venture.as_ref().into(),
                record.repo.as_ref().into(),
                record.track.into(),
                record.issue_number.into(),
                i64::from(record.status_code).into(),
                record.duration_ms.into(),
                record.error_message.as_ref().into(),
                record.idempotency_key.as_ref().into(),
                record.idempotency_hit.into(),
            ],
        )?;
        Ok(())
    }

    fn requests(&mut self, limit: u32) -> Result<Vec<RequestRecord>, StoreError> {
        self.query(
            "SELECT id, timestamp, correlation_id, endpoint, method, actor_key_id, agent, venture, repo, track, \
             issue_number, status_code, duration_ms, error_message, idempotency_key, idempotency_hit \
             FROM request_log ORDER BY id DESC LIMIT $1",
            &[limit.into()],
            &mut read,
        )
    }

    fn delete_requests(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.execute(
            "DELETE FROM request_log WHERE id IN (SELECT id FROM request_log WHERE timestamp < $1 LIMIT $2)",
            &[before.into(), limit.into()],
        )
    }
}
