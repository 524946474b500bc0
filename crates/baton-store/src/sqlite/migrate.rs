//! The schema version of a SQLite file: rejects a newer one, backs up and migrates an older one, creates a missing one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_files::{LockFile, folder_of};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::engine::{LockTimeout, OlderSchema};
use crate::error::StoreError;
use crate::files::file_error;
use crate::migration::{LATEST_VERSION, Migration};
use crate::sqlite::open::{check_version, open_writer, prepare_file};

/// How long to wait for another process that upgrades the same file. A backup of several gigabytes takes minutes.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(600);

/// Creates the schema or migrates it to the latest version. If it is current, this costs one read of the file header.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    older_schema: OlderSchema,
) -> Result<(), StoreError> {
    match check_version(connection)? {
        LATEST_VERSION => return Ok(()),
        0 => return apply(connection, path),
        found if older_schema == OlderSchema::Refuse => {
            return Err(StoreError::OlderSchema { found, known: LATEST_VERSION });
        }
        _ => {}
    }
    // Acquired before SQLite's write lock, for which other processes wait only a few seconds.
    let _lock = lock_for_upgrade(path)?;
    if check_version(connection)? == LATEST_VERSION {
        return Ok(());
    }
    remove_torn_backups(path);
    apply(connection, path)
}

/// Applies the missing migrations in one transaction. An older file is backed up after the migrations succeeded and
/// before they are committed, so a failing migration does not cost a backup.
fn apply(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated the file meanwhile.
    let found = check_version(&transaction)?;
    run_migrations(&transaction, found, LATEST_VERSION)?;
    if !(1..LATEST_VERSION).contains(&found) {
        return Ok(transaction.commit()?);
    }
    // This connection holds the write lock, so the backed-up state is the state that was migrated.
    let backup = back_up(path, found)?;
    transaction.commit().inspect_err(|_| remove_file(&backup))?;
    // A warning, so that it is visible at the default log level. It happens once per release.
    tracing::warn!(backup = %backup.display(), from = found, to = LATEST_VERSION, "upgraded the database");
    Ok(())
}

/// Migrates the schema from one version to another, inside a transaction.
pub(super) fn run_migrations(connection: &Connection, from: i64, to: i64) -> Result<(), StoreError> {
    for migration in Migration::between(from, to) {
        connection.execute_batch(migration.sqlite)?;
        connection.pragma_update(None, "user_version", migration.version)?;
    }
    Ok(())
}

/// Waits until no other process upgrades a file in this folder. The lock is released when the result is dropped or the
/// process dies.
fn lock_for_upgrade(path: &Path) -> Result<LockFile, StoreError> {
    let folder = folder_of(path);
    let lock = LockFile::open(folder).map_err(|source| file_error(folder, source))?;
    // Where folders cannot be locked, SQLite's write lock still serializes migrations.
    if !lock.try_lock().unwrap_or(true) {
        tracing::warn!("waiting for another process that upgrades the database");
        if !lock.lock_within(UPGRADE_TIMEOUT).unwrap_or(true) {
            return Err(StoreError::Busy);
        }
    }
    Ok(lock)
}

/// Copies the committed state through a separate connection, because `VACUUM` cannot run inside a transaction. The copy
/// has a temporary name until it is complete, checked and synced to disk, and replaces an earlier copy of the same
/// version.
fn back_up(path: &Path, version: i64) -> Result<PathBuf, StoreError> {
    let backup = backup_name(path, version);
    let temporary = Temporary(temporary_name(path));
    // VACUUM INTO accepts an existing empty file, which lets us set its mode.
    prepare_file(&temporary.0)?;
    let target = temporary.0.to_string_lossy();
    open_writer(path, LockTimeout::Long)?.execute("VACUUM INTO ?1", [&target])?;
    verify(&temporary.0, version)?;
    let on_disk = |path: &Path| File::open(path).and_then(|file| file.sync_all());
    on_disk(&temporary.0)
        .and_then(|()| std::fs::rename(&temporary.0, &backup))
        .and_then(|()| backup.parent().map_or(Ok(()), on_disk))
        .map_err(|source| file_error(&backup, source))?;
    Ok(backup)
}

/// Checks that a copy is complete: it has the version of the original and passes `quick_check`.
fn verify(copy: &Path, version: i64) -> Result<(), StoreError> {
    let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let problem: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == version && problem == "ok" {
        return Ok(());
    }
    Err(StoreError::unavailable(format!(
        "the backup before the upgrade is not a copy of the database (version {found}, {problem})"
    )))
}

fn backup_name(path: &Path, version: i64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-v{version}.backup.db"));
    path.with_file_name(name)
}

/// The name does not depend on the version, so the next upgrade removes the file of a killed process.
fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push("-upgrade.backup.db.tmp");
    path.with_file_name(name)
}

/// Removes incomplete copies left by killed processes: those with the temporary name, and those that still have a
/// SQLite journal.
fn remove_torn_backups(path: &Path) {
    remove_file(&temporary_name(path));
    let folder = folder_of(path);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some(copy) = name.to_str().and_then(|name| name.strip_suffix("-journal"))
            && copy.ends_with(".backup.db")
        {
            remove_file(&folder.join(copy));
        }
    }
}

/// A file that is removed on drop unless it was renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        remove_file(&self.0);
    }
}

/// Removes a file and its SQLite journal. If removal fails, the next upgrade tries again.
fn remove_file(path: &Path) {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    for path in [path, Path::new(&journal)] {
        if let Err(error) = std::fs::remove_file(path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "cannot remove a temporary file");
        }
    }
}
