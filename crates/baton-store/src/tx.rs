//! One transaction. Its operations on each entity are methods of `dyn Tx`, in `rows`.

use crate::error::StoreError;
use crate::sql::Sql;

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
