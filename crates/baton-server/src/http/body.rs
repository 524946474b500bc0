//! Bodies of requests: read within bounds of size and time.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use baton_core::{ErrorCode, Fault};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::timeout;

/// How much of a body is read in all, so that a client hears why it was refused.
pub(super) const MAX_DISCARDED_BYTES: usize = 96 * 1024 * 1024;
/// How long a body may take to arrive.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How much room is made for a body on the word of its head alone.
const MAX_TRUSTED_BYTES: usize = 1024 * 1024;

/// What arrived of a body.
pub(super) struct Received {
    /// The first of it, within the limit.
    pub(super) bytes: Vec<u8>,
    size: usize,
}

impl Received {
    /// Tells whether it is all there.
    pub(super) const fn is_whole(&self) -> bool {
        self.bytes.len() == self.size
    }
}

/// Reads the body, up to a limit.
pub(super) async fn read_body(headers: &HeaderMap, body: Body, limit: usize) -> Result<Vec<u8>, Fault> {
    let received = receive_body(headers, body, limit).await?;
    if received.is_whole() { Ok(received.bytes) } else { Err(too_large(announced(headers), limit)) }
}

/// Reads a body, and keeps up to `limit` bytes of it.
pub(super) async fn receive_body(headers: &HeaderMap, body: Body, limit: usize) -> Result<Received, Fault> {
    let room = announced(headers).unwrap_or(0).min(limit).min(MAX_TRUSTED_BYTES);
    let received = timeout(PATIENCE, receive(body, Vec::with_capacity(room), limit)).await;
    let broken_off = || Fault::new(ErrorCode::InvalidRequest, "the body broke off before its end");
    match received {
        Ok(Ok(received)) => Ok(received),
        Ok(Err(error)) => Err(broken_off().caused_by(error)),
        Err(_) => Err(broken_off().hint("send the whole body within 30 s")),
    }
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
}

/// Reads a body that nobody wants: a client that is still sending it then gets to see the answer, and can go on with the
/// connection.
pub(super) async fn discard(body: Body) {
    // However it ends, there is nothing to keep.
    let _ = timeout(PATIENCE, receive(body, Vec::new(), 0)).await;
}

/// Reads a body and keeps the first `keep` bytes of it; what comes after is read on for a while and thrown away.
async fn receive(mut body: Body, mut bytes: Vec<u8>, keep: usize) -> Result<Received, axum::Error> {
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            size += data.len();
            if size <= keep {
                bytes.extend_from_slice(data);
            } else if size > MAX_DISCARDED_BYTES {
                break;
            }
        }
    }
    Ok(Received { bytes, size })
}

fn too_large(actual: Option<usize>, limit: usize) -> Fault {
    Fault::new(ErrorCode::PayloadTooLarge, format!("the body is larger than {limit} bytes"))
        .hint("send what the next agent needs and refer to the rest by path or link")
        .details(json!({ "actual_bytes": actual, "allowed_bytes": limit }))
}
