//! Progress of an import on standard error, if it is a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::verbs::archive::size;

/// Time between two updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Progress line, shared by the threads of an import.
pub(super) struct Progress {
    total_bytes: u64,
    state: Mutex<State>,
}

struct State {
    bytes: u64,
    shown_at: Option<Instant>,
}

impl Progress {
    pub(super) const fn new(total_bytes: u64) -> Self {
        Self { total_bytes, state: Mutex::new(State { bytes: 0, shown_at: None }) }
    }

    /// Adds bytes that were processed.
    pub(super) fn add(&self, bytes: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes += bytes;
        if state.shown_at.is_some_and(|shown| shown.elapsed() < UPDATE_INTERVAL) || !stderr().is_terminal() {
            return;
        }
        state.shown_at = Some(Instant::now());
        let percent = (state.bytes * 100).checked_div(self.total_bytes).unwrap_or(100).min(100);
        let filled = usize::try_from(percent / 5).unwrap_or(0);
        let bar = format!("{}{}", "#".repeat(filled), ".".repeat(20 - filled));
        let text = format!("\r[{bar}] {percent:3} %  {} of {}   ", size(state.bytes), size(self.total_bytes));
        // A failed write to standard error cannot be reported anywhere.
        let _ = stderr().lock().write_all(text.as_bytes());
    }

    /// Removes the line.
    pub(super) fn finish(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.shown_at.is_some() {
            let _ = write!(stderr().lock(), "\r{:60}\r", "");
        }
    }
}
