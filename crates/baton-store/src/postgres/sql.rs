//! Statements on a PostgreSQL connection.

use std::collections::HashMap;
use std::error::Error;

use postgres::error::SqlState;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type};
use postgres::{Client, Row, Statement};

use crate::error::StoreError;
use crate::sql::{Columns, Lock, Param, Sql};
use crate::tx::{Outcome, Tx};

/// A connection and the statements that were prepared on it.
pub(super) struct Connection {
    pub(super) client: Client,
    statements: HashMap<String, Statement>,
}

/// Where it is told that there is something in the queue.
pub(super) const QUEUE_CHANNEL: &str = "baton_queue";

/// Prepared statements are kept up to this many; lists build theirs from a bounded set of conditions.
const STATEMENT_CACHE: usize = 512;

impl Connection {
    pub(super) fn new(client: Client) -> Self {
        Self { client, statements: HashMap::new() }
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        if self.statements.len() >= STATEMENT_CACHE {
            self.statements.clear();
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// A transaction: the connection between its `BEGIN` and its end.
pub(super) struct PostgresTx<'a> {
    pub(super) connection: &'a mut Connection,
    /// Set when the server undid the transaction for reasons that a second try does not share.
    pub(super) retry: bool,
    /// Set while the server takes no further statement because one failed. A commit would then keep nothing and yet
    /// be answered like any other.
    pub(super) failed: bool,
}

impl PostgresTx<'_> {
    fn note(&mut self, error: postgres::Error) -> StoreError {
        self.retry |= is_transient(&error);
        self.failed = true;
        store_error(error)
    }
}

/// Tells whether running the same transaction again may well succeed: a deadlock, a serialization failure, or a
/// connection that broke before the commit was sent.
pub(super) fn is_transient(error: &postgres::Error) -> bool {
    match error.code() {
        Some(code) => {
            [
                SqlState::T_R_SERIALIZATION_FAILURE,
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::ADMIN_SHUTDOWN,
                SqlState::CRASH_SHUTDOWN,
                SqlState::CANNOT_CONNECT_NOW,
            ]
            .contains(code)
                || code.code().starts_with("08")
        }
        None => error.is_closed() || is_io(error),
    }
}

fn is_io(error: &postgres::Error) -> bool {
    error.source().is_some_and(|source| source.is::<std::io::Error>())
}

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Param::Null => Ok(IsNull::Yes),
            Param::Int(number) => number.to_sql(ty, out),
            Param::Bool(flag) => flag.to_sql(ty, out),
            Param::Text(text) => text.to_sql(ty, out),
            Param::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Which variant meets which column is the row files' business; the contract tests cover every statement.
        true
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(ty, out)
    }
}

impl Columns for Row {
    fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        self.try_get(column).map_err(store_error)
    }

    fn opt_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        self.try_get(column).map_err(store_error)
    }

    fn bool(&self, column: usize) -> Result<bool, StoreError> {
        self.try_get(column).map_err(store_error)
    }

    fn opt_bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.try_get(column).map_err(store_error)
    }
}

fn bound<'a>(params: &'a [Param<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

impl Sql for PostgresTx<'_> {
    fn pick(&self, _sqlite: &'static str, postgres: &'static str) -> &'static str {
        postgres
    }

    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        let statement = self.connection.prepare(sql).map_err(|error| self.note(error))?;
        self.connection.client.execute(&statement, &bound(params)).map_err(|error| self.note(error))
    }

    fn query<T>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: &mut dyn FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let statement = self.connection.prepare(sql).map_err(|error| self.note(error))?;
        let rows =
            self.connection.client.query(&statement, &bound(params)).map_err(|error| self.note(error))?;
        rows.iter().map(|row| read(row)).collect()
    }

    fn lock(&mut self, lock: Lock, name: &str) -> Result<(), StoreError> {
        let space = match lock {
            Lock::SessionTuple => "session",
            Lock::IdempotencyKey => "key",
            Lock::Workflow => "workflow",
            Lock::WorkflowName => "workflow name",
        };
        let name = format!("baton {space} {name}");
        self.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[(&name).into()], &mut |_| {
            Ok(())
        })?;
        Ok(())
    }

    fn announce_queue(&mut self) -> Result<(), StoreError> {
        self.query("SELECT pg_notify($1, '')", &[QUEUE_CHANNEL.into()], &mut |_| Ok(())).map(|_| ())
    }
}

impl Tx for PostgresTx<'_> {
    fn nested(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Outcome) -> Result<(), StoreError> {
        self.execute("SAVEPOINT part", &[])?;
        if part(self) == Outcome::Undo {
            self.execute("ROLLBACK TO SAVEPOINT part", &[])?;
            self.failed = false;
        }
        self.execute("RELEASE SAVEPOINT part", &[])?;
        Ok(())
    }
}

/// Says what a PostgreSQL error means to a caller.
pub(super) fn store_error(error: postgres::Error) -> StoreError {
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => StoreError::Full,
        Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => StoreError::Busy,
        Some(_) if !is_transient(&error) => StoreError::Statement { source: error.into() },
        None if !is_transient(&error) => StoreError::Statement { source: error.into() },
        _ => StoreError::Unavailable {
            message: "the PostgreSQL server went away".into(),
            source: Some(error.into()),
        },
    }
}
