//! The schema version gate on PostgreSQL.
//!
//! A backup before a migration is the operator's (`pg_dump`): a server has no file of ours to copy. All pending
//! changes are one transaction, so a failed migration leaves the schema as it was.

use postgres::{Client, IsolationLevel};

use crate::error::StoreError;
use crate::migration::{LATEST_VERSION, Migration};
use crate::postgres::sql::store_error;
use crate::store::OlderSchema;

/// Creates the schema or brings it to the latest version, one process at a time: the others wait up to ten minutes.
pub(super) fn migrate(client: &mut Client, older_schema: OlderSchema) -> Result<(), StoreError> {
    let found = gate(client)?;
    if found == LATEST_VERSION {
        return Ok(());
    }
    if found > 0 && older_schema == OlderSchema::Refuse {
        return Err(StoreError::OlderSchema { found, known: LATEST_VERSION });
    }
    // Spelt out, as a server may have another default: behind the lock, what others did must be seen.
    let mut transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::ReadCommitted)
        .start()
        .map_err(store_error)?;
    transaction
        .batch_execute(
            "SET LOCAL lock_timeout = '600s'; SET LOCAL statement_timeout = 0; \
             SELECT pg_advisory_xact_lock(hashtextextended('baton migrate', 0)); \
             CREATE TABLE IF NOT EXISTS baton_schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, \
             applied_at TIMESTAMPTZ NOT NULL DEFAULT now())",
        )
        .map_err(store_error)?;
    let found =
        newest(&transaction.query("SELECT max(version) FROM baton_schema", &[]).map_err(store_error)?)?;
    for migration in Migration::after(found) {
        transaction.batch_execute(migration.postgres).map_err(store_error)?;
        transaction
            .execute(
                "INSERT INTO baton_schema (version, name) VALUES ($1, $2)",
                &[&migration.version, &migration.name],
            )
            .map_err(store_error)?;
    }
    transaction.commit().map_err(store_error)
}

/// Reads the version and refuses one that this binary does not know. Zero when there is no schema yet.
pub(super) fn gate(client: &mut Client) -> Result<i64, StoreError> {
    let there = client.query("SELECT to_regclass('baton_schema') IS NOT NULL", &[]).map_err(store_error)?;
    let there = there.first().is_some_and(|row| row.try_get::<_, bool>(0).unwrap_or(false));
    if !there {
        return Ok(0);
    }
    newest(&client.query("SELECT max(version) FROM baton_schema", &[]).map_err(store_error)?)
}

fn newest(rows: &[postgres::Row]) -> Result<i64, StoreError> {
    let version: Option<i64> = match rows.first() {
        Some(row) => row.try_get(0).map_err(store_error)?,
        None => None,
    };
    let found = version.unwrap_or(0);
    if found > LATEST_VERSION {
        return Err(StoreError::NewerSchema { found, known: LATEST_VERSION });
    }
    Ok(found)
}
