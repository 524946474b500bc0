//! Statements on a PostgreSQL connection.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_postgres::{Row, Statement};

use crate::archive::ArchiveError;
use crate::column::{Columns, Param};
use crate::error::StoreError;
use crate::postgres::client::{Client, ClientError};
use crate::postgres::open::{Scope, limit_statements};
use crate::tx::{Lock, Outcome, Sql, Tx};

/// A connection with its prepared statements.
pub(super) struct Connection {
    pub(super) client: Client,
    /// Prepared statements; `None` for a statement that was executed once without being prepared.
    statements: HashMap<String, Option<Statement>>,
    /// Default timeout of statements at the client.
    statement_timeout: Duration,
}

/// Channel on which added queue items are announced.
pub(super) const QUEUE_CHANNEL: &str = "baton_queue";

/// Statement timeout in transactions that maintain the whole store.
const LONG_STATEMENT_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum number of cached statements. Lists build theirs from a bounded set of conditions.
const STATEMENT_CACHE: usize = 512;

impl Connection {
    pub(super) fn new(client: Client) -> Self {
        let statement_timeout = client.statement_timeout();
        Self { client, statements: HashMap::new(), statement_timeout }
    }

    /// Commits or rolls back, and restores the default statement timeout.
    pub(super) fn end_transaction(&mut self, command: &str) -> Result<(), ClientError> {
        let ended = self.client.batch_execute(command);
        self.client.set_statement_timeout(self.statement_timeout);
        ended
    }

    /// Returns the prepared statement; `None` on the first use. Preparing a statement takes an extra round trip, which
    /// would be wasted in processes, such as hooks, that execute each statement once.
    fn prepared(&mut self, sql: &str) -> Result<Option<Statement>, ClientError> {
        if self.statements.len() >= STATEMENT_CACHE {
            self.statements.clear();
        }
        let statement = match self.statements.get(sql) {
            Some(Some(statement)) => return Ok(Some(statement.clone())),
            Some(None) => Some(self.client.prepare(sql)?),
            None => None,
        };
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, ClientError> {
        match self.prepared(sql)? {
            Some(statement) => self.client.execute(&statement, &bound(params)),
            None => self.client.execute_once(sql, &typed(params)),
        }
    }

    fn query(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, ClientError> {
        match self.prepared(sql)? {
            Some(statement) => self.client.query(&statement, &bound(params)),
            None => self.client.query_once(sql, &typed(params)),
        }
    }
}

/// A transaction on a connection, between `BEGIN` and `COMMIT` or `ROLLBACK`.
pub(super) struct PostgresTx<'a> {
    pub(super) connection: &'a mut Connection,
    /// Set if the server aborted the transaction for a reason that a retry may not have.
    pub(super) retry: bool,
    /// Set if the server rejects further statements because one failed. A `COMMIT` would then roll back and still be
    /// answered like a successful one.
    pub(super) failed: bool,
    /// Set if a statement timed out at the client.
    pub(super) timed_out: bool,
}

impl PostgresTx<'_> {
    /// Remembers what a failed statement means for the transaction, and converts its error.
    fn record_failure(&mut self, error: ClientError) -> StoreError {
        self.retry |= is_transient(&error);
        self.timed_out |= matches!(error, ClientError::TimedOut(_));
        self.failed = true;
        error.into()
    }
}

/// Returns true if a retry of the transaction may succeed: after a deadlock, a serialization failure, or a connection
/// that failed before the commit was sent.
pub(super) fn is_transient(error: &ClientError) -> bool {
    let ClientError::Database(error) = error else { return false };
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

fn is_io(error: &tokio_postgres::Error) -> bool {
    error.source().is_some_and(|source| source.is::<std::io::Error>())
}

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Param::Null => Ok(IsNull::Yes),
            Param::Int(number) => number.to_sql(ty, out),
            Param::Bool(flag) => flag.to_sql(ty, out),
            Param::Text(text) => text.as_ref().to_sql(ty, out),
            Param::Bytes(bytes) => bytes.as_ref().to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // The row files choose the types; the contract tests cover every statement.
        true
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(ty, out)
    }
}

impl Columns for Row {
    fn int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn text(&self, column: usize) -> Result<Option<String>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn bool(&self, column: usize) -> Result<Option<bool>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.try_get(column)?)
    }
}

fn bound<'a>(params: &'a [Param<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

fn typed<'a>(params: &'a [Param<'_>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    let type_of = |param: &Param<'_>| match param {
        // The server determines the type.
        Param::Null => Type::UNKNOWN,
        Param::Int(_) => Type::INT8,
        Param::Bool(_) => Type::BOOL,
        Param::Text(_) => Type::TEXT,
        Param::Bytes(_) => Type::BYTEA,
    };
    params.iter().map(|param| (param as &(dyn ToSql + Sync), type_of(param))).collect()
}

impl Sql for PostgresTx<'_> {
    fn pick(&self, _sqlite: &'static str, postgres: &'static str) -> &'static str {
        postgres
    }

    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.connection.execute(sql, params).map_err(|error| self.record_failure(error))
    }

    fn each_row(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: &mut dyn FnMut(&dyn Columns) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let rows = self.connection.query(sql, params).map_err(|error| self.record_failure(error))?;
        rows.iter().try_for_each(|row| read(row))
    }

    fn lock(&mut self, lock: Lock, name: &str) -> Result<(), StoreError> {
        let space = match lock {
            Lock::SessionTuple => "session",
            Lock::IdempotencyKey => "key",
            Lock::Workflow => "workflow",
            Lock::WorkflowName => "workflow name",
            Lock::SearchIndex => "search index",
        };
        let name = format!("baton {space} {name}");
        let sql = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        self.each_row(sql, &[(&name).into()], &mut |_| Ok(()))
    }

    fn announce_queue(&mut self) -> Result<(), StoreError> {
        self.each_row("SELECT pg_notify($1, '')", &[QUEUE_CHANNEL.into()], &mut |_| Ok(()))
    }
}

impl Tx for PostgresTx<'_> {
    fn allow_long_statements(&mut self) -> Result<(), StoreError> {
        limit_statements(&mut self.connection.client, LONG_STATEMENT_TIMEOUT, Scope::Transaction)
            .map_err(|error| self.record_failure(error))
    }

    fn nested(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Outcome) -> Result<(), StoreError> {
        self.execute("SAVEPOINT part", &[])?;
        if part(self) == Outcome::RollBack {
            self.execute("ROLLBACK TO SAVEPOINT part", &[])?;
            self.failed = false;
        }
        self.execute("RELEASE SAVEPOINT part", &[])?;
        Ok(())
    }
}

impl From<ClientError> for StoreError {
    fn from(error: ClientError) -> Self {
        match error.code() {
            Some(code) if *code == SqlState::DISK_FULL => Self::Full,
            Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => Self::Busy,
            Some(code) if *code == SqlState::QUERY_CANCELED => Self::caused_by(
                "PostgreSQL cancelled a statement that took longer than store.statement_timeout_seconds",
                error,
            ),
            _ if matches!(error, ClientError::TimedOut(_)) => {
                Self::caused_by("PostgreSQL does not answer", error)
            }
            _ if !is_transient(&error) => Self::Statement { source: error.into() },
            _ => Self::caused_by("the connection to the PostgreSQL server was lost", error),
        }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        ClientError::from(error).into()
    }
}

impl From<ClientError> for ArchiveError {
    fn from(error: ClientError) -> Self {
        Self::Store(error.into())
    }
}
