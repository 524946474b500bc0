//! Reading and writing all rows of a SQLite file, for archives.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_files::{make_folder, sync_folder};
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use super::migrate::{migrate, run_migrations};
use super::open::{check_version, open_reader, open_writer, prepare_file};
use crate::archive::{
    ArchiveError, REBUILD_INDEX, Record, Replace, Row, Schema, Source, Table, Target, Value,
};
use crate::blobs::BlobFolder;
use crate::engine::{LockTimeout, OlderSchema};
use crate::error::StoreError;
use crate::files::file_error;
use crate::migration::LATEST_VERSION;

/// Prefix of the folder that keeps a replaced store.
const KEPT_PREFIX: &str = "replaced-";
/// Extension of that folder while it is incomplete.
const PARTIAL_EXTENSION: &str = "partial";
/// How long to wait for other processes to close the file before it is replaced.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_POLL: Duration = Duration::from_millis(50);
/// Size of the page cache while an archive is imported, in KiB.
const IMPORT_CACHE_KIB: i64 = 65_536;

/// A file that is read in one transaction.
pub(crate) struct SqliteSource {
    connection: Connection,
}

/// Opens a file for reading every row. Also returns the schema version.
pub(crate) fn open_source(path: &Path) -> Result<(SqliteSource, i64), ArchiveError> {
    if !path.exists() {
        return Err(ArchiveError::NoDatabase { place: path.display().to_string() });
    }
    let connection = open_reader(path)?;
    connection.execute_batch("BEGIN")?;
    // The first read creates the snapshot.
    let version = check_version(&connection)?;
    if version == 0 {
        return Err(ArchiveError::NoDatabase { place: path.display().to_string() });
    }
    Ok((SqliteSource { connection }, version))
}

impl Source for SqliteSource {
    fn rows(
        &mut self,
        table: &Table,
        each: &mut dyn FnMut(Row) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let sql = format!("SELECT {} FROM \"{}\"", table.columns(), table.name);
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            each(read_row(table, row)?)?;
        }
        Ok(())
    }

    fn sequence(&mut self, table: &Table) -> Result<i64, ArchiveError> {
        let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1";
        Ok(self.connection.query_row(sql, [&table.name], |row| row.get(0))?)
    }
}

fn read_row(table: &Table, row: &rusqlite::Row<'_>) -> Result<Row, StoreError> {
    let value = |column: usize| {
        Ok(match row.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Int(number),
            ValueRef::Text(text) => Value::Text(String::from_utf8(text.to_vec()).map_err(|error| {
                StoreError::unavailable(format!("{} has text that is not UTF-8: {error}", table.name))
            })?),
            ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
            ValueRef::Real(_) => {
                return Err(StoreError::unavailable(format!(
                    "{} has a value of an unknown type",
                    table.name
                )));
            }
        })
    };
    let fields = (0..table.fields.len()).map(value).collect::<Result<Record, StoreError>>()?;
    let blob = match table.content {
        Some(_) => row.get(table.fields.len())?,
        None => None,
    };
    Ok(Row { fields, blob })
}

/// A file that is written in one transaction.
pub(crate) struct SqliteTarget {
    connection: Connection,
}

/// Opens a file for adding records. Creates and migrates it if necessary.
pub(crate) fn open_target(path: &Path) -> Result<SqliteTarget, ArchiveError> {
    prepare_file(path)?;
    let mut connection = open_writer(path, LockTimeout::Long)?;
    migrate(&mut connection, path, OlderSchema::Migrate)?;
    begin(&connection)?;
    Ok(SqliteTarget { connection })
}

fn begin(connection: &Connection) -> Result<(), StoreError> {
    let sql = format!("PRAGMA cache_size = -{IMPORT_CACHE_KIB}; BEGIN IMMEDIATE");
    Ok(connection.execute_batch(&sql)?)
}

/// Prepares a file for replacement: keeps its content in a folder beside it, then creates an empty schema of `version`.
pub(crate) fn open_replacement(
    path: &Path,
    version: i64,
    how: &Replace<'_>,
) -> Result<(SqliteTarget, Option<PathBuf>), ArchiveError> {
    prepare_file(path)?;
    let folder = path.parent().unwrap_or(Path::new(".")).join(format!("{KEPT_PREFIX}{}", how.stamp));
    let (connection, kept) = match prepare_replacement(path, &folder, how) {
        Ok(prepared) => prepared,
        Err(ArchiveError::DamagedTarget { .. }) if how.force => {
            move_aside(path, &folder, how.blobs)?;
            prepare_file(path)?;
            (open_exclusively(path)?, Some(folder))
        }
        Err(error) => return Err(error),
    };
    begin(&connection)?;
    drop_tables(&connection)?;
    run_migrations(&connection, 0, version)?;
    Ok((SqliteTarget { connection }, kept))
}

/// Opens the file exclusively and copies its content into the folder.
fn prepare_replacement(
    path: &Path,
    folder: &Path,
    how: &Replace<'_>,
) -> Result<(Connection, Option<PathBuf>), ArchiveError> {
    let connection = open_exclusively(path)?;
    let (has_rows, has_data) = contents(&connection)?;
    if has_data && !how.force {
        return Err(ArchiveError::NotEmpty);
    }
    if !has_rows {
        return Ok((connection, None));
    }
    remove_partial(folder);
    let temporary = folder.with_extension(PARTIAL_EXTENSION);
    make_folder(&temporary).map_err(|error| file_error(&temporary, error))?;
    let copy = temporary.join(path.file_name().unwrap_or_default());
    prepare_file(&copy)?;
    connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()]).map_err(damaged)?;
    let named = |error| file_error(folder, error);
    File::open(&copy).and_then(|file| file.sync_all()).map_err(named)?;
    if let Some(blobs) = how.blobs {
        keep_blobs(blobs, &temporary).map_err(named)?;
    }
    sync_folder(&temporary).map_err(named)?;
    std::fs::rename(&temporary, folder).map_err(named)?;
    sync_folder(folder.parent().unwrap_or(Path::new("."))).map_err(named)?;
    Ok((connection, Some(folder.to_owned())))
}

/// Removes the folders of killed attempts. The exclusive lock guarantees that no other process is writing them.
fn remove_partial(folder: &Path) {
    let beside = folder.parent().and_then(|parent| std::fs::read_dir(parent).ok());
    for entry in beside.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(KEPT_PREFIX)
            && name.ends_with(&format!(".{PARTIAL_EXTENSION}"))
            && let Err(error) = std::fs::remove_dir_all(entry.path())
        {
            tracing::warn!(%error, path = %entry.path().display(), "cannot remove an incomplete copy");
        }
    }
}

/// Opens the file exclusively: no other process can have it open until this connection is closed.
fn open_exclusively(path: &Path) -> Result<Connection, ArchiveError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let deadline = Instant::now() + CLOSE_TIMEOUT;
    loop {
        let connection = Connection::open_with_flags(path, flags).map_err(damaged)?;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(damaged)?;
        let locked = connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE; ROLLBACK");
        match locked {
            Ok(()) => {
                check_version(&connection)?;
                return Ok(connection);
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                if Instant::now() >= deadline {
                    let who = format!("{} is open in another process", path.display());
                    return Err(ArchiveError::InUse { who });
                }
                drop(connection);
                std::thread::sleep(CLOSE_POLL);
            }
            Err(error) => return Err(damaged(error)),
        }
    }
}

/// Separates damaged files from other failures.
fn damaged(error: rusqlite::Error) -> ArchiveError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            ArchiveError::DamagedTarget { problem: error.to_string() }
        }
        _ => error.into(),
    }
}

/// Returns whether the file has any rows, and whether any of them is user data.
fn contents(connection: &Connection) -> Result<(bool, bool), ArchiveError> {
    let (mut has_rows, mut has_data) = (false, false);
    for table in &Schema::at(check_version(connection)?)?.tables {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM \"{}\")", table.name);
        let found: bool = connection.query_row(&sql, [], |row| row.get(0)).map_err(damaged)?;
        has_rows |= found;
        has_data |= found && table.is_data();
    }
    Ok((has_rows, has_data))
}

/// Hard-links the blobs into the folder, or copies them where the file system has no hard links.
fn keep_blobs(blobs: &BlobFolder, folder: &Path) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(blobs.path()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let target = folder.join(blobs.path().file_name().unwrap_or_default());
    make_folder(&target)?;
    for entry in entries {
        let entry = entry?;
        let copy = target.join(entry.file_name());
        if std::fs::hard_link(entry.path(), &copy).is_err() {
            std::fs::copy(entry.path(), &copy)?;
            File::open(&copy)?.sync_all()?;
        }
    }
    sync_folder(&target)
}

/// Moves an unreadable file and its side files into the folder.
fn move_aside(path: &Path, folder: &Path, blobs: Option<&BlobFolder>) -> Result<(), ArchiveError> {
    let named = |error| file_error(folder, error);
    make_folder(folder).map_err(named)?;
    if let Some(blobs) = blobs {
        keep_blobs(blobs, folder).map_err(named)?;
    }
    for suffix in ["-wal", "-shm", ""] {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        match std::fs::rename(path.with_file_name(&name), folder.join(&name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(named(error).into()),
            _ => {}
        }
    }
    sync_folder(folder).map_err(named)?;
    Ok(())
}

fn drop_tables(connection: &Connection) -> Result<(), StoreError> {
    // The tables of the full-text index are dropped with it.
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' \
               AND name NOT LIKE 'recall!_index!_%' ESCAPE '!'";
    let mut statement = connection.prepare(sql)?;
    let names = statement
        .query_map([], |row| row.get::<_, String>(0))
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)?;
    for name in names {
        connection.execute_batch(&format!("DROP TABLE \"{name}\""))?;
    }
    Ok(())
}

fn bound(value: &Value) -> SqlValue {
    match value {
        Value::Null | Value::Missing(_) => SqlValue::Null,
        Value::Int(number) => SqlValue::Integer(*number),
        Value::Text(text) => SqlValue::Text(text.clone()),
        Value::Bytes(bytes) => SqlValue::Blob(bytes.clone()),
    }
}

impl Target for SqliteTarget {
    fn insert(&mut self, table: &Table, rows: &[Row]) -> Result<u64, StoreError> {
        let places = (1..=table.width()).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "INSERT INTO \"{}\" ({}) VALUES ({places}) ON CONFLICT DO NOTHING",
            table.name,
            table.columns()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut added = 0;
        for row in rows {
            let blob =
                table.content.as_ref().map(|_| row.blob.clone().map_or(SqlValue::Null, SqlValue::Text));
            let values = row.fields.iter().map(bound).chain(blob);
            added += statement.execute(params_from_iter(values))? as u64;
        }
        Ok(added)
    }

    fn find(&mut self, table: &Table, record: &Record) -> Result<Option<Row>, StoreError> {
        let sql =
            format!("SELECT {} FROM \"{}\" WHERE {}", table.columns(), table.name, table.key_condition());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let key = table.key().map(|index| bound(&record[index]));
        let mut rows = statement.query(params_from_iter(key))?;
        rows.next()?.map(|row| read_row(table, row)).transpose()
    }

    fn advance_sequence(&mut self, table: &Table, last: i64) -> Result<(), StoreError> {
        let changed = self
            .connection
            .execute("UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1", (&table.name, last))?;
        if changed == 0 {
            self.connection
                .execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (&table.name, last))?;
        }
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let found = check_version(&self.connection)?;
        run_migrations(&self.connection, found, LATEST_VERSION)?;
        self.connection.execute_batch(REBUILD_INDEX)?;
        self.connection.execute_batch("COMMIT")?;
        // Without a checkpoint, the log file would keep its size after a large import.
        if let Err(error) = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::debug!(%error, "cannot truncate the write-ahead log");
        }
        Ok(())
    }
}
