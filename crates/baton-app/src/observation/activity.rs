//! Whether a worker runs in this process, and when it last worked, for monitoring.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use baton_core::Timestamp;

/// What the workers of this process do. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct WorkerActivity(Arc<State>);

#[derive(Debug, Default)]
struct State {
    running: AtomicUsize,
    /// Milliseconds since the Unix epoch; 0 before the first activity.
    last_at: AtomicI64,
}

impl WorkerActivity {
    /// Notes that a worker runs until the returned value is dropped.
    pub fn start(&self) -> RunningWorker {
        self.0.running.fetch_add(1, Ordering::Relaxed);
        RunningWorker(self.clone())
    }

    /// Notes that a worker claimed or finished work.
    pub fn record(&self, now: Timestamp) {
        self.0.last_at.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    /// Returns true while a worker runs.
    pub fn is_running(&self) -> bool {
        self.0.running.load(Ordering::Relaxed) > 0
    }

    /// Returns when work was last claimed or finished.
    pub fn last_at(&self) -> Option<Timestamp> {
        Some(self.0.last_at.load(Ordering::Relaxed)).filter(|millis| *millis > 0).map(Timestamp::from_millis)
    }
}

/// A worker that runs.
#[derive(Debug)]
pub struct RunningWorker(WorkerActivity);

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.0.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
