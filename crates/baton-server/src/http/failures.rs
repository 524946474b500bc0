//! Failed authentications, counted per peer.
//!
//! A peer with too many failures gets 429 for requests without a valid credential. A valid credential is always
//! accepted, because clients behind one proxy share an address. Only tokens that this server has not seen before are
//! limited too, because looking them up reads the database.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::{ErrorCode, Fault};
use serde_json::json;

use crate::http::peer::Peer;

const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of peers that are counted separately.
const MAX_PEERS: usize = 10_000;
/// Number of unknown tokens that are looked up per window for a peer with too many failures.
const MAX_LOOKUPS: u32 = 60;

/// Failures of each peer within a minute.
pub(super) struct FailedAuthentications {
    limit: Option<u32>,
    peers: Mutex<HashMap<Peer, Window>>,
}

struct Window {
    since: Instant,
    failures: u32,
    lookups: u32,
}

impl FailedAuthentications {
    /// Allows this many failures per minute; `None` means no limit.
    pub(super) fn new(limit: Option<u32>) -> Self {
        Self { limit, peers: Mutex::default() }
    }

    /// Counts a failure. Returns an error if there were too many.
    pub(super) fn count(&self, peer: Peer) -> Result<(), Fault> {
        self.check(peer, |window, limit| {
            window.failures = window.failures.saturating_add(1);
            window.failures <= limit
        })
    }

    /// Checks whether an unknown token may be looked up.
    pub(super) fn check_lookup(&self, peer: Peer) -> Result<(), Fault> {
        self.check(peer, |window, limit| {
            if window.failures < limit {
                return true;
            }
            window.lookups = window.lookups.saturating_add(1);
            window.lookups <= MAX_LOOKUPS
        })
    }

    fn check(&self, peer: Peer, is_within: impl FnOnce(&mut Window, u32) -> bool) -> Result<(), Fault> {
        let Some(limit) = self.limit else { return Ok(()) };
        let now = Instant::now();
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = peer;
        if peers.len() >= MAX_PEERS && !peers.contains_key(&peer) {
            peers.retain(|_, window| now.duration_since(window.since) < WINDOW);
            if peers.len() >= MAX_PEERS {
                // All further peers are counted together.
                key = Peer::LOCAL;
            }
        }
        let new = || Window { since: now, failures: 0, lookups: 0 };
        let window = peers.entry(key).or_insert_with(new);
        if now.duration_since(window.since) >= WINDOW {
            *window = new();
        }
        if is_within(window, limit) {
            return Ok(());
        }
        let seconds = WINDOW.saturating_sub(now.duration_since(window.since)).as_secs() + 1;
        Err(Fault::new(
            ErrorCode::RateLimited,
            "too many requests from this address without a valid credential",
        )
        .hint(format!("correct the credential, then wait {seconds} s"))
        .details(json!({ "retry_after_seconds": seconds })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::of([192, 0, 2, last].into())
    }

    #[test]
    fn each_peer_has_its_own_limit() {
        let failures = FailedAuthentications::new(Some(3));
        assert!((0..3).all(|_| failures.count(peer(1)).is_ok()));
        let fault = failures.count(peer(1)).unwrap_err();
        assert_eq!(fault.code, ErrorCode::RateLimited);
        assert!((1..=61).contains(&fault.details.unwrap()["retry_after_seconds"].as_u64().unwrap()));
        assert!(failures.count(peer(2)).is_ok());
    }

    #[test]
    fn unknown_tokens_are_looked_up_less_often_after_too_many_failures() {
        let failures = FailedAuthentications::new(Some(1));
        assert!((0..1_000).all(|_| failures.check_lookup(peer(1)).is_ok()));
        failures.count(peer(1)).unwrap();
        let allowed = (0..1_000).filter(|_| failures.check_lookup(peer(1)).is_ok()).count();
        assert_eq!(allowed, MAX_LOOKUPS as usize);
    }

    #[test]
    fn no_limit_counts_nothing() {
        let failures = FailedAuthentications::new(None);
        assert!((0..1_000).all(|_| failures.count(peer(1)).is_ok()));
        assert!(failures.peers.lock().unwrap().is_empty());
    }
}
