//! Memory budget for request bodies, so that many large requests at once cannot exhaust memory.
//!
//! Small bodies need no reservation. Medium and large bodies have separate shares, so that ordinary requests never wait
//! for large ones.

use std::sync::Arc;
use std::time::Duration;

use baton_app::observation::MAX_WHOLE_BYTES;
use baton_core::{ErrorCode, Fault};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::http::metrics::Metrics;

/// Bodies up to this size need no reservation.
pub(super) const SMALL_BODY_BYTES: usize = 32 * 1024;
/// Bodies up to this size use the medium share.
const MEDIUM_BODY_BYTES: usize = MAX_WHOLE_BYTES;
/// Memory that a request needs for each byte of its body until it is answered: the bytes, the parsed values, the
/// canonical text, the compressed frame.
const MEMORY_PER_BODY_BYTE: usize = 6;
/// Divisor of the budget that yields the medium share.
const MEDIUM_SHARE: usize = 4;
/// How long a request waits for memory before it is rejected. Its body is not read meanwhile.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Memory that one semaphore permit represents.
const UNIT_BYTES: usize = 1024;

/// Memory for bodies, shared by all requests of a server.
pub(super) struct BodyBudget {
    medium: Share,
    large: Share,
    wait_timeout: Duration,
    metrics: Arc<Metrics>,
}

struct Share {
    units: u32,
    free: Arc<Semaphore>,
}

/// Memory reserved for a request until this is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    _permit: OwnedSemaphorePermit,
}

impl BodyBudget {
    pub(super) fn new(bytes: usize, metrics: Arc<Metrics>) -> Self {
        let medium = bytes / MEDIUM_SHARE;
        let (medium, large) = (Share::new(medium), Share::new(bytes - medium));
        Self { medium, large, wait_timeout: WAIT_TIMEOUT, metrics }
    }

    /// Reserves memory for a body of at most this many bytes. `None` for a small body, which needs no reservation.
    pub(super) async fn reserve(&self, body_bytes: usize) -> Result<Option<Reservation>, Fault> {
        let share = match body_bytes {
            0..=SMALL_BODY_BYTES => return Ok(None),
            _ if body_bytes <= MEDIUM_BODY_BYTES => &self.medium,
            _ => &self.large,
        };
        // A body larger than the whole share is admitted if it is the only one.
        let units = units(body_bytes.saturating_mul(MEMORY_PER_BODY_BYTE)).min(share.units);
        match timeout(self.wait_timeout, share.free.clone().acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(Some(Reservation { _permit: permit })),
            Ok(Err(_)) | Err(_) => {
                self.metrics.count("baton_requests_rejected_total", "memory");
                Err(no_memory(body_bytes))
            }
        }
    }
}

impl Share {
    fn new(bytes: usize) -> Self {
        let units = units(bytes).max(1);
        Self { units, free: Arc::new(Semaphore::new(units as usize)) }
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX)
}

fn no_memory(body_bytes: usize) -> Fault {
    Fault::new(
        ErrorCode::Overloaded,
        format!("the memory for large requests is in use; this request has up to {body_bytes} bytes"),
    )
    .hint("send the request again in a moment")
    .details(json!({ "retry_after_seconds": 2 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn budget(bytes: usize) -> BodyBudget {
        BodyBudget { wait_timeout: Duration::ZERO, ..BodyBudget::new(bytes, Arc::new(Metrics::default())) }
    }

    #[tokio::test]
    async fn small_bodies_need_no_memory_and_medium_ones_do_not_wait_for_large_ones() {
        let budget = budget(128 * MIB);
        let _large = budget.reserve(16 * MIB).await.unwrap().unwrap();
        assert!(budget.reserve(SMALL_BODY_BYTES).await.unwrap().is_none());
        assert!(budget.reserve(MIB).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn requests_beyond_the_budget_are_rejected_until_memory_is_free() {
        let budget = budget(128 * MIB);
        let first = budget.reserve(16 * MIB).await.unwrap();
        let fault = budget.reserve(16 * MIB).await.unwrap_err();
        assert_eq!(fault.code, ErrorCode::Overloaded);
        assert!(budget.metrics.render().contains("baton_requests_rejected_total{reason=\"memory\"} 1"));
        drop(first);
        assert!(budget.reserve(16 * MIB).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn waiting_requests_get_memory_as_soon_as_it_is_free() {
        let budget = Arc::new(BodyBudget::new(128 * MIB, Arc::new(Metrics::default())));
        let first = budget.reserve(16 * MIB).await.unwrap();
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve(16 * MIB).await.map(|reservation| reservation.is_some()) }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.unwrap().unwrap());
    }

    #[tokio::test]
    async fn body_larger_than_the_budget_is_admitted_alone() {
        let budget = budget(8 * MIB);
        let alone = budget.reserve(16 * MIB).await.unwrap();
        assert!(alone.is_some());
        assert!(budget.reserve(16 * MIB).await.is_err());
    }
}
