//! The compressors with a model, with their real client, against a fake model on a real socket.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod answers;
mod fixture;
mod https;
mod outages;
mod prompts;
mod secrecy;
mod structured;
mod summaries;
