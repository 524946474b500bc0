//! The checked input of an operation, without its types.

use std::sync::Arc;

use baton_core::{Fault, read_params};
use baton_store::Tx;
use serde_json::Value;

use crate::call::Attachment;
use crate::context::Context;
use crate::operation::{OnStore, Operation};
use crate::transact::Done;

/// Reads and checks the parameters of a call. The faults of earlier checks are reported with those of the parameters.
pub(crate) type ReadInput = fn(&Context<'_>, Value, Result<(), Fault>) -> Result<Arc<dyn Input>, Fault>;

/// The checked input of an operation, on which it runs.
pub(crate) trait Input: Send + Sync {
    fn run(&self, context: &Context<'_>, tx: &mut dyn Tx) -> Result<Done, Fault>;

    /// Answers while the store is unavailable. Returns `None` if the operation cannot.
    fn without_store(&self, context: &Context<'_>) -> Option<Result<Done, Fault>>;
}

struct TypedInput<O: Operation<OnStore>>(O::Input);

impl<O: Operation<OnStore>> Input for TypedInput<O> {
    fn run(&self, context: &Context<'_>, tx: &mut dyn Tx) -> Result<Done, Fault> {
        Done::of::<O>(&O::run(context, tx, &self.0)?)
    }

    fn without_store(&self, context: &Context<'_>) -> Option<Result<Done, Fault>> {
        Some(O::without_store(context, &self.0)?.and_then(|output| Done::of::<O>(&output)))
    }
}

pub(crate) fn read_input<O: Operation<OnStore>>(
    context: &Context<'_>,
    params: Value,
    earlier: Result<(), Fault>,
) -> Result<Arc<dyn Input>, Fault> {
    let has_context = context.attachment.and_then(Attachment::context).is_some();
    let attached = O::REQUEST.context_param.filter(|_| has_context);
    let params = read_params(params, attached, earlier)?;
    Ok(Arc::new(TypedInput::<O>(O::prepare(context, params)?)))
}
