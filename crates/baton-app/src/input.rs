//! The checked input of an operation, without its types.

use std::sync::Arc;

use baton_core::Fault;
use baton_store::{OutboxEntry, Tx};
use serde_json::Value;

use crate::context::Context;
use crate::transact::Done;

/// Reads and checks the parameters of a call. The faults of earlier checks are reported with those of the parameters.
pub(crate) type ReadInput = fn(&Context<'_>, Value, Result<(), Fault>) -> Result<Arc<dyn Input>, Fault>;

/// Reads a write from the outbox.
pub(crate) type ReadSpooled = fn(&Context<'_>, &OutboxEntry) -> Result<Arc<dyn Input>, Fault>;

/// The checked input of an operation, on which it runs.
pub(crate) trait Input: Send + Sync {
    fn run(&self, context: &Context<'_>, tx: &mut dyn Tx) -> Result<Done, Fault>;

    /// Answers while the store is unavailable. Returns `None` if the operation cannot.
    fn without_store(&self, context: &Context<'_>) -> Option<Result<Done, Fault>>;
}
