//! An operation without its types: what a route, a tool or a verb refers to.

use std::ops::Deref;

use baton_core::OperationDescription;

use crate::input::{ReadInput, read_input};
use crate::operation::{KeyUse, OnStore, Operation, RequestFormat, RequestLogging};

/// An operation without its types. It dereferences to its description. See [`Operation`] for the meaning of each part.
pub struct AnyOperation {
    description: OperationDescription,
    /// Use of the idempotency key.
    pub key: KeyUse,
    /// How a request is read.
    pub request: RequestFormat,
    pub(crate) request_logging: RequestLogging,
    pub(crate) after_outbox: bool,
    pub(crate) frees_space: bool,
    /// Reads the parameters of a call.
    pub(crate) read_input: ReadInput,
}

impl Deref for AnyOperation {
    type Target = OperationDescription;

    fn deref(&self) -> &OperationDescription {
        &self.description
    }
}

impl AnyOperation {
    pub(crate) const fn of<O: Operation<OnStore>>() -> Self {
        Self {
            description: OperationDescription::of::<OnStore, O>(),
            key: O::KEY,
            request: O::REQUEST,
            request_logging: O::REQUEST_LOGGING,
            after_outbox: O::AFTER_OUTBOX,
            frees_space: O::FREES_SPACE,
            read_input: read_input::<O>,
        }
    }
}

/// Returns an operation without its types.
pub fn operation<O: Operation<OnStore>>() -> &'static AnyOperation {
    O::erased()
}
