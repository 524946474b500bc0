//! Notification of queue changes made by other processes, without polling the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::engine::StoreConfig;
use crate::error::StoreError;
use crate::threads::spawn;

/// A watch on the queue. Dropping it stops the watch.
#[derive(Debug)]
pub struct QueueWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl QueueWatch {
    /// Calls `changed` when any process may have added items to the queue. The first call comes as soon as the watch is
    /// active, because earlier changes were not observed.
    pub fn start(config: &StoreConfig, changed: impl Fn() + Send + 'static) -> Result<Self, StoreError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (config, stop_seen) = (config.clone(), stop.clone());
        let watch = move || match &config {
            StoreConfig::Sqlite { path, .. } => crate::sqlite::watch(path, &stop_seen, &changed),
            StoreConfig::Postgres { url, timeouts, .. } => {
                crate::postgres::watch(url, *timeouts, &stop_seen, &changed);
            }
        };
        let thread = spawn("baton-watch", watch)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for QueueWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the queue watcher panicked");
        }
    }
}
