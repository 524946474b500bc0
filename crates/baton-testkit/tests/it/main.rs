//! Checks on the workspace itself, and on what stands in for others in tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod architecture;
mod model_server;
