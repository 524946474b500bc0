//! Row counts of the store, for monitoring.
//!
//! Counting reads one index entry for each row, so the counts are cached: at most one count runs at a time, and the
//! interval between two counts is at least a hundred times the duration of a count.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_core::Fault;
use baton_core::observation::QueueStats;
use baton_store::{BlobFolder, BlobUsage, SessionCounts, Store, StoreError, Tx};

/// Minimum interval between two counts.
const MIN_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum interval between two counts as a multiple of the duration of the last one.
const INTERVAL_FACTOR: u32 = 100;

/// Row counts of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreCounts {
    /// Sessions by status.
    pub sessions: SessionCounts,
    /// Captured tool uses by status.
    pub queue: QueueStats,
    pub idempotency_keys: u64,
    /// Blob files and their size; `None` without a blob folder.
    pub blobs: Option<BlobUsage>,
}

impl StoreCounts {
    fn read(tx: &mut dyn Tx, blobs: Option<&BlobFolder>) -> Result<Self, StoreError> {
        Ok(Self {
            sessions: tx.count_sessions()?,
            queue: tx.queue_stats()?,
            idempotency_keys: tx.count_keys()?,
            blobs: blobs.map(BlobFolder::usage).transpose()?,
        })
    }
}

/// Cached counts and their age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedCounts {
    pub counts: StoreCounts,
    /// Time since the count.
    pub age: Duration,
}

/// Cache of the counts. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountCache(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: Option<Counted>,
    is_counting: bool,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    counts: StoreCounts,
    at: Instant,
    took: Duration,
}

impl CountCache {
    /// Counts if the cached counts are too old and no other count is running, then returns the cached counts, if any. A
    /// count is completed and cached even if its caller stops waiting.
    pub(crate) async fn get(
        &self,
        store: &Store,
        blobs: Option<BlobFolder>,
    ) -> Result<Option<CachedCounts>, Fault> {
        if let Some(counting) = self.begin(Instant::now()) {
            let count = move |tx: &mut dyn Tx| {
                let started = Instant::now();
                let counts = StoreCounts::read(tx, blobs.as_ref())?;
                counting.finish(counts, started);
                Ok::<(), Fault>(())
            };
            store.read(count).await?;
        }
        let last = self.lock().last;
        Ok(last.map(|last| CachedCounts { counts: last.counts, age: last.at.elapsed() }))
    }

    /// Returns a guard if a count is due and none is running.
    fn begin(&self, now: Instant) -> Option<Counting> {
        let mut state = self.lock();
        let is_due = state.last.is_none_or(|last| {
            let interval = MIN_INTERVAL.max(last.took.saturating_mul(INTERVAL_FACTOR));
            now.saturating_duration_since(last.at) >= interval
        });
        if !is_due || state.is_counting {
            return None;
        }
        state.is_counting = true;
        Some(Counting(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of a running count. The next count may start when it is dropped.
struct Counting(CountCache);

impl Counting {
    fn finish(&self, counts: StoreCounts, started: Instant) {
        let now = Instant::now();
        self.0.lock().last = Some(Counted { counts, at: now, took: now - started });
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.lock().is_counting = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_run_one_at_a_time_and_take_at_most_a_hundredth_of_the_time() {
        let cache = CountCache::default();
        let first = cache.begin(Instant::now()).unwrap();
        assert!(cache.begin(Instant::now()).is_none(), "one at a time");
        drop(first);
        let failed = cache.begin(Instant::now()).expect("a count that failed is repeated");
        drop(failed);
        let set_last = |took: Duration| {
            let at = Instant::now();
            cache.lock().last = Some(Counted { counts: StoreCounts::default(), at, took });
            at
        };
        let at = set_last(Duration::ZERO);
        assert!(cache.begin(at + MIN_INTERVAL - Duration::from_millis(1)).is_none());
        assert!(cache.begin(at + MIN_INTERVAL).is_some());
        let at = set_last(Duration::from_secs(1));
        assert!(cache.begin(at + Duration::from_secs(99)).is_none());
        assert!(cache.begin(at + Duration::from_secs(100)).is_some());
    }
}
