//! Conversion of replies to HTTP responses.

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use baton_app::Reply;
use baton_core::ErrorCode;

const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
const IDEMPOTENCY_HIT: HeaderName = HeaderName::from_static("x-idempotency-hit");
const IDEMPOTENCY_TRUNCATED: HeaderName = HeaderName::from_static("x-idempotency-truncated");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TRUE: HeaderValue = HeaderValue::from_static("true");

/// Converts a reply.
pub(super) fn respond(reply: Reply) -> Response<Body> {
    let retry_after = retry_after(&reply);
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(reply.correlation_id.as_str()) {
        headers.insert(CORRELATION_ID, id);
    }
    if reply.replayed {
        headers.insert(IDEMPOTENCY_HIT, TRUE);
    }
    if reply.truncated {
        headers.insert(IDEMPOTENCY_TRUNCATED, TRUE);
    }
    if reply.error == Some(ErrorCode::PayloadTooLarge) {
        // The rest of the body is not read.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, seconds);
    }
    response
}

/// Returns the number of seconds after which a rejected request may be retried.
fn retry_after(reply: &Reply) -> Option<HeaderValue> {
    match reply.error? {
        ErrorCode::StoreUnavailable if reply.must_not_retry() => None,
        ErrorCode::Overloaded | ErrorCode::StoreUnavailable | ErrorCode::RateLimited => {
            let body: serde_json::Value = serde_json::from_str(&reply.body).ok()?;
            Some(body["details"]["retry_after_seconds"].as_u64().unwrap_or(1).into())
        }
        _ => None,
    }
}

/// Adds the `Allow` header.
pub(super) fn allow(mut response: Response<Body>, methods: &str) -> Response<Body> {
    if let Ok(methods) = HeaderValue::from_str(methods) {
        response.headers_mut().insert(ALLOW, methods);
    }
    response
}
