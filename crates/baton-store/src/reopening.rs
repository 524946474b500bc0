//! A store whose database could not be opened, or only read-only, when the process started. The database may become
//! usable while the process runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::engine::{Durability, Engine, OpenMode, StoreConfig, Work};
use crate::error::StoreError;
use crate::postgres::PostgresEngine;
use crate::reserve::ReleasedReserve;
use crate::sqlite::SqliteEngine;

/// Pause between two attempts to open the database.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Retries opening the database every few seconds. Until that succeeds, work fails, except reads of a database that is
/// open read-only.
///
/// An attempt can take as long as the server's timeout, so it runs on its own thread and submitting work never blocks.
/// The work that triggered an attempt waits for its outcome; other work is rejected immediately.
pub(crate) struct Reopening {
    shared: Arc<Shared>,
}

struct Shared {
    config: StoreConfig,
    /// Serves reads until the database is open.
    reader: Option<Arc<dyn Engine>>,
    state: Mutex<State>,
}

enum State {
    Closed { reason: Reason, tried_at: Instant },
    Opening { reason: Reason },
    Open(Arc<dyn Engine>),
}

/// Why the database is not open; returned to callers as an error.
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
            error => Self::Unavailable(message_with_causes(error)),
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

    /// Creates a store for a database that is open read-only. `reason` says why it cannot be written.
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
            State::Closed { reason, tried_at } if tried_at.elapsed() >= RETRY_INTERVAL => {
                let reason = reason.clone();
                *state = State::Opening { reason: reason.clone() };
                drop(state);
                let shared = self.shared.clone();
                let attempt = move || match shared.open() {
                    Ok(engine) => submit(engine.as_ref(), work),
                    Err(error) => work.finish(Err(error)),
                };
                // If the thread cannot be started, the work is dropped and the caller receives `Closed`.
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

    /// Maps the error of a failed attempt. A database that can only be read fails to open for writing in many ways; all
    /// of them mean read-only.
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

/// Formats an error with all of its causes.
fn message_with_causes(reason: &StoreError) -> String {
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

pub(crate) fn open_engine(config: &StoreConfig, mode: OpenMode) -> Result<Arc<dyn Engine>, StoreError> {
    Ok(match config {
        StoreConfig::Sqlite { path, threads } => Arc::new(SqliteEngine::open(path, *threads, mode)?),
        StoreConfig::Postgres { url, threads, connections, timeouts } => {
            Arc::new(PostgresEngine::open(url, *timeouts, *threads, *connections, mode.older_schema)?)
        }
    })
}
