//! Rows of the request log.

use baton_core::{ActorKeyId, CorrelationId, RequestRecord, Timestamp};

use crate::error::StoreError;
use crate::sql::{Columns, RowReader, Sql};

/// What a transaction can do with the request log.
pub trait RequestRows {
    /// Adds a record to the log.
    fn log_request(&mut self, record: &RequestRecord) -> Result<(), StoreError>;

    /// Lists records, last written first.
    fn requests(&mut self, limit: u32) -> Result<Vec<RequestRecord>, StoreError>;

    /// Deletes records of calls before a time, and returns their number. Looks at the `limit` oldest records: records are
    /// written in about the order of the calls.
    fn delete_requests(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// Deletes the oldest records beyond a number of records to keep, at most `limit`, and returns their number.
    fn trim_requests(&mut self, keep: u64, limit: u32) -> Result<u64, StoreError>;
}

fn read(columns: &dyn Columns) -> Result<RequestRecord, StoreError> {
    let row = RowReader { table: "requests", columns };
    let correlation_id = match row.opt_bytes(8)? {
        Some(bytes) => {
            CorrelationId::from_uuid(bytes.try_into().map_err(|_| row.wrong(8, "is not 16 bytes"))?)
        }
        None => row.parsed(9)?,
    };
    let actor_key_id = match row.opt_bytes(10)? {
        Some(bytes) => {
            Some(ActorKeyId::from_bytes(bytes.try_into().map_err(|_| row.wrong(10, "is not 8 bytes"))?))
        }
        None => None,
    };
    Ok(RequestRecord {
        timestamp: row.time(0)?,
        correlation_id,
        endpoint: row.text(6)?,
        method: row.text(7)?,
        actor_key_id,
        agent: row.opt_text(11)?,
        venture: row.opt_text(12)?,
        repo: row.opt_text(13)?,
        track: row.opt_int(1)?,
        issue_number: row.opt_int(2)?,
        status_code: u16::try_from(row.int(4)?).map_err(|problem| row.wrong(4, problem))?,
        duration_ms: row.int(3)?,
        error_message: row.opt_text(14)?,
        idempotency_key: row.opt_text(15)?,
        idempotency_hit: row.bool(5)?,
        request_count: row.small(16)?,
    })
}

impl<S: Sql> RequestRows for S {
    fn log_request(&mut self, record: &RequestRecord) -> Result<(), StoreError> {
        let uuid = record.correlation_id.uuid();
        let other_id = uuid.is_none().then(|| record.correlation_id.as_str());
        let actor = record.actor_key_id.as_ref().map(ActorKeyId::to_bytes);
        let count = (record.request_count != 1).then_some(record.request_count);
        self.execute(
            "INSERT INTO requests (timestamp, track, issue_number, duration_ms, request_count, status_code, \
             idempotency_hit, endpoint, method, correlation_id, client_correlation_id, actor_key_id, agent, venture, \
             repo, error_message, idempotency_key) VALUES ($1, $2, $3, $4, \
             $5, $6, $7, $8, $9, $10, $11, $12, \
             $13, $14, $15, $16, $17)",
            &[
                record.timestamp.into(),
                record.track.into(),
                record.issue_number.into(),
                record.duration_ms.into(),
                count.into(),
                i64::from(record.status_code).into(),
                record.idempotency_hit.into(),
                (&record.endpoint).into(),
                (&record.method).into(),
                uuid.as_ref().map(|uuid| uuid.as_slice()).into(),
                other_id.into(),
                actor.as_ref().map(|actor| actor.as_slice()).into(),
                record.agent.as_ref().into(),
                record.venture.as_ref().into(),
                record.repo.as_ref().into(),
                record.error_message.as_ref().into(),
                record.idempotency_key.as_ref().into(),
            ],
        )?;
        Ok(())
    }

    fn requests(&mut self, limit: u32) -> Result<Vec<RequestRecord>, StoreError> {
        self.query(
            "SELECT timestamp, track, issue_number, duration_ms, status_code, \
             idempotency_hit, endpoint, method, correlation_id, client_correlation_id, actor_key_id, agent, venture, \
             repo, error_message, idempotency_key, COALESCE(request_count, 1) FROM requests \
             ORDER BY id DESC LIMIT $1",
            &[limit.into()],
            &mut read,
        )
    }

    fn delete_requests(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.execute(
            "DELETE FROM requests WHERE id < (SELECT MIN(id) FROM requests) + $1 AND timestamp < $2",
            &[limit.into(), before.into()],
        )
    }

    fn trim_requests(&mut self, keep: u64, limit: u32) -> Result<u64, StoreError> {
        self.execute(
            "DELETE FROM requests WHERE id <= (SELECT MAX(id) FROM requests) - $1 \
             AND id < (SELECT MIN(id) FROM requests) + $2",
            &[keep.into(), limit.into()],
        )
    }
}
