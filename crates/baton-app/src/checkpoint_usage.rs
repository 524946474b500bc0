//! Approximate size of all checkpoints, cached in the process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum age of the cached size. Other processes may add checkpoints meanwhile.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Cached size. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    total: u64,
    counted_at: Option<Instant>,
}

impl Usage {
    /// Returns the cached size if it is recent.
    pub(crate) fn recent(&self) -> Option<u64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.counted_at.filter(|at| at.elapsed() < MAX_AGE).map(|_| known.total)
    }

    /// Sets the size: a new count, or the cached size plus an addition. After a rollback the value is too large until
    /// the next count.
    pub(crate) fn set(&self, total: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.counted_at.is_none_or(|at| at.elapsed() >= MAX_AGE) {
            known.counted_at = Some(Instant::now());
        }
        known.total = total;
    }
}
