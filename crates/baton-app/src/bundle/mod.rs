//! The context bundle: what a new chat should know, within a budget.

mod files;
mod gather;
mod read;

pub(crate) use gather::{BundleRequest, BundleScope, build};
pub use read::{ReadContext, ReadContextOutput, ReadContextParams};
