//! The schema version of a PostgreSQL database: rejects a newer one, migrates an older one, creates a missing one.
//!
//! The operator makes backups before a migration (`pg_dump`), because there is no database file to copy. All pending
//! migrations are one transaction, so a failed migration does not change the schema.

use std::time::Duration;

use tokio_postgres::Row;

use crate::engine::OlderSchema;
use crate::error::StoreError;
use crate::migration::{LATEST_VERSION, Migration};
use crate::postgres::client::Client;
use crate::postgres::open::{Scope, limit_statements};

/// Timeout of one statement of a migration.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Creates the schema or migrates it to the latest version, one process at a time. Others wait up to ten minutes.
pub(super) fn migrate(client: &mut Client, older_schema: OlderSchema) -> Result<(), StoreError> {
    let found = check_version(client)?;
    if found == LATEST_VERSION {
        return Ok(());
    }
    if found > 0 && older_schema == OlderSchema::Refuse {
        return Err(StoreError::OlderSchema { found, known: LATEST_VERSION });
    }
    let statement_timeout = client.statement_timeout();
    // The isolation level is explicit because a server may have another default: after the lock is granted, the changes
    // of the previous lock holder must be visible. A failure closes the connection, which rolls everything back.
    begin_migration(client)?;
    let found = newest(client)?;
    run_migrations(client, found, LATEST_VERSION)?;
    client.batch_execute("COMMIT")?;
    client.set_statement_timeout(statement_timeout);
    Ok(())
}

/// Starts a transaction that changes the schema, with an exclusive lock and long timeouts.
pub(super) fn begin_migration(client: &mut Client) -> Result<(), StoreError> {
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED")?;
    limit_statements(client, STATEMENT_TIMEOUT, Scope::Transaction)?;
    client.batch_execute(
        "SET LOCAL lock_timeout = '600s'; \
             SELECT pg_advisory_xact_lock(hashtextextended('baton migrate', 0))",
    )?;
    create_version_table(client)
}

pub(super) fn create_version_table(client: &mut Client) -> Result<(), StoreError> {
    client.batch_execute(
        "CREATE TABLE IF NOT EXISTS baton_schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, \
         applied_at TIMESTAMPTZ NOT NULL DEFAULT now())",
    )?;
    Ok(())
}

/// Migrates the schema from one version to another, inside a transaction.
pub(super) fn run_migrations(client: &mut Client, from: i64, to: i64) -> Result<(), StoreError> {
    for migration in Migration::between(from, to) {
        client.batch_execute(migration.postgres)?;
        let insert = client.prepare("INSERT INTO baton_schema (version, name) VALUES ($1, $2)")?;
        client.execute(&insert, &[&migration.version, &migration.name])?;
    }
    Ok(())
}

/// Reads the schema version and rejects versions newer than this binary. Returns zero if there is no schema.
pub(super) fn check_version(client: &mut Client) -> Result<i64, StoreError> {
    let rows = query(client, "SELECT to_regclass('baton_schema') IS NOT NULL")?;
    let exists = rows.first().is_some_and(|row| row.try_get::<_, bool>(0).unwrap_or(false));
    if exists { newest(client) } else { Ok(0) }
}

fn newest(client: &mut Client) -> Result<i64, StoreError> {
    let version: Option<i64> = match query(client, "SELECT max(version) FROM baton_schema")?.first() {
        Some(row) => row.try_get(0)?,
        None => None,
    };
    let found = version.unwrap_or(0);
    if found > LATEST_VERSION {
        return Err(StoreError::NewerSchema { found, known: LATEST_VERSION });
    }
    Ok(found)
}

fn query(client: &mut Client, sql: &str) -> Result<Vec<Row>, StoreError> {
    Ok(client.query_once(sql, &[])?)
}
