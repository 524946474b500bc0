//! Recorded coding sessions: the next session, and commits.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use baton_benches::{file_of, release_binary, table};
use baton_testkit::binary::{Home, ServerProcess};
use serde_json::Value;

use super::{percent, search};

const EDITS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];
/// Starts of prompts that are not requests of the user.
const NO_REQUEST: [&str; 4] = ["<", "/", "Caveat", "[Request"];

/// A recorded session.
struct Session {
    path: PathBuf,
    start: String,
    events: Vec<Value>,
    prompt: String,
}

/// Imports the sessions of a folder one after the other and searches before each, then searches for commits.
pub(super) fn measure(folder: &Path) {
    let sessions = read(folder);
    if sessions.is_empty() {
        println!("skipped: {} has no sessions", folder.display());
        return;
    }
    let home = Home::new(&release_binary("baton").to_string_lossy());
    let server = home.serve();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let (mut scored, mut hits, mut recall) = (0, 0, 0.0);
    for session in &sessions {
        let edited: BTreeSet<String> =
            session.events.iter().filter(|event| is_edit(event)).filter_map(file_of).collect();
        let gold: BTreeSet<&String> = edited.intersection(&seen).collect();
        if !gold.is_empty() {
            let found = search(&server, &session.prompt);
            let touched: HashSet<&str> = found.iter().flat_map(|result| strings(&result["files"])).collect();
            let matched = gold.iter().filter(|wanted| touched.contains(wanted.as_str())).count();
            scored += 1;
            hits += usize::from(matched > 0);
            recall += matched as f64 / gold.len() as f64;
        }
        seen.extend(session.events.iter().filter_map(file_of));
        import(&home, &server, session);
    }
    let queries = std::fs::read_to_string(folder.join("queries.jsonl")).unwrap_or_default();
    let queries: Vec<Value> = queries.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_answered = |query: &&Value| {
        let gold: HashSet<&str> = strings(&query["gold"]).collect();
        let found = search(&server, query["query"].as_str().expect("a query"));
        found.iter().any(|result| result["external_id"].as_str().is_some_and(|id| gold.contains(id)))
    };
    let commits = queries.iter().filter(is_answered).count();
    table(
        "Recorded coding sessions",
        &["test", "result"],
        &[
            vec!["next session, hit@10".into(), percent(hits, scored)],
            vec![
                "next session, share of the files".into(),
                format!("{:.1} %", 100.0 * recall / scored.max(1) as f64),
            ],
            vec!["commits, any@10".into(), percent(commits, queries.len())],
        ],
    );
}

fn read(folder: &Path) -> Vec<Session> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut sessions: Vec<Session> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let text = std::fs::read_to_string(&path).ok()?;
            let events: Vec<Value> =
                text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let start = events.iter().filter_map(|event| event["timestamp"].as_str()).min()?.to_owned();
            let prompts = events.iter().filter(|event| event["hook_event_name"] == "UserPromptSubmit");
            let mut prompts = prompts.filter_map(|event| event["prompt"].as_str());
            let prompt = prompts.find(|prompt| !NO_REQUEST.iter().any(|start| prompt.starts_with(start)))?;
            Some(Session { path, start, prompt: prompt.to_owned(), events })
        })
        .collect();
    sessions.sort_by(|one, other| one.start.cmp(&other.start));
    sessions
}

fn is_edit(event: &Value) -> bool {
    event["tool_name"].as_str().is_some_and(|tool| EDITS.contains(&tool))
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(Value::as_str)
}

/// Imports a session and waits until all its tool uses are observations.
fn import(home: &Home, server: &ServerProcess, session: &Session) {
    let imported =
        home.run(&["import", "claude-code", &session.path.to_string_lossy(), "--repo", "eval/repository"]);
    assert_eq!(imported.code, 0, "{imported:?}");
    loop {
        let stats = server.get("/api/queue/stats").json();
        let waiting = |name: &str| stats[name].as_u64().unwrap_or(0);
        if waiting("raw") + waiting("processing") == 0 {
            return;
        }
        sleep(Duration::from_millis(20));
    }
}
