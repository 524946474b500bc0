//! One transaction: statements, locks and savepoints. Its operations on each entity are methods of `dyn Tx`, in `rows`.
//!
//! Statements use `$1`, `$2`, … in the order of their first appearance, which both databases bind by position. Where
//! the dialects differ, a row file provides both statements with [`Sql::pick`].

use crate::column::{Columns, Param};
use crate::error::StoreError;

/// Kind of an advisory lock that is held until the end of the transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    SessionTuple,
    IdempotencyKey,
    Workflow,
    WorkflowName,
    SearchIndex,
}

/// A database inside a transaction, as seen by row files.
pub(crate) trait Sql {
    /// Chooses the statement for the current database.
    fn pick(&self, sqlite: &'static str, postgres: &'static str) -> &'static str;

    /// Returns true if the current database is SQLite.
    fn is_sqlite(&self) -> bool {
        self.pick("sqlite", "postgres") == "sqlite"
    }

    /// Runs a statement and returns the number of changed rows.
    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError>;

    /// Runs a query and passes each row to `read`.
    fn each_row(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: &mut dyn FnMut(&dyn Columns) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// Blocks other transactions that take the same lock until this transaction ends.
    fn lock(&mut self, lock: Lock, name: &str) -> Result<(), StoreError>;

    /// Notifies other processes after the commit that the queue has new items. SQLite writes to a file that they watch.
    fn announce_queue(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Whether the writes of a piece of work are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Commit the writes.
    Commit,
    /// Roll the writes back.
    RollBack,
}

/// One transaction on either database.
///
/// The work is a plain function: it reads, decides and writes. It may be run again from the start when the database
/// requires a retry, so it must not have effects outside the transaction.
#[expect(private_bounds, reason = "only the row files write SQL")]
pub trait Tx: Sql {
    /// Raises the statement timeout for the rest of this transaction, for maintenance of the whole store. Does nothing
    /// on a store without statement timeouts.
    fn allow_long_statements(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Runs part of the work in a savepoint, so that it can be rolled back alone.
    fn nested(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Outcome) -> Result<(), StoreError>;
}
