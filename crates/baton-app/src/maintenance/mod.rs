//! Operations that keep the store in order.

mod cleanup;

pub use cleanup::{Cleanup, CleanupOutput, CleanupParams};
