//! Rate limit per actor.

use std::num::NonZeroU32;

use baton_core::{ActorKeyId, ErrorCode, Fault};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use serde_json::json;

/// A separate limit for each actor, or no limit.
pub(super) struct Limiter {
    inner: Option<DefaultKeyedRateLimiter<ActorKeyId>>,
}

impl Limiter {
    /// Allows this many calls per minute, and a tenth of them in a burst.
    pub(super) fn per_minute(limit: Option<u32>) -> Self {
        let quota = limit.and_then(NonZeroU32::new).map(|limit| {
            let burst = NonZeroU32::new(limit.get() / 10).unwrap_or(NonZeroU32::MIN);
            Quota::per_minute(limit).allow_burst(burst)
        });
        Self { inner: quota.map(RateLimiter::keyed) }
    }

    /// Counts a call and rejects it if there were too many.
    pub(super) fn check(&self, actor: &ActorKeyId) -> Result<(), Fault> {
        let Some(limiter) = &self.inner else { return Ok(()) };
        limiter.check_key(actor).map_err(|early| {
            let wait = early.wait_time_from(DefaultClock::default().now());
            let seconds = wait.as_secs() + 1;
            Fault::new(ErrorCode::RateLimited, "too many requests with this credential")
                .hint(format!("wait {seconds} s before the next request"))
                .details(json!({ "retry_after_seconds": seconds }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_actor_has_its_own_limit() {
        let limiter = Limiter::per_minute(Some(1));
        let (one, two) = (ActorKeyId::of("1"), ActorKeyId::of("2"));
        assert!(limiter.check(&one).is_ok());
        let fault = limiter.check(&one).unwrap_err();
        assert_eq!(fault.code, ErrorCode::RateLimited);
        assert!(fault.details.unwrap()["retry_after_seconds"].as_u64().unwrap() >= 1);
        assert!(limiter.check(&two).is_ok());
    }

    #[test]
    fn burst_of_a_tenth_of_the_limit_is_allowed() {
        let limiter = Limiter::per_minute(Some(20));
        let actor = ActorKeyId::of("1");
        assert!(limiter.check(&actor).is_ok() && limiter.check(&actor).is_ok());
    }

    #[test]
    fn no_limit_allows_every_call() {
        let limiter = Limiter::per_minute(None);
        assert!((0..10_000).all(|_| limiter.check(&ActorKeyId::of("1")).is_ok()));
    }
}
