//! Activity of the workers of this process, for monitoring: whether one runs, and when it last processed an item.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use baton_core::Timestamp;

/// Activity of the workers of this process. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct WorkerActivity(Arc<State>);

#[derive(Debug, Default)]
struct State {
    running: AtomicUsize,
    /// Milliseconds since the Unix epoch; 0 before the first activity.
    last_at: AtomicI64,
}

impl WorkerActivity {
    /// Records that a worker runs until the returned guard is dropped.
    pub fn start(&self) -> RunningWorker {
        self.0.running.fetch_add(1, Ordering::Relaxed);
        RunningWorker(self.clone())
    }

    /// Records that a worker claimed or finished an item.
    pub fn record(&self, now: Timestamp) {
        self.0.last_at.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    /// Returns true while a worker runs.
    pub fn is_running(&self) -> bool {
        self.0.running.load(Ordering::Relaxed) > 0
    }

    /// Returns when an item was last claimed or finished.
    pub fn last_at(&self) -> Option<Timestamp> {
        Some(self.0.last_at.load(Ordering::Relaxed)).filter(|millis| *millis > 0).map(Timestamp::from_millis)
    }
}

/// Guard of a running worker.
#[derive(Debug)]
pub struct RunningWorker(WorkerActivity);

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.0.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
