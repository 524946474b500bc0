//! Operations that keep the store in order.

mod check;
mod cleanup;

pub use check::{Damage, StoreCheck, check_store, recount_workflows};
pub use cleanup::{Cleanup, CleanupOutput};
