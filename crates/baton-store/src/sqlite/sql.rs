//! Statements on a SQLite connection.

use std::cell::Cell;

use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rusqlite::types::{ToSql, ToSqlOutput, Value as OwnedValue, ValueRef};
use rusqlite::{Connection, ErrorCode, Row};

use crate::column::{Columns, Param};
use crate::error::StoreError;
use crate::sql::{Lock, Sql};
use crate::tx::{Outcome, Tx};

/// A transaction on a connection, between `BEGIN` and `COMMIT` or `ROLLBACK`.
pub(super) struct SqliteTx<'a> {
    pub(super) connection: &'a Connection,
    /// Set when the queue watchers must be notified after the commit. `None` for a read transaction.
    pub(super) notify_queue: Option<&'a Cell<bool>>,
}

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Param::Null => ToSqlOutput::Owned(OwnedValue::Null),
            Param::Int(number) => ToSqlOutput::Owned(OwnedValue::Integer(*number)),
            Param::Bool(flag) => ToSqlOutput::Owned(OwnedValue::Integer(i64::from(*flag))),
            Param::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Param::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl Columns for Row<'_> {
    fn int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        self.get(column).map_err(store_error)
    }

    fn text(&self, column: usize) -> Result<Option<String>, StoreError> {
        self.get(column).map_err(store_error)
    }

    fn bool(&self, column: usize) -> Result<Option<bool>, StoreError> {
        self.get(column).map_err(store_error)
    }

    fn bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(column).map_err(store_error)
    }
}

impl Sql for SqliteTx<'_> {
    fn pick(&self, sqlite: &'static str, _postgres: &'static str) -> &'static str {
        sqlite
    }

    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        let changed = statement.execute(rusqlite::params_from_iter(params)).map_err(store_error)?;
        Ok(changed as u64)
    }

    fn each_row(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: &mut dyn FnMut(&dyn Columns) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        let mut rows = statement.query(rusqlite::params_from_iter(params)).map_err(store_error)?;
        while let Some(row) = rows.next().map_err(store_error)? {
            read(row)?;
        }
        Ok(())
    }

    fn lock(&mut self, _lock: Lock, _name: &str) -> Result<(), StoreError> {
        // BEGIN IMMEDIATE already locks the whole file for the only writer.
        Ok(())
    }

    fn announce_queue(&mut self) -> Result<(), StoreError> {
        if let Some(notify_queue) = self.notify_queue {
            notify_queue.set(true);
        }
        Ok(())
    }
}

impl SqliteTx<'_> {
    pub(super) fn run_cached(&self, sql: &str) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        statement.execute([]).map_err(store_error)?;
        Ok(())
    }
}

impl Tx for SqliteTx<'_> {
    fn nested(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Outcome) -> Result<(), StoreError> {
        self.run_cached("SAVEPOINT part")?;
        let outcome = part(self);
        if self.connection.is_autocommit() {
            // SQLite rolled the whole transaction back, as it does when the disk is full.
            return Err(StoreError::Full);
        }
        if outcome == Outcome::RollBack {
            self.run_cached("ROLLBACK TO part")?;
        }
        self.run_cached("RELEASE part")
    }
}

/// Converts an SQLite error.
pub(super) fn store_error(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        Some(ErrorCode::DiskFull) => StoreError::Full,
        // The shared-memory file of the log could not be extended; the usual reason is a full disk.
        _ if error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE) => {
            StoreError::Full
        }
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly,
        Some(ErrorCode::NotADatabase) => StoreError::unavailable("the file is not a Baton database"),
        Some(ErrorCode::DatabaseCorrupt) => StoreError::caused_by("the file is damaged", error),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::caused_by("the file cannot be opened or written", error)
        }
        Some(ErrorCode::SystemIoFailure) => StoreError::caused_by("the disk failed to read or write", error),
        _ => StoreError::Statement { source: error.into() },
    }
}
