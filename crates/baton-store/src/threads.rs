//! Threads of a store and the queues from which they take work.

use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::engine::Work;
use crate::error::StoreError;

/// Capacity of a queue. More work is rejected instead of being kept in memory.
const QUEUE_CAPACITY: usize = 8_192;

/// A queue of work. The threads that take work from it end after it is closed and empty.
pub(crate) struct ThreadQueue<T>(Option<Sender<T>>);

impl<T: Into<Box<dyn Work>>> ThreadQueue<T> {
    pub(crate) fn new() -> (Self, Receiver<T>) {
        let (sender, waiting) = bounded(QUEUE_CAPACITY);
        (Self(Some(sender)), waiting)
    }

    /// Adds work. Work that cannot be added is finished with an error.
    pub(crate) fn add(&self, work: T) {
        let Some(sender) = &self.0 else { return work.into().finish(Err(StoreError::Closed)) };
        match sender.try_send(work) {
            Ok(()) => {}
            Err(TrySendError::Full(work)) => work.into().finish(Err(StoreError::Overloaded)),
            Err(TrySendError::Disconnected(work)) => work.into().finish(Err(StoreError::Closed)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(Sender::is_empty)
    }

    pub(crate) fn close(&mut self) {
        self.0 = None;
    }
}

/// Starts a thread of the store.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let spawned = Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|error| StoreError::caused_by("cannot start a store thread", error))
}

/// Waits until threads end.
pub(crate) fn join(threads: &mut Vec<JoinHandle<()>>) {
    let own = std::thread::current().id();
    for thread in threads.drain(..) {
        // The last clone of a store may be dropped on one of its own threads, which cannot join itself.
        if thread.thread().id() != own && thread.join().is_err() {
            tracing::error!("a store thread panicked");
        }
    }
}
