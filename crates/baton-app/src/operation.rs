//! Operations on the store, and what they have in common.

use baton_core::Target;
pub use baton_core::{Effect, KeyUse, Operation, Privacy, RequestFormat, RequestLogging};
use baton_store::Tx;

use crate::any_operation::AnyOperation;
use crate::context::Context;

/// Target of the operations that read and write the store, each in one transaction.
#[derive(Debug)]
pub enum OnStore {}

impl Target for OnStore {
    type Context<'a> = Context<'a>;
    type Access<'a> = &'a mut dyn Tx;
    type Erased = AnyOperation;
}

/// Implements [`Operation::erased`] and [`Operation::read_output`].
macro_rules! erased {
    () => {
        #[inline(never)]
        fn erased() -> &'static $crate::any_operation::AnyOperation {
            const { &$crate::any_operation::AnyOperation::of::<Self>() }
        }

        #[inline(never)]
        fn read_output(text: &str) -> serde_json::Result<Self::Output> {
            serde_json::from_str(text)
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
