//! Rows of idempotency keys.

use baton_core::{KeyClaim, KeyRecord, KeyScope, Timestamp};

use crate::error::StoreError;
use crate::record::{Record, record, replacing};
use crate::tx::{Lock, Tx};

record! {
    "idempotency_keys", KeyRecord {
        request_hash, response_status, response_code, response_hash, response_body, response_size_bytes,
        response_truncated, created_at, expires_at, correlation_id,
    }
}

impl dyn Tx + '_ {
    /// Counts keys, including expired keys that are not deleted yet. Reads one index entry per key.
    pub fn count_keys(&mut self) -> Result<u64, StoreError> {
        self.number("SELECT count(*) FROM idempotency_keys", &[])
    }

    /// Claims a key. Other transactions that use the same key wait until this one ends and then find its recorded
    /// response. An expired key counts as new.
    pub fn claim_key(&mut self, scope: &KeyScope, now: Timestamp) -> Result<KeyClaim, StoreError> {
        let KeyScope { actor_key_id, operation, key } = scope;
        self.lock(Lock::IdempotencyKey, &format!("{actor_key_id} {operation} {key}"))?;
        let found = self.record::<KeyRecord>(
            "WHERE actor_key_id = $1 AND endpoint = $2 AND key = $3",
            &[actor_key_id.into(), (*operation).into(), key.as_str().into()],
        )?;
        Ok(match found {
            Some(record) if record.expires_at > now => KeyClaim::Answered(record),
            _ => KeyClaim::Claimed,
        })
    }

    /// Stores the response for a claimed key.
    pub fn record_key(&mut self, scope: &KeyScope, record: &KeyRecord) -> Result<(), StoreError> {
        let mut values = record.values()?;
        values.extend([
            ("actor_key_id", (&scope.actor_key_id).into()),
            ("endpoint", scope.operation.into()),
            ("key", scope.key.as_str().into()),
        ]);
        // An expired record of the same key may still exist; it is replaced.
        let rest = replacing("actor_key_id, endpoint, key", KeyRecord::COLUMNS);
        self.insert("idempotency_keys", values, &rest)
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
