//! Read-only access to SQLite databases of other programs.
//!
//! Nothing is written to the database or its log. The statements belong to the caller, who knows the schema.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use serde_json::{Map, Value};

use super::open::{READ_ONLY, busy_handler, is_log_empty, uri_path};
use crate::engine::LockTimeout;

/// Start of every SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Position of the byte with the journal mode, and its value for WAL.
const WAL_BYTE: (usize, u8) = (18, 2);

/// A database of another program.
#[derive(Debug)]
pub struct ForeignDatabase {
    connection: Connection,
}

/// A database of another program cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// The file cannot be read.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// The file is not a SQLite database.
    #[error("it is not a SQLite database")]
    NotSqlite,
    /// SQLite cannot read the database.
    #[error("{0}")]
    Unreadable(String),
}

impl From<rusqlite::Error> for ForeignError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl ForeignDatabase {
    /// Opens a database for reading.
    ///
    /// A database in WAL mode whose log is empty is complete without the log, and is opened as immutable: SQLite would
    /// create side files for it otherwise.
    ///
    /// # Errors
    ///
    /// The file is missing, unreadable or not a SQLite database.
    pub fn open(path: &Path) -> Result<Self, ForeignError> {
        let mut header = [0; 100];
        let read = File::open(path)?.read(&mut header)?;
        if read < header.len() || !header.starts_with(MAGIC) {
            return Err(ForeignError::NotSqlite);
        }
        let is_wal = header.get(WAL_BYTE.0) == Some(&WAL_BYTE.1);
        let parameters = if is_wal && is_log_empty(path) { "?immutable=1" } else { "" };
        let uri = format!("file:{}{parameters}", uri_path(path));
        let mut connection = Connection::open_with_flags(uri, READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?;
        connection.busy_handler(Some(busy_handler(LockTimeout::Long)))?;
        Ok(Self { connection })
    }

    /// Returns true if the database has a table.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn has_table(&self, name: &str) -> Result<bool, ForeignError> {
        let found = self.rows("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1", &[name])?;
        Ok(!found.is_empty())
    }

    /// Runs a query and returns its rows as objects with the names of the columns. Blobs are read as text.
    ///
    /// # Errors
    ///
    /// The statement is invalid for this database, or the database cannot be read.
    pub fn rows(&self, sql: &str, params: &[&str]) -> Result<Vec<Map<String, Value>>, ForeignError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query(params_from_iter(params))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let mut columns = Map::new();
            for (place, name) in names.iter().enumerate() {
                columns.insert(name.clone(), json_of(row.get_ref(place)?));
            }
            found.push(columns);
        }
        Ok(found)
    }
}

fn json_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a database in a journal mode with one row.
    fn database(folder: &Path, mode: &str) -> (std::path::PathBuf, Connection) {
        let path = folder.join("a b?#%.db");
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", mode).unwrap();
        connection
            .execute_batch("CREATE TABLE t (k TEXT, v BLOB); INSERT INTO t VALUES ('a', X'7b7d')")
            .unwrap();
        (path, connection)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn reads_databases_in_every_journal_mode_without_changing_them() {
        for (mode, is_open) in [("DELETE", true), ("DELETE", false), ("WAL", true), ("WAL", false)] {
            let folder = tempfile::tempdir().unwrap();
            let (path, writer) = database(folder.path(), mode);
            let _writer = is_open.then_some(writer);
            let log = path.with_file_name("a b?#%.db-wal");
            let before = (std::fs::read(&path).unwrap(), std::fs::read(&log).ok(), names(folder.path()));
            let foreign = ForeignDatabase::open(&path).unwrap();
            assert!(foreign.has_table("t").unwrap() && !foreign.has_table("u").unwrap());
            let rows = foreign.rows("SELECT k, v FROM t WHERE k = $1", &["a"]).unwrap();
            assert_eq!(serde_json::to_value(rows).unwrap(), serde_json::json!([{ "k": "a", "v": "{}" }]));
            assert!(foreign.rows("DELETE FROM t", &[]).is_err());
            drop(foreign);
            let after = (std::fs::read(&path).unwrap(), std::fs::read(&log).ok(), names(folder.path()));
            assert_eq!(before, after, "{mode} {is_open}");
        }
    }

    #[test]
    fn files_of_other_kinds_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        assert!(matches!(ForeignDatabase::open(&path), Err(ForeignError::File(_))));
        std::fs::write(&path, "not a database").unwrap();
        assert!(matches!(ForeignDatabase::open(&path), Err(ForeignError::NotSqlite)));
        std::fs::write(&path, [MAGIC, &[7; 4_096]].concat()).unwrap();
        let read = ForeignDatabase::open(&path).and_then(|database| database.has_table("t"));
        assert!(matches!(read, Err(ForeignError::Unreadable(_))), "{read:?}");
    }
}
