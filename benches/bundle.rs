//! Coverage of the context bundle: which of the files that a session edits does the bundle for its first request name?
//!
//! Reads recorded sessions from the folder that `BATON_BENCH_TRANSCRIPTS` names; without it nothing is measured. Sessions
//! are imported one after the other with `baton import`; before each, `baton context` is asked with its first request.
//! Files that no earlier session touched cannot be known and do not count.
#![expect(clippy::expect_used, reason = "a bench prints its table and fails loudly")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use baton_benches::{file_of, machine, release_binary, table, transcripts};
use baton_testkit::binary::Home;
use serde_json::Value;

const REPO: &str = "bench/repository";
const EDITS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];
/// Starts of prompts that are not requests of the user.
const NO_REQUEST: [&str; 4] = ["<", "/", "Caveat", "[Request"];
const BUDGETS: [&str; 3] = ["1000", "2000", "4000"];

/// A recorded session.
struct Recorded {
    path: PathBuf,
    started_at: String,
    prompt: String,
    edited: BTreeSet<String>,
    touched: BTreeSet<String>,
}

fn main() {
    let Some(folder) = transcripts() else { return };
    let sessions = read(&folder);
    assert!(!sessions.is_empty(), "{} contains no recorded sessions", folder.display());
    machine();
    let binary = release_binary("baton");
    let home = Home::new(binary.to_str().expect("a path"));
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut covered = vec![Vec::new(); BUDGETS.len()];
    for session in &sessions {
        let gold: Vec<&String> = session.edited.intersection(&known).collect();
        for (budget, shares) in BUDGETS.iter().zip(&mut covered).filter(|_| !gold.is_empty()) {
            let prompt: String = session.prompt.chars().take(20_000).collect();
            let asked = home.run(&[
                "context",
                "--repo",
                REPO,
                "--prompt",
                &prompt,
                "--max-tokens",
                budget,
                "--format",
                "json",
            ]);
            assert_eq!(asked.code, 0, "{asked:?}");
            let text = asked.json()["data"]["context"].as_str().expect("a text").to_owned();
            let named = gold.iter().filter(|file| text.contains(file.as_str())).count();
            shares.push(named as f64 / gold.len() as f64);
        }
        let path = session.path.to_str().expect("a path");
        let imported = home.run(&["import", "claude-code", path, "--repo", REPO]);
        assert_eq!(imported.code, 0, "{imported:?}");
        known.extend(session.touched.iter().cloned());
    }
    let rows: Vec<Vec<String>> = BUDGETS
        .iter()
        .zip(&covered)
        .map(|(budget, shares)| {
            let mean = 100.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64;
            vec![(*budget).to_owned(), shares.len().to_string(), format!("{mean:.1} %")]
        })
        .collect();
    table("Files that the session edits, named by the bundle", &["max_tokens", "sessions", "share"], &rows);
}

/// Reads the recorded sessions, in the order of their start.
fn read(folder: &Path) -> Vec<Recorded> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut sessions: Vec<Recorded> =
        entries.filter_map(|entry| read_session(&entry.expect("an entry").path())).collect();
    sessions.sort_by(|one, other| one.started_at.cmp(&other.started_at));
    sessions
}

fn read_session(path: &Path) -> Option<Recorded> {
    if path.extension()? != "jsonl" {
        return None;
    }
    let text = fs::read_to_string(path).expect("a transcript");
    let events: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let prompt =
        events.iter().filter(|event| event["hook_event_name"] == "UserPromptSubmit").find_map(|event| {
            event["prompt"].as_str().filter(|text| !NO_REQUEST.iter().any(|start| text.starts_with(start)))
        })?;
    let started_at = events.iter().filter_map(|event| event["timestamp"].as_str()).min()?;
    let tools = || events.iter().filter(|event| event["hook_event_name"] == "PostToolUse");
    let is_edit = |event: &&Value| event["tool_name"].as_str().is_some_and(|name| EDITS.contains(&name));
    Some(Recorded {
        path: path.to_owned(),
        started_at: started_at.to_owned(),
        prompt: prompt.to_owned(),
        edited: tools().filter(is_edit).filter_map(file_of).collect(),
        touched: tools().filter_map(file_of).collect(),
    })
}
