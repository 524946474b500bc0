//! A database that could not be opened, and may be mended while the process lives.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::store::{Durability, Engine, OpenMode, StoreConfig, Work, open_engine};

/// How long to leave it alone after a try.
const PAUSE: Duration = Duration::from_secs(2);

/// Tries to open the database every now and then; until then all work fails.
pub(crate) struct Reopening {
    config: StoreConfig,
    state: Mutex<State>,
}

enum State {
    Closed { reason: String, tried_at: Instant },
    Open(Arc<dyn Engine>),
}

impl Reopening {
    pub(crate) fn new(config: StoreConfig, reason: &StoreError) -> Self {
        let state = State::Closed { reason: told(reason), tried_at: Instant::now() };
        Self { config, state: Mutex::new(state) }
    }

    fn engine(&self) -> Result<Arc<dyn Engine>, StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Closed { tried_at, .. } = &*state
            && tried_at.elapsed() >= PAUSE
        {
            *state = match open_engine(&self.config, OpenMode::MIGRATE) {
                Ok(engine) => State::Open(engine),
                Err(error) => State::Closed { reason: told(&error), tried_at: Instant::now() },
            };
        }
        match &*state {
            State::Open(engine) => Ok(engine.clone()),
            State::Closed { reason, .. } => {
                Err(StoreError::Unavailable { message: reason.clone(), source: None })
            }
        }
    }
}

impl Engine for Reopening {
    fn write(&self, durability: Durability, work: Box<dyn Work>) {
        match self.engine() {
            Ok(engine) => engine.write(durability, work),
            Err(error) => work.finish(Err(error)),
        }
    }

    fn read(&self, work: Box<dyn Work>) {
        match self.engine() {
            Ok(engine) => engine.read(work),
            Err(error) => work.finish(Err(error)),
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
