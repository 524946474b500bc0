//! Checks on the workspace itself.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod architecture;
