//! The schema version gate: refuse what is newer, back up and bring on what is older.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;
use crate::migration::{LATEST_VERSION, Migration};
use crate::sqlite::sql::store_error;

/// Brings the schema to the latest version. The usual case costs one read of the file's header.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    if gate(connection)? == LATEST_VERSION {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store_error)?;
    // Another process may have been first.
    let found = gate(&transaction)?;
    if (1..LATEST_VERSION).contains(&found) {
        // Nobody else can write now, so what is backed up is what will be migrated, and it is backed up once.
        let backup = back_up(path, found)?;
        // Worth a line at any usual log level: it happens once a release.
        tracing::warn!(backup = %backup.display(), from = found, to = LATEST_VERSION, "backed up before migrating");
    }
    for migration in Migration::after(found) {
        transaction.execute_batch(migration.sqlite).map_err(store_error)?;
        transaction.pragma_update(None, "user_version", migration.version).map_err(store_error)?;
    }
    transaction.commit().map_err(store_error)
}

/// Reads the version and refuses one that this binary does not know.
pub(super) fn gate(connection: &Connection) -> Result<i64, StoreError> {
    let found = connection
        .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
        .map_err(store_error)?;
    if found > LATEST_VERSION {
        return Err(StoreError::NewerSchema { found, known: LATEST_VERSION });
    }
    Ok(found)
}

/// Copies the file as it was last committed, through a connection of its own: `VACUUM` runs in no transaction.
fn back_up(path: &Path, version: i64) -> Result<PathBuf, StoreError> {
    let stamp = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-v{version}-{stamp}.backup.db"));
    let backup = path.with_file_name(name);
    // VACUUM INTO fills an empty file that exists, which lets us choose its mode.
    super::open::prepare_file(&backup)?;
    let target = backup.to_string_lossy();
    super::open::open_writer(path)?.execute("VACUUM INTO ?1", [&target]).map_err(store_error)?;
    Ok(backup)
}
