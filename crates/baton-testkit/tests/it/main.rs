//! Checks of the workspace and of test doubles.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod architecture;
mod model_server;
