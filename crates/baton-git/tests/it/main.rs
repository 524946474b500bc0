//! Tests with real repositories and the real git.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says with which seed"
)]

mod captures;
mod changes;
mod discovery;
mod histories;
mod oracle;
mod sandbox;
mod sweeping;
mod untouched;
mod verification;
