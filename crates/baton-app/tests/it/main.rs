//! Operations through the application layer, with a clock that tests set.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cleanup;
mod idempotency;
mod liveness;
mod request_log;
mod stage;
mod token;
