//! Hearing of changes that other processes make, without asking all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::error::StoreError;
use crate::store::StoreConfig;

/// How long after one call the next one comes at the earliest: a busy store changes thousands of times a second.
pub(crate) const REST: Duration = Duration::from_millis(20);
/// How long a watcher that is no longer wanted may take to notice.
pub(crate) const NOTICE: Duration = Duration::from_millis(500);

/// A watch on the queue; it ends when this goes away.
#[derive(Debug)]
pub struct QueueWatch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl QueueWatch {
    /// Calls `changed` whenever there may be something new in the queue, whoever put it there; for the first time when it
    /// listens, because nobody knows what happened before.
    pub fn start(config: &StoreConfig, changed: impl Fn() + Send + 'static) -> Result<Self, StoreError> {
        let over = Arc::new(AtomicBool::new(false));
        let (config, seen_over) = (config.clone(), over.clone());
        let watch = move || match &config {
            StoreConfig::Sqlite { path, .. } => crate::sqlite::watch(path, &seen_over, &changed),
            StoreConfig::Postgres { url, timeouts, .. } => {
                crate::postgres::watch(url, *timeouts, &seen_over, &changed);
            }
        };
        let thread = Builder::new().name("baton-watch".into()).spawn(watch).map_err(|source| {
            StoreError::Unavailable {
                message: "a thread of the store could not be started".into(),
                source: Some(source.into()),
            }
        })?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for QueueWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the watch on the queue broke off");
        }
    }
}
