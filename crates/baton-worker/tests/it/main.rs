//! The worker, stepped with a fake clock, on real stores, with the real clients and a fake model on a real socket.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod answers;
mod budget;
mod embedding;
mod orphans;
mod outages;
mod stage;
mod summaries;
mod threads;
