//! Circuit breaker of an endpoint: the duration of the pause after an outage, and how many threads may call the endpoint
//! after the pause.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::Timestamp;

/// Duration of the first pause; each further one is twice as long.
const FIRST_BACKOFF: Duration = Duration::from_secs(5);
/// Maximum pause, unless the endpoint asks for a longer one.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// Returns the time until the next attempt: 5, 10, 20 s and so on up to five minutes, with 20 % jitter, and never less
/// than `retry_after`, the delay that the endpoint asked for.
pub(crate) fn backoff(failures: u32, retry_after: Option<Duration>, random: u64) -> Duration {
    let doubled =
        FIRST_BACKOFF.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
    let pause = doubled.min(MAX_BACKOFF);
    let jitter = u32::try_from(random % 401).unwrap_or(0);
    let varied = (pause * (800 + jitter) / 1_000).min(MAX_BACKOFF);
    retry_after.map_or(varied, |retry_after| varied.max(retry_after))
}

/// Prevents calls to an endpoint during an outage.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    failures: u32,
    paused_until: Option<Timestamp>,
    last_success: Option<Timestamp>,
}

/// Which threads may call the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// All threads.
    All,
    /// One thread, which probes the endpoint after an outage.
    One,
    /// No thread before this time.
    NotBefore(Timestamp),
}

impl Breaker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns which threads may call the endpoint now.
    pub(crate) fn permission(&self, now: Timestamp) -> Permission {
        let state = self.state();
        match state.paused_until {
            Some(until) if until > now => Permission::NotBefore(until),
            _ if state.failures > 0 => Permission::One,
            _ => Permission::All,
        }
    }

    /// Records that the endpoint answered.
    pub(crate) fn succeeded(&self, now: Timestamp) {
        let mut state = self.state();
        *state = State { last_success: state.last_success.max(Some(now)), ..State::default() };
    }

    /// Records an outage and returns the end of the pause. Concurrent calls that failed because of the same outage do
    /// not prolong the pause.
    pub(crate) fn failed(&self, now: Timestamp, retry_after: Option<Duration>, random: u64) -> Timestamp {
        let mut state = self.state();
        let until = match state.paused_until {
            Some(until) if until > now => until.max(now.plus(retry_after.unwrap_or_default())),
            _ => {
                state.failures = state.failures.saturating_add(1);
                now.plus(backoff(state.failures, retry_after, random))
            }
        };
        state.paused_until = Some(until);
        until
    }

    /// Returns true if other items succeeded since a failure, which means that the failed item itself is the cause.
    pub(crate) fn succeeded_since(&self, failed_at: Option<Timestamp>) -> bool {
        match (self.state().last_success, failed_at) {
            (Some(success), Some(failure)) => success > failure,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_768_644_000_000);

    #[test]
    fn pauses_double_up_to_a_limit_and_vary() {
        let exact: Vec<u64> = (1..=9).map(|failures| backoff(failures, None, 200).as_secs()).collect();
        assert_eq!(exact, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(backoff(1, None, 0), Duration::from_secs(4));
        assert_eq!(backoff(1, None, 400), Duration::from_secs(6));
        assert_eq!(backoff(u32::MAX, None, 200), MAX_BACKOFF);
        assert_eq!(backoff(9, None, 400), MAX_BACKOFF, "jitter does not exceed the maximum");
        assert_eq!(backoff(9, None, 0), Duration::from_secs(240));
        assert_eq!(backoff(1, Some(Duration::from_secs(900)), 200), Duration::from_secs(900));
        assert_eq!(backoff(3, Some(Duration::from_secs(1)), 200), Duration::from_secs(20));
    }

    #[test]
    fn one_thread_probes_after_a_pause_and_all_call_after_a_success() {
        let breaker = Breaker::default();
        assert_eq!(breaker.permission(NOW), Permission::All);
        let until = breaker.failed(NOW, None, 200);
        assert_eq!(breaker.permission(NOW), Permission::NotBefore(until));
        assert_eq!(breaker.failed(NOW, None, 200), until, "the same outage");
        assert_eq!(breaker.permission(until), Permission::One);
        let next = breaker.failed(until, None, 200);
        assert_eq!(next, until.plus(Duration::from_secs(10)));
        breaker.succeeded(next);
        assert_eq!(breaker.permission(next), Permission::All);
        assert!(breaker.succeeded_since(Some(NOW)));
        assert!(!breaker.succeeded_since(Some(next)));
        assert!(!breaker.succeeded_since(None));
    }
}
