//! A database that could not be opened, or only for reading, when the process started, and may become usable while the process
//! runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::sqlite::ReleasedReserve;
use crate::store::{Durability, Engine, OpenMode, StoreConfig, Work, open_engine};

/// Pause between two attempts to open the database.
const PAUSE: Duration = Duration::from_secs(2);

/// Tries to open the database every few seconds; until that succeeds, work fails, except reads of a database that is open for
/// reading.
///
/// An attempt may take as long as a server takes to answer, so it runs on a thread of its own: submitting work never
/// blocks. The work that started an attempt waits for its outcome, other work is refused at once.
pub(crate) struct Reopening {
    shared: Arc<Shared>,
}

struct Shared {
    config: StoreConfig,
    /// Answers reads until the database is open.
    reader: Option<Arc<dyn Engine>>,
    state: Mutex<State>,
}

enum State {
    Closed { reason: Reason, tried_at: Instant },
    Opening { reason: Reason },
    Open(Arc<dyn Engine>),
}

/// Why the database is not open: what callers are told meanwhile.
#[derive(Debug, Clone)]
enum Reason {
    Full,
    ReadOnly,
    Unavailable(String),
}

impl Reason {
    fn of(error: &StoreError) -> Self {
        match error {
            StoreError::Full => Self::Full,
            StoreError::ReadOnly => Self::ReadOnly,
            error => Self::Unavailable(told(error)),
        }
    }

    fn error(&self) -> StoreError {
        match self {
            Self::Full => StoreError::Full,
            Self::ReadOnly => StoreError::ReadOnly,
            Self::Unavailable(message) => StoreError::Unavailable { message: message.clone(), source: None },
        }
    }
}

impl Reopening {
    pub(crate) fn new(config: StoreConfig, reason: &StoreError) -> Self {
        Self::with_reader(config, reason, None)
    }

    /// Takes a database that is open for reading; `reason` says why not for writing.
    pub(crate) fn with_reader(
        config: StoreConfig,
        reason: &StoreError,
        reader: Option<Arc<dyn Engine>>,
    ) -> Self {
        let state = State::Closed { reason: Reason::of(reason), tried_at: Instant::now() };
        Self { shared: Arc::new(Shared { config, reader, state: Mutex::new(state) }) }
    }

    fn submit(&self, work: Box<dyn Work>, submit: impl FnOnce(&dyn Engine, Box<dyn Work>) + Send + 'static) {
        let mut state = self.shared.state();
        match &*state {
            State::Open(engine) => {
                let engine = engine.clone();
                drop(state);
                submit(engine.as_ref(), work);
            }
            State::Closed { reason, tried_at } if tried_at.elapsed() >= PAUSE => {
                let reason = reason.clone();
                *state = State::Opening { reason: reason.clone() };
                drop(state);
                let shared = self.shared.clone();
                let attempt = move || match shared.open() {
                    Ok(engine) => submit(engine.as_ref(), work),
                    Err(error) => work.finish(Err(error)),
                };
                // Work that is dropped with a thread that did not start is answered as closed.
                if let Err(error) = Builder::new().name("baton-reopen".into()).spawn(attempt) {
                    tracing::warn!(%error, "cannot start a thread to open the database");
                    *self.shared.state() = State::Closed { reason, tried_at: Instant::now() };
                }
            }
            State::Closed { reason, .. } | State::Opening { reason } => {
                let error = reason.error();
                drop(state);
                work.finish(Err(error));
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What callers are told after an attempt failed. Opening a database for writing that can only be read fails in many ways,
    /// which all mean the same.
    fn refusal(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Full => StoreError::Full,
            _ if self.reader.is_some() => StoreError::ReadOnly,
            error => error,
        }
    }

    fn open(&self) -> Result<Arc<dyn Engine>, StoreError> {
        let opened = open_engine(&self.config, OpenMode::MIGRATE).map_err(|error| self.refusal(error));
        *self.state() = match &opened {
            Ok(engine) => State::Open(engine.clone()),
            Err(error) => State::Closed { reason: Reason::of(error), tried_at: Instant::now() },
        };
        opened
    }
}

impl Engine for Reopening {
    fn write(&self, durability: Durability, work: Box<dyn Work>) {
        self.submit(work, move |engine, work| engine.write(durability, work));
    }

    fn read(&self, work: Box<dyn Work>) {
        match &self.shared.reader {
            Some(reader) if !matches!(&*self.shared.state(), State::Open(_)) => reader.read(work),
            _ => self.submit(work, |engine, work| engine.read(work)),
        }
    }

    fn release_reserve(&self) -> Option<ReleasedReserve> {
        match &*self.shared.state() {
            State::Open(engine) => engine.release_reserve(),
            State::Closed { .. } | State::Opening { .. } => None,
        }
    }
}

/// What went wrong, with every cause.
fn told(reason: &StoreError) -> String {
    let mut message = match reason {
        StoreError::Unavailable { message, .. } => message.clone(),
        reason => reason.to_string(),
    };
    let mut cause = std::error::Error::source(reason);
    while let Some(inner) = cause {
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    message
}
