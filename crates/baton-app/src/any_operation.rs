//! An operation without its types: what a route, a tool or a verb refers to.

use std::marker::PhantomData;

use baton_core::{Fault, output_schema, params_schema};
use serde_json::Value;

use crate::execution::{Execution, Submission, submit};
use crate::operation::{Effect, KeyUse, Operation, RequestFormat, RequestLogging};

/// An operation without its types. See [`Operation`] for the meaning of each part.
pub trait AnyOperation: Send + Sync {
    /// Wire name.
    fn name(&self) -> &'static str;
    /// Purpose in one sentence.
    fn summary(&self) -> &'static str;
    /// Effect on the store.
    fn effect(&self) -> Effect;
    /// Use of the idempotency key.
    fn key(&self) -> KeyUse;
    /// How a request is read.
    fn request(&self) -> RequestFormat;
    /// How calls appear in the request log.
    fn request_logging(&self) -> RequestLogging;
    /// Whether the writes in the outbox are replayed before it runs.
    fn runs_after_outbox(&self) -> bool;
    /// Whether it is run once more, with the disk reserve released, when the disk is full.
    fn frees_space(&self) -> bool;
    /// JSON Schema of the parameters.
    fn params_schema(&self) -> Value;
    /// JSON Schema of the output.
    fn output_schema(&self) -> Value;
    /// Checks the parameters of a call and makes it ready for the store.
    #[doc(hidden)]
    fn submit(&self, submission: Submission, params: Value) -> Result<Execution, Fault>;
}

struct Erased<O>(PhantomData<O>);

impl<O: Operation> AnyOperation for Erased<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }
    fn summary(&self) -> &'static str {
        O::SUMMARY
    }
    fn effect(&self) -> Effect {
        O::EFFECT
    }
    fn key(&self) -> KeyUse {
        O::KEY
    }
    fn request(&self) -> RequestFormat {
        O::REQUEST
    }
    fn request_logging(&self) -> RequestLogging {
        O::REQUEST_LOGGING
    }
    fn runs_after_outbox(&self) -> bool {
        O::AFTER_OUTBOX
    }
    fn frees_space(&self) -> bool {
        O::FREES_SPACE
    }
    fn params_schema(&self) -> Value {
        params_schema::<O::Params>()
    }
    fn output_schema(&self) -> Value {
        output_schema::<O::Output>()
    }
    fn submit(&self, submission: Submission, params: Value) -> Result<Execution, Fault> {
        submit::<O>(submission, params)
    }
}

/// Returns an operation without its types.
pub fn operation<O: Operation>() -> &'static dyn AnyOperation {
    &Erased::<O>(PhantomData)
}
