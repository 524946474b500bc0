//! Rows of idempotency keys.

use baton_core::{KeyClaim, KeyRecord, KeyScope, Timestamp};

use crate::error::StoreError;
use crate::sql::{Columns, Lock, RowReader};
use crate::tx::Tx;

fn read(columns: &dyn Columns) -> Result<KeyRecord, StoreError> {
    let row = RowReader { table: "idempotency_keys", columns };
    Ok(KeyRecord {
        request_hash: row.hash(0)?,
        response_status: u16::try_from(row.int(1)?).map_err(|problem| row.wrong(1, problem))?,
        response_code: row.opt_text(2)?,
        response_hash: row.hash(3)?,
        response_body: row.text(4)?,
        response_size_bytes: u64::try_from(row.int(5)?).map_err(|problem| row.wrong(5, problem))?,
        response_truncated: row.bool(6)?,
        created_at: row.time(7)?,
        expires_at: row.time(8)?,
        correlation_id: row.parsed(9)?,
    })
}

impl dyn Tx + '_ {
    /// Counts keys, including expired keys that are not deleted yet. Reads one index entry per key.
    pub fn count_keys(&mut self) -> Result<u64, StoreError> {
        self.number("idempotency_keys", "SELECT count(*) FROM idempotency_keys", &[])
    }

    /// Claims a key. Other transactions that use the same key wait until this one ends and then find its recorded
    /// response. An expired key counts as new.
    pub fn claim_key(&mut self, scope: &KeyScope, now: Timestamp) -> Result<KeyClaim, StoreError> {
        let KeyScope { actor_key_id, operation, key } = scope;
        self.lock(Lock::IdempotencyKey, &format!("{actor_key_id} {operation} {key}"))?;
        let found = self.query_one(
            "SELECT request_hash, response_status, response_code, response_hash, response_body, \
             response_size_bytes, response_truncated, created_at, expires_at, correlation_id \
             FROM idempotency_keys WHERE actor_key_id = $1 AND endpoint = $2 AND key = $3",
            &[actor_key_id.as_str().into(), (*operation).into(), key.as_str().into()],
            &mut read,
        )?;
        Ok(match found {
            Some(record) if record.expires_at > now => KeyClaim::Answered(record),
            _ => KeyClaim::Claimed,
        })
    }

    /// Stores the response for a claimed key.
    pub fn record_key(&mut self, scope: &KeyScope, record: &KeyRecord) -> Result<(), StoreError> {
        // An expired record of the same key may still exist; it is replaced.
        self.run(
            "INSERT INTO idempotency_keys (actor_key_id, endpoint, key, request_hash, response_status, \
             response_code, response_hash, response_body, response_size_bytes, response_truncated, created_at, \
             expires_at, correlation_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
             ON CONFLICT (actor_key_id, endpoint, key) DO UPDATE SET request_hash = excluded.request_hash, \
             response_status = excluded.response_status, response_code = excluded.response_code, \
             response_hash = excluded.response_hash, response_body = excluded.response_body, \
             response_size_bytes = excluded.response_size_bytes, \
             response_truncated = excluded.response_truncated, created_at = excluded.created_at, \
             expires_at = excluded.expires_at, correlation_id = excluded.correlation_id",
            &[
                scope.actor_key_id.as_str().into(),
                scope.operation.into(),
                scope.key.as_str().into(),
                (&record.request_hash.to_string()).into(),
                i64::from(record.response_status).into(),
                record.response_code.as_ref().into(),
                (&record.response_hash.to_string()).into(),
                (&record.response_body).into(),
                i64::try_from(record.response_size_bytes).unwrap_or(i64::MAX).into(),
                record.response_truncated.into(),
                record.created_at.into(),
                record.expires_at.into(),
                record.correlation_id.as_str().into(),
            ],
        )
    }

    /// Deletes at most `limit` expired keys and returns their number.
    pub fn delete_expired_keys(&mut self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let sql = self.pick(
            "DELETE FROM idempotency_keys WHERE rowid IN \
             (SELECT rowid FROM idempotency_keys WHERE expires_at <= $1 LIMIT $2)",
            "DELETE FROM idempotency_keys WHERE ctid IN \
             (SELECT ctid FROM idempotency_keys WHERE expires_at <= $1 LIMIT $2)",
        );
        self.execute(sql, &[now.into(), limit.into()])
    }
}
