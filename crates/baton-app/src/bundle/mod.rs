//! The context bundle: what a new chat should know, within a budget.

mod file_scores;
mod files;
mod gather;
mod layout;
mod read;
mod request;

pub(crate) use gather::build;
pub(crate) use layout::{Bundle, BundleLimits};
pub use read::{ReadContext, ReadContextOutput};
pub(crate) use request::{BundleRequest, BundleScope};
