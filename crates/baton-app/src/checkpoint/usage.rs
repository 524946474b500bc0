//! About how many bytes all checkpoints take, as this process knows it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a number is good for: so long other processes may add to it unseen.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// The last known number. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Usage(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    total: u64,
    counted_at: Option<Instant>,
}

impl Usage {
    /// Gives the number, if it was counted a moment ago.
    pub(super) fn recent(&self) -> Option<u64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.counted_at.filter(|at| at.elapsed() < GOOD_FOR).map(|_| known.total)
    }

    /// Takes over a number that was just counted, or was known and is more by what was just added. What is undone again
    /// makes it too large until it is counted anew.
    pub(super) fn set(&self, total: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.counted_at.is_none_or(|at| at.elapsed() >= GOOD_FOR) {
            known.counted_at = Some(Instant::now());
        }
        known.total = total;
    }
}
