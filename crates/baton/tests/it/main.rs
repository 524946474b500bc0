//! The real binary, run as people and agents run it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cli;
mod crash;
mod http;
mod parity;
