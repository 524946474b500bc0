//! Records that a server does not respond, so that not every request waits for a timeout.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::StoreError;

/// How long work is rejected after a timeout before one request may probe the server.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Connect timeout of that probe.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether the server answered last time. Shared by all connections of a store.
#[derive(Debug, Default)]
pub(super) struct Availability {
    retry_at: Mutex<Option<Instant>>,
}

/// How a request may use the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// The server answered last time.
    Usual,
    /// The server did not answer last time; this request tries a new connection within [`PROBE_TIMEOUT`].
    Probe,
}

impl Availability {
    /// Admits a request, or rejects it while the server is known not to answer.
    pub(super) fn admit(&self) -> Result<Admission, StoreError> {
        let mut retry_at = self.retry_at.lock().unwrap_or_else(PoisonError::into_inner);
        match *retry_at {
            None => Ok(Admission::Usual),
            Some(time) if Instant::now() < time => Err(StoreError::unavailable("PostgreSQL does not answer")),
            Some(_) => {
                // Other requests are rejected until this probe must be finished.
                *retry_at = Some(Instant::now() + PROBE_TIMEOUT + RETRY_INTERVAL);
                Ok(Admission::Probe)
            }
        }
    }

    /// Records that the server answered.
    pub(super) fn answered(&self) {
        *self.retry_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Records that the server did not answer in time.
    pub(super) fn timed_out(&self) {
        *self.retry_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + RETRY_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_timeout_one_caller_probes_and_the_others_are_refused_until_the_server_answers() {
        let availability = Availability::default();
        assert_eq!(availability.admit().unwrap(), Admission::Usual);
        availability.timed_out();
        availability.admit().unwrap_err();
        *availability.retry_at.lock().unwrap() = Some(Instant::now());
        assert_eq!(availability.admit().unwrap(), Admission::Probe);
        availability.admit().unwrap_err();
        availability.answered();
        assert_eq!(availability.admit().unwrap(), Admission::Usual);
    }
}
