//! An operation without its types: what a route, a tool or a verb refers to.

use std::ops::Deref;

use baton_core::{KeyUse, OperationDescription, ReplayFirst, RequestFormat, RequestLogging};

use crate::input::{ReadInput, ReadSpooled};

/// An operation without its types. It dereferences to its description. See [`Operation`](baton_core::Operation) for the
/// meaning of each part.
pub struct AnyOperation {
    pub(crate) description: OperationDescription,
    /// Use of the idempotency key.
    pub key: KeyUse,
    /// How a request is read.
    pub request: RequestFormat,
    pub(crate) request_logging: RequestLogging,
    pub(crate) replay_first: ReplayFirst,
    pub(crate) frees_space: bool,
    /// Reads the parameters of a call.
    pub(crate) read_input: ReadInput,
    /// Reads a write from the outbox, if the operation saves its writes there.
    pub(crate) read_spooled: Option<ReadSpooled>,
}

impl Deref for AnyOperation {
    type Target = OperationDescription;

    fn deref(&self) -> &OperationDescription {
        &self.description
    }
}
