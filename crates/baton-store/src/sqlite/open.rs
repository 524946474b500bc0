//! Opening the file: folder and modes, pragmas, lock timeouts.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_files::{folder_of, make_folder, open_or_create};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::engine::LockTimeout;
use crate::error::StoreError;
use crate::files::file_error;
use crate::migration::LATEST_VERSION;

const STATEMENT_CACHE: usize = 128;

/// Creates the folder (0700) and the file (0600) if they are missing. SQLite gives its side files the mode of the file,
/// and syncs the folder when it creates its log.
pub(super) fn prepare_file(path: &Path) -> Result<(), StoreError> {
    let folder = folder_of(path);
    make_folder(folder).map_err(|source| file_error(folder, source))?;
    open_or_create(path).map(drop).map_err(|source| file_error(path, source))
}

/// Opens a connection that only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = open_writer(path, LockTimeout::Long)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a connection to a file that cannot be written.
///
/// SQLite needs side files to read a file in WAL mode and cannot create them here. Without a log, the file itself is
/// complete and is opened as immutable.
pub(super) fn open_read_only(path: &Path) -> Result<Connection, StoreError> {
    let connection = if is_log_empty(path) {
        let uri = format!("file:{}?immutable=1", uri_path(path));
        Connection::open_with_flags(uri, READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
    } else {
        Connection::open_with_flags(path, READ_ONLY)
    };
    let mut connection = connection?;
    connection.busy_handler(Some(busy_handler(LockTimeout::Long)))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    check_version(&connection)?;
    Ok(connection)
}

pub(super) const READ_ONLY: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Returns true if the file, or the folder in which SQLite creates its side files, cannot be written.
pub(crate) fn is_read_only(path: &Path) -> bool {
    let cannot_write = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err();
    path.exists() && (cannot_write(path) || cannot_write(folder_of(path)))
}

/// Returns true if the file has no log, or an empty one.
pub(super) fn is_log_empty(path: &Path) -> bool {
    log_size(path) == 0
}

fn log_size(path: &Path) -> u64 {
    std::fs::metadata(side_file(path, "-wal")).map_or(0, |log| log.len())
}

fn side_file(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Characters of a path that are encoded: all but `/` and the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes characters that have a meaning in the path of a URI.
pub(super) fn uri_path(path: &Path) -> String {
    percent_encode(path.as_os_str().as_encoded_bytes(), RESERVED).to_string()
}

/// Opens a connection that may write.
pub(super) fn open_writer(path: &Path, lock_timeout: LockTimeout) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    let busy_handler = busy_handler(lock_timeout);
    connection.busy_handler(Some(busy_handler))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // Query plans never depend on bound values. Otherwise SQLite would prepare some statements again on each execution.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Checked before WAL mode is set, which would change a file that a newer Baton keeps in another mode.
    check_version(&connection)?;
    use_wal(&connection, busy_handler)?;
    // FULL syncs each commit to disk.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")?;
    Ok(connection)
}

/// Tunes a connection for a long-running process with many writes: checkpoints run half as often as by default, and the
/// upper pages of the indexes stay cached. A longer log does not pay off: while the log grows, each fsync also records
/// the new file size; only overwriting existing pages is fast.
pub(super) fn tune_for_service(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch("PRAGMA wal_autocheckpoint = 2000; PRAGMA cache_size = -8000;")?;
    Ok(())
}

/// Maximum size of a log that is left to the next process, which reads all of it.
const MAX_LEFT_LOG: u64 = 256 * 1024;

/// Tunes a connection for a process that writes once and ends, such as a hook. By default the last connection copies the
/// log into the database and deletes it, which takes four of five fsyncs. Here this happens only if the log is long.
pub(super) fn tune_for_one_write(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let leaves_log = log_size(path) <= MAX_LEFT_LOG;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leaves_log)?;
    Ok(())
}

/// Sets WAL mode. WAL is a property of the file, so this costs nothing once it is set.
///
/// Retries itself: if several processes set WAL mode on a new file, SQLite returns busy to all but one without calling
/// the busy handler.
fn use_wal(connection: &Connection, wait: fn(i32) -> bool) -> Result<(), StoreError> {
    let mut times = 0;
    loop {
        match connection.execute_batch("PRAGMA journal_mode = WAL").map_err(StoreError::from) {
            Err(StoreError::Busy) if wait(times) => times += 1,
            answer => return answer,
        }
    }
}

/// How often the busy handler retries. SQLite's own handler backs off to 100 ms; writes here take about 1 ms, so a
/// short constant interval is fairer.
const BUSY_INTERVAL: Duration = Duration::from_micros(500);

thread_local! {
    /// When this thread started to wait for the current lock.
    static WAITING_SINCE: Cell<Instant> = Cell::new(Instant::now());
}

/// Returns the busy handler, which SQLite calls while another process holds a lock. It is a plain function pointer
/// without state, so each timeout needs its own instance.
pub(super) fn busy_handler(lock_timeout: LockTimeout) -> fn(i32) -> bool {
    match lock_timeout {
        LockTimeout::Long => wait_up_to::<10_000>,
        LockTimeout::Short => wait_up_to::<1_000>,
        LockTimeout::Minimal => wait_up_to::<100>,
    }
}

/// Sleeps for one interval, or returns false after the timeout. SQLite counts calls from zero for each lock.
fn wait_up_to<const MILLISECONDS: u64>(times: i32) -> bool {
    let now = Instant::now();
    if times == 0 {
        WAITING_SINCE.set(now);
    }
    if now.duration_since(WAITING_SINCE.get()) >= Duration::from_millis(MILLISECONDS) {
        return false;
    }
    std::thread::sleep(BUSY_INTERVAL);
    true
}

/// Reads the schema version. Rejects versions newer than this binary and files of other programs.
pub(super) fn check_version(connection: &Connection) -> Result<i64, StoreError> {
    let found = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
    match found {
        LATEST_VERSION => Ok(found),
        newer if newer > LATEST_VERSION => {
            Err(StoreError::NewerSchema { found: newer, known: LATEST_VERSION })
        }
        _ => check_owner(connection),
    }
}

/// Returns the version of a file that has Baton's tables or no tables at all. A single statement sees one consistent
/// state even while another process creates the schema.
fn check_owner(connection: &Connection) -> Result<i64, StoreError> {
    let sql = "SELECT (SELECT user_version FROM pragma_user_version), \
               EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'sessions'), \
               (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*' \
                ORDER BY rowid LIMIT 1)";
    let (found, has_sessions, table) = connection.query_row(sql, [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?, row.get::<_, Option<String>>(2)?))
    })?;
    match table {
        Some(table) if found == 0 || !has_sessions => Err(StoreError::ForeignDatabase { table }),
        _ => Ok(found),
    }
}
