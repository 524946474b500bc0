//! Progress of long work on standard error, if it is a terminal and the output is for people.

use std::io::{IsTerminal, Read, Result, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::terminal::size;

/// Time between two updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

static IS_HIDDEN: AtomicBool = AtomicBool::new(false);

/// Hides all progress, for output that programs read.
pub(crate) fn hide() {
    IS_HIDDEN.store(true, Ordering::Relaxed);
}

fn is_shown() -> bool {
    !IS_HIDDEN.load(Ordering::Relaxed) && stderr().is_terminal()
}

/// Unit of a progress line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Amount {
    /// Bytes of a known total.
    BytesOf(u64),
    Bytes,
    /// Items with this plural name.
    Items(&'static str),
}

/// Progress line that threads can share. It is removed when the value is dropped.
pub(crate) struct Progress {
    work: &'static str,
    amount: Amount,
    state: Mutex<State>,
}

struct State {
    done: u64,
    shown_at: Option<Instant>,
}

impl Progress {
    /// Creates the line; `work` names what is done, for example `importing`.
    pub(crate) const fn new(work: &'static str, amount: Amount) -> Self {
        Self { work, amount, state: Mutex::new(State { done: 0, shown_at: None }) }
    }

    /// Adds bytes or items that were processed.
    pub(crate) fn add(&self, count: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += count;
        if state.shown_at.is_some_and(|shown| shown.elapsed() < UPDATE_INTERVAL) || !is_shown() {
            return;
        }
        state.shown_at = Some(Instant::now());
        // A failed write to standard error cannot be reported anywhere.
        let _ = stderr().lock().write_all(format!("\r{}   ", self.line(state.done)).as_bytes());
    }

    fn line(&self, done: u64) -> String {
        let work = self.work;
        match self.amount {
            Amount::BytesOf(total) => {
                let percent = (done * 100).checked_div(total).unwrap_or(100).min(100);
                let filled = usize::try_from(percent / 5).unwrap_or(0);
                let bar = format!("{}{}", "#".repeat(filled), ".".repeat(20 - filled));
                format!("{work} [{bar}] {percent:3} %  {} of {}", size(done), size(total))
            }
            Amount::Bytes => format!("{work}: {}", size(done)),
            Amount::Items(items) => format!("{work}: {done} {items}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.shown_at.is_some() {
            let _ = write!(stderr().lock(), "\r{:78}\r", "");
        }
    }
}

/// Reader or writer that reports its bytes.
pub(crate) struct Counted<'a, T> {
    pub(crate) inner: T,
    pub(crate) progress: &'a Progress,
}

impl<T: Read> Read for Counted<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.add(count as u64);
        Ok(count)
    }
}

impl<T: Write> Write for Counted<'_, T> {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        let count = self.inner.write(buffer)?;
        self.progress.add(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_the_work_and_how_much_is_done() {
        let of_bytes = Progress::new("importing", Amount::BytesOf(4096));
        assert_eq!(of_bytes.line(1024), "importing [#####...............]  25 %  1.0 KiB of 4.0 KiB");
        assert_eq!(of_bytes.line(9999), "importing [####################] 100 %  9.8 KiB of 4.0 KiB");
        assert_eq!(
            Progress::new("writing the backup", Amount::Bytes).line(2048),
            "writing the backup: 2.0 KiB"
        );
        let items = Progress::new("rebuilding the search index", Amount::Items("items"));
        assert_eq!(items.line(1200), "rebuilding the search index: 1200 items");
    }

    #[test]
    fn counted_streams_report_every_byte() {
        let progress = Progress::new("copying", Amount::Bytes);
        let mut reader = Counted { inner: &b"four"[..], progress: &progress };
        let mut writer = Counted { inner: Vec::new(), progress: &progress };
        std::io::copy(&mut reader, &mut writer).unwrap();
        assert_eq!(progress.state.lock().unwrap().done, 8);
    }
}
