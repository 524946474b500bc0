//! The seam: what an operation can do inside one transaction.

use crate::error::StoreError;
use crate::rows::{
    CheckpointRows, HandoffRows, KeyRows, ObservationRows, QueueRows, RequestRows, SessionRows, SummaryRows,
    TaskRows, TokenRows, TurnRows, UsageRows, WorkflowRows,
};

/// Whether the writes of a piece of work are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// They are.
    Keep,
    /// They are undone.
    Undo,
}

/// One transaction on either database.
///
/// Work on it is a plain function: reads, a decision, writes. It may be run again from its start when the database
/// asks for it, so it has no effect outside the transaction.
pub trait Tx:
    SessionRows
    + HandoffRows
    + WorkflowRows
    + CheckpointRows
    + KeyRows
    + RequestRows
    + QueueRows
    + ObservationRows
    + SummaryRows
    + UsageRows
    + TokenRows
    + TaskRows
    + TurnRows
{
    /// Lifts the usual time limit of statements for the rest of this transaction, for maintenance of the whole store.
    /// A store without such limits does nothing.
    fn allow_long_statements(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Runs a part of the work that can be undone by itself while the rest is kept.
    fn nested(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Outcome) -> Result<(), StoreError>;
}
