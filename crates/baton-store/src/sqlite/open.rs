//! Opening the file: folder and modes, pragmas, waiting for other processes.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::sqlite::migrate::gate;
use crate::sqlite::sql::store_error;

const STATEMENT_CACHE: usize = 128;

/// Makes the folder (0700) and the file (0600) when they are missing; SQLite gives its side files the file's mode.
pub(super) fn prepare_file(path: &Path) -> Result<(), StoreError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreError::Folder { path, source }
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at(folder))?;
    }
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(at(path))?;
    Ok(())
}

/// Opens a connection that may write.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// Opens a connection that only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.pragma_update(None, "query_only", true).map_err(store_error)?;
    Ok(connection)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let mut connection = Connection::open_with_flags(path, flags).map_err(store_error)?;
    connection.busy_handler(Some(wait_for_other_process)).map_err(store_error)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // Plans never depend on bound values: SQLite would otherwise prepare some statements anew each time they are run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(store_error)?;
    // Before WAL is asked for, which would already change a file that a newer Baton keeps in another mode.
    gate(&connection)?;
    use_wal(&connection)?;
    // FULL makes each commit an fsync.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;").map_err(store_error)?;
    Ok(connection)
}

/// Sets a writer up for a process that lives on and writes much: checkpoints come half as often as by default, and the
/// upper pages of the indexes stay in memory. A much longer log would not pay: while it grows, each fsync has to record
/// the new size of the file too, and only one that is written over again is quick.
pub(super) fn tune_for_service(connection: &Connection) -> Result<(), StoreError> {
    connection
        .execute_batch("PRAGMA wal_autocheckpoint = 2000; PRAGMA cache_size = -8000;")
        .map_err(store_error)
}

/// Asks for WAL, which is a property of the file and costs nothing once it is set.
///
/// Waits here: when several processes ask for it on a fresh file, SQLite turns all but one away without waiting.
fn use_wal(connection: &Connection) -> Result<(), StoreError> {
    let mut times = 0;
    loop {
        match connection.execute_batch("PRAGMA journal_mode = WAL").map_err(store_error) {
            Err(StoreError::Busy) if wait_for_other_process(times) => times += 1,
            answer => return answer,
        }
    }
}

/// Waits a moment for another process to finish its write, for ten seconds in all.
///
/// SQLite's own handler backs off to 100 ms; writes here take about one, so short and steady is fairer.
fn wait_for_other_process(times: i32) -> bool {
    const STEP: Duration = Duration::from_micros(500);
    const LIMIT: i32 = 20_000;
    if times >= LIMIT {
        return false;
    }
    std::thread::sleep(STEP);
    true
}
