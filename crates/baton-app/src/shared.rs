//! What the calls of a process share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::Timestamp;
use baton_store::Store;

use crate::clock::Clock;
use crate::context::Environment;
use crate::request_log::RequestLog;
use crate::settings::Settings;
use crate::store_counts::CountCache;
use crate::store_errors::StoreErrors;

pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) environment: Arc<Environment>,
    pub(crate) log: RequestLog,
    pub(crate) write_probe: WriteProbe,
    pub(crate) counts: CountCache,
    pub(crate) store_errors: StoreErrors,
}

impl Shared {
    pub(crate) fn settings(&self) -> &Settings {
        &self.environment.settings
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// Remembers when the readiness check last wrote successfully, so that frequent checks do not all write.
#[derive(Default)]
pub(crate) struct WriteProbe(Mutex<Option<Instant>>);

impl WriteProbe {
    /// How long a successful write counts.
    const VALIDITY: Duration = Duration::from_secs(2);

    pub(crate) fn is_recent(&self) -> bool {
        let at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        at.is_some_and(|at| at.elapsed() < Self::VALIDITY)
    }

    pub(crate) fn succeeded(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(crate) fn failed(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
