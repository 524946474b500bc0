//! When a model cannot be asked: how long nobody asks it, and who asks first afterwards.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::Timestamp;

/// The first pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// No pause is longer, unless the endpoint asks for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How long to wait before the next try: 5, 10, 20 s and so on up to five minutes, a fifth more or less by chance, and
/// never less than what the endpoint asked for.
pub(crate) fn backoff(failures: u32, asked: Option<Duration>, random: u64) -> Duration {
    let doubled =
        FIRST_PAUSE.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
    let pause = doubled.min(LONGEST_PAUSE);
    let part = u32::try_from(random % 401).unwrap_or(0);
    let varied = (pause * (800 + part) / 1_000).min(LONGEST_PAUSE);
    asked.map_or(varied, |asked| varied.max(asked))
}

/// Keeps everyone from asking a model that cannot answer. Items meanwhile stay where they are.
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

/// Whether the model may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// By everyone.
    All,
    /// By one: it failed before, and nobody knows whether it is back.
    One,
    /// By nobody before this.
    NotBefore(Timestamp),
}

impl Breaker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether the model may be asked now.
    pub(crate) fn permission(&self, now: Timestamp) -> Permission {
        let state = self.state();
        match state.paused_until {
            Some(until) if until > now => Permission::NotBefore(until),
            _ if state.failures > 0 => Permission::One,
            _ => Permission::All,
        }
    }

    /// It answered.
    pub(crate) fn succeeded(&self, now: Timestamp) {
        let mut state = self.state();
        *state = State { last_success: state.last_success.max(Some(now)), ..State::default() };
    }

    /// It could not be asked. Gives the end of the pause. Those who asked at the same time and failed by the same outage do
    /// not make the pause longer.
    pub(crate) fn failed(&self, now: Timestamp, asked: Option<Duration>, random: u64) -> Timestamp {
        let mut state = self.state();
        match state.paused_until {
            Some(until) if until > now => {
                let until = until.max(now.plus(asked.unwrap_or_default()));
                state.paused_until = Some(until);
                until
            }
            _ => {
                state.failures = state.failures.saturating_add(1);
                let until = now.plus(backoff(state.failures, asked, random));
                state.paused_until = Some(until);
                until
            }
        }
    }

    /// Tells whether others succeeded since something failed: then it is to blame itself.
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
        assert_eq!(backoff(u32::MAX, None, 200), LONGEST_PAUSE);
        assert_eq!(backoff(9, None, 400), LONGEST_PAUSE, "chance makes none longer");
        assert_eq!(backoff(9, None, 0), Duration::from_secs(240));
        assert_eq!(backoff(1, Some(Duration::from_secs(900)), 200), Duration::from_secs(900));
        assert_eq!(backoff(3, Some(Duration::from_secs(1)), 200), Duration::from_secs(20));
    }

    #[test]
    fn one_asks_after_a_pause_and_all_after_a_success() {
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
