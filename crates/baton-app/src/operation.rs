//! Operations on the store: what they have in common, and how their types are erased.

use std::sync::Arc;

pub(crate) use baton_core::ReplayFirst;
pub use baton_core::{Effect, KeyUse, Operation, Privacy, RequestFormat, RequestLogging};
use baton_core::{Fault, OperationDescription, Target, read_params};
use baton_store::{OutboxEntry, Tx};
use serde_json::Value;

use crate::any_operation::AnyOperation;
use crate::call::Attachment;
use crate::context::Context;
use crate::input::Input;
use crate::transact::Done;

/// Target of the operations that read and write the store, each in one transaction.
#[derive(Debug)]
pub enum OnStore {}

impl Target for OnStore {
    type Context<'a> = Context<'a>;
    type Access<'a> = &'a mut dyn Tx;
    type Erased = AnyOperation;
}

/// Returns an operation without its types.
pub fn operation<O: Operation<OnStore>>() -> &'static AnyOperation {
    O::erased()
}

/// Erases the types of an operation.
pub(crate) const fn erase<O: Operation<OnStore>>() -> AnyOperation {
    AnyOperation {
        description: OperationDescription::of::<OnStore, O>(),
        key: O::KEY,
        request: O::REQUEST,
        request_logging: O::REQUEST_LOGGING,
        replay_first: O::REPLAY_FIRST,
        frees_space: O::FREES_SPACE,
        read_input: read_input::<O>,
        read_spooled: None,
    }
}

/// An operation that saves a write to the outbox while the store is unavailable.
pub(crate) trait Spooling: Operation<OnStore> {
    /// Reads a write from the outbox. It was checked before it was saved there.
    fn read_spooled(context: &Context<'_>, entry: &OutboxEntry) -> Result<Self::Input, Fault>;
}

/// Like [`erase`], for an operation whose writes can be replayed from the outbox.
pub(crate) const fn erase_spooling<O: Spooling>() -> AnyOperation {
    AnyOperation {
        read_spooled: Some(|context, entry| Ok(Arc::new(TypedInput::<O>(O::read_spooled(context, entry)?)))),
        ..erase::<O>()
    }
}

fn read_input<O: Operation<OnStore>>(
    context: &Context<'_>,
    params: Value,
    earlier: Result<(), Fault>,
) -> Result<Arc<dyn Input>, Fault> {
    let has_context = context.attachment.and_then(Attachment::context).is_some();
    let attached = O::REQUEST.context_param.filter(|_| has_context);
    let params = read_params(params, attached, earlier)?;
    Ok(Arc::new(TypedInput::<O>(O::prepare(context, params)?)))
}

struct TypedInput<O: Operation<OnStore>>(O::Input);

impl<O: Operation<OnStore>> Input for TypedInput<O> {
    fn run(&self, context: &Context<'_>, tx: &mut dyn Tx) -> Result<Done, Fault> {
        Done::of(&O::run(context, tx, &self.0)?, O::compact)
    }

    fn without_store(&self, context: &Context<'_>) -> Option<Result<Done, Fault>> {
        Some(O::without_store(context, &self.0)?.and_then(|output| Done::of(&output, O::compact)))
    }
}

/// Implements [`Operation::erased`].
macro_rules! erased {
    () => {
        $crate::operation::erased!(erase);
    };
    ($erase:ident) => {
        #[inline(never)]
        fn erased() -> &'static $crate::any_operation::AnyOperation {
            const { &$crate::operation::$erase::<Self>() }
        }
    };
}
pub(crate) use erased;

/// Declares that an operation runs on its parameters. If a function is given, it checks them first.
macro_rules! params_as_input {
    () => {
        $crate::operation::params_as_input!(|_| Ok(()));
    };
    ($check:expr) => {
        type Input = Self;
        $crate::operation::erased!();

        fn prepare(_: &$crate::context::Context<'_>, params: Self) -> Result<Self::Input, baton_core::Fault> {
            let check: fn(&Self) -> Result<(), baton_core::Fault> = $check;
            check(&params)?;
            Ok(params)
        }
    };
}
pub(crate) use params_as_input;

/// Declares that an operation runs on its parameters and on a value that a function computes from them. The function fails
/// if they are invalid.
macro_rules! params_and {
    ($value:ty, $check:expr) => {
        type Input = (Self, $value);
        $crate::operation::erased!();

        fn prepare(_: &$crate::context::Context<'_>, params: Self) -> Result<Self::Input, baton_core::Fault> {
            let check: fn(&Self) -> Result<$value, baton_core::Fault> = $check;
            let value = check(&params)?;
            Ok((params, value))
        }
    };
}
pub(crate) use params_and;
