//! Statements on a SQLite connection.

use std::cell::Cell;

use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rusqlite::types::{ToSql, ToSqlOutput, Value as OwnedValue, ValueRef};
use rusqlite::{Connection, ErrorCode, Row};

use crate::archive::ArchiveError;
use crate::column::{Columns, Param};
use crate::error::StoreError;
use crate::tx::{Lock, Outcome, Sql, Tx};

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
        Ok(self.get(column)?)
    }

    fn text(&self, column: usize) -> Result<Option<String>, StoreError> {
        Ok(self.get(column)?)
    }

    fn bool(&self, column: usize) -> Result<Option<bool>, StoreError> {
        Ok(self.get(column)?)
    }

    fn bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.get(column)?)
    }
}

impl Sql for SqliteTx<'_> {
    fn pick(&self, sqlite: &'static str, _postgres: &'static str) -> &'static str {
        sqlite
    }

    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let changed = statement.execute(rusqlite::params_from_iter(params))?;
        Ok(changed as u64)
    }

    fn each_row(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: &mut dyn FnMut(&dyn Columns) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        while let Some(row) = rows.next()? {
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
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute([])?;
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

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            // The shared-memory file of the log could not be extended; the usual reason is a full disk.
            _ if error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE) => {
                Self::Full
            }
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::NotADatabase) => Self::unavailable("the file is not a Baton database"),
            Some(ErrorCode::DatabaseCorrupt) => Self::caused_by("the file is damaged", error),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::caused_by("the file cannot be opened or written", error)
            }
            Some(ErrorCode::SystemIoFailure) => Self::caused_by("the disk failed to read or write", error),
            _ => Self::Statement { source: error.into() },
        }
    }
}

impl From<rusqlite::Error> for ArchiveError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}
