//! Quality and latency of search, through the product's own capture, import and HTTP API:
//! `scripts/bench --bench recall -- PART`.
//!
//! - `locomo`: turns of long conversations, imported with `baton import observations`; a question is answered if one of
//!   the first ten results is a turn that holds the answer (any@10). One store per conversation.
//! - `transcripts`: recorded coding sessions, imported with `baton import claude-code` in the order in which they
//!   happened. *Next session*: the first request of a session is searched before the session is captured; it is answered if one of the
//!   first ten results touches a file that the session goes on to edit. *Commits*: the subject of a commit is searched;
//!   it is answered if one of the first ten results is a tool use whose edit went into the commit.
//! - `latency`: searches, contexts and pages with 100,000 observations (another number as the next argument) in a tenth
//!   as many sessions, on both databases.
//!
//! `BATON_BENCH_LOCOMO` names the file of the conversations, `BATON_BENCH_TRANSCRIPTS` the folder of the recorded sessions.
//! Parts without data are skipped.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints its table and fails loudly")]

mod latency;
mod locomo;
mod transcripts;

use baton_benches::{data, machine};
use baton_testkit::binary::ServerProcess;
use serde_json::Value;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let wants = |part: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == part);
    machine();
    if wants("locomo")
        && let Some(file) = data("BATON_BENCH_LOCOMO", "a file of conversations (.json)")
    {
        locomo::measure(&file);
    }
    if wants("transcripts")
        && let Some(folder) = baton_benches::transcripts()
    {
        transcripts::measure(&folder);
    }
    if wants("latency") {
        let size = arguments.iter().find_map(|argument| argument.parse().ok());
        latency::measure(size.unwrap_or(100_000));
    }
}

/// Searches and returns the first ten results.
fn search(server: &ServerProcess, query: &str) -> Vec<Value> {
    let answer = server.get(&format!("/api/search?limit=10&q={}", encoded(query)));
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["results"].as_array().expect("results").clone()
}

/// Encodes a query parameter. Only the beginning of a long prompt is sent, because it is part of an address.
fn encoded(text: &str) -> String {
    let letters: String = text.chars().take(2_000).collect();
    letters
        .bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}

fn percent(hits: usize, total: usize) -> String {
    format!("{:.1} % ({hits} of {total})", 100.0 * hits as f64 / total.max(1) as f64)
}
