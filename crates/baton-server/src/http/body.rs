//! Request bodies, read within limits of size, time and memory.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use axum::http::request::Parts;
use baton_core::{ErrorCode, Fault};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::http::budget::{BodyBudget, Reservation, SMALL_BODY_BYTES};
use crate::http::wire::HasTwoLengths;

/// Maximum number of bytes of a rejected body that are read, so that the client can finish sending and read the response.
pub(super) const MAX_DISCARDED_BYTES: usize = 96 * 1024 * 1024;
/// Total time to wait for the parts of a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may pause while sending a body.
const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// A body that is being received.
pub(super) struct Incoming {
    body: Body,
    /// Remaining time to wait for the client. The time that the server needs to process a part does not count.
    time_left: Duration,
    /// True until the first read, which makes the HTTP library send `100 Continue`.
    waits_to_send: bool,
}

impl Incoming {
    pub(super) fn new(headers: &HeaderMap, body: Body) -> Self {
        Self { body, time_left: BODY_TIMEOUT, waits_to_send: waits_to_send(headers) }
    }

    /// Waits for the next part. `None` at the end of the body.
    pub(super) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        self.waits_to_send = false;
        loop {
            let started = Instant::now();
            let arrived = timeout(self.time_left.min(BODY_IDLE_TIMEOUT), self.body.frame()).await;
            self.time_left = self.time_left.saturating_sub(started.elapsed());
            match arrived {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => {
                    // A frame without data is a trailer.
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Ok(Some(Err(error))) => return Err(io::Error::other(error)),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    /// Reads the body until it is larger than `limit` bytes. Memory is reserved for `expected` bytes, and for `limit` when
    /// more of them arrive.
    pub(super) async fn fill(
        &mut self,
        budget: &BodyBudget,
        expected: usize,
        limit: usize,
    ) -> Result<Received, Fault> {
        let mut reserved = expected.min(limit);
        let reservation = self.reserve(budget, reserved).await?;
        let mut received = Received { bytes: Vec::with_capacity(reserved), is_whole: true, reservation };
        while received.is_whole
            && let Some(part) = self.next().await.map_err(broken_off)?
        {
            let size = received.bytes.len() + part.len();
            if size > reserved && reserved < limit {
                received.reservation = self.reserve(budget, limit).await?;
                reserved = limit;
            }
            received.bytes.extend_from_slice(&part);
            received.is_whole = size <= limit;
        }
        Ok(received)
    }

    /// Reserves memory for the body. If no memory is available, reads and drops the body.
    async fn reserve(&mut self, budget: &BodyBudget, bytes: usize) -> Result<Option<Reservation>, Fault> {
        let reservation = budget.reserve(bytes).await;
        if reservation.is_err() {
            self.discard().await;
        }
        reservation
    }

    /// Reads and drops the rest of a body. A client that is still sending can then read the response and
    /// reuse the connection. A client that waits for `100 Continue` is not asked to send.
    async fn discard(&mut self) {
        if self.waits_to_send {
            return;
        }
        let mut size = 0;
        while size <= MAX_DISCARDED_BYTES
            && let Ok(Some(part)) = self.next().await
        {
            size += part.len();
        }
    }
}

/// Reads and drops a body. The end of a body with two lengths is unknown, so such a body is not read.
pub(super) async fn discard(parts: &Parts, body: Body) {
    if parts.extensions.get::<HasTwoLengths>().is_none() {
        Incoming::new(&parts.headers, body).discard().await;
    }
}

/// Returns true if the client sends the body only after `100 Continue`.
pub(super) fn waits_to_send(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// A received body.
pub(super) struct Received {
    /// The body, or its beginning.
    pub(super) bytes: Vec<u8>,
    /// False if the body is larger than the limit.
    pub(super) is_whole: bool,
    /// Memory reserved for the request.
    pub(super) reservation: Option<Reservation>,
}

/// Reads a body of at most `limit` bytes. A larger body is an error.
pub(super) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    budget: &BodyBudget,
) -> Result<Received, Fault> {
    let received = receive_body(headers, body, limit, budget).await?;
    if received.is_whole { Ok(received) } else { Err(too_large(announced(headers), limit)) }
}

/// Reads a body and keeps at most `limit` bytes of it.
pub(super) async fn receive_body(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    budget: &BodyBudget,
) -> Result<Received, Fault> {
    let announced = announced(headers);
    if waits_to_send(headers) && announced.is_some_and(|size| size > limit) {
        return Ok(Received { bytes: Vec::new(), is_whole: false, reservation: None });
    }
    // A body of unknown size is assumed to be small until more of it arrives. Of a body that is too large, only the
    // beginning is kept.
    let (expected, limit) = match announced {
        Some(size) if size <= limit => (size, limit),
        Some(_) => (SMALL_BODY_BYTES, SMALL_BODY_BYTES.min(limit)),
        None => (SMALL_BODY_BYTES, limit),
    };
    let mut incoming = Incoming::new(headers, body);
    let mut received = incoming.fill(budget, expected, limit).await?;
    if !received.is_whole {
        received.bytes.truncate(limit);
        incoming.discard().await;
    }
    Ok(received)
}

/// Returns the body size that a request announces.
pub(super) fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
}

/// Returns the error for a body that ended early or took too long.
pub(super) fn broken_off(error: io::Error) -> Fault {
    let fault = if error.kind() == io::ErrorKind::TimedOut {
        let (total, pause) = (BODY_TIMEOUT.as_secs(), BODY_IDLE_TIMEOUT.as_secs());
        Fault::new(ErrorCode::InvalidRequest, "the body took too long to arrive")
            .hint(format!("send the whole body within {total} s, without a pause of more than {pause} s"))
    } else {
        Fault::new(ErrorCode::InvalidRequest, "the body ended early").hint("send the whole body")
    };
    fault.caused_by(error)
}

fn too_large(actual: Option<usize>, limit: usize) -> Fault {
    Fault::new(ErrorCode::PayloadTooLarge, format!("the body is larger than {limit} bytes"))
        .hint("send what the next agent needs and refer to the rest by path or link")
        .details(json!({ "actual_bytes": actual, "allowed_bytes": limit }))
}
