//! A gate that blocks threads until it is opened, and counts the arrived ones.

use std::sync::{Arc, Condvar, Mutex};

/// A gate, initially closed. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate {
    inner: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    open: bool,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Arrives at the gate and waits until it is open.
    pub(super) fn pass(&self) {
        let (state, changed) = &*self.inner;
        let mut state = state.lock().unwrap();
        state.arrived += 1;
        changed.notify_all();
        drop(changed.wait_while(state, |state| !state.open).unwrap());
    }

    /// Waits until this many threads have arrived.
    pub(super) fn await_arrivals(&self, count: usize) {
        let (state, changed) = &*self.inner;
        drop(changed.wait_while(state.lock().unwrap(), |state| state.arrived < count).unwrap());
    }

    /// Opens the gate for all.
    pub(super) fn open(&self) {
        let (state, changed) = &*self.inner;
        state.lock().unwrap().open = true;
        changed.notify_all();
    }
}
