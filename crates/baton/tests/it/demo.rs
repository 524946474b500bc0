//! `baton demo`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use baton_testkit::processes;

use crate::cli::home;

#[test]
fn demo_runs_all_steps_and_leaves_no_files() {
    let home = home();
    let temporary = home.path().join("tmp");
    let finished = home.run(&["demo"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let mut rest = finished.stdout.as_str();
    for part in [
        "baton hook session-start --client claude-code < report.json",
        "baton session end --summary 'Logout removes the cookie",
        "A person edits a file",
        "- Handoff of claude-code",
        "error: working tree drift detected",
        "+    // also delete the row in sessions",
        "reviewer of TASK-0007 is done",
        "validator of TASK-0007 is done",
        "baton search 'why does logout fail'",
        "2 results",
        "baton context",
        "- Expire the session on the server: clients keep the cookie [note_",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("`{part}` is missing in {}", finished.stdout));
        rest = &rest[at..];
    }
    assert!(!home.data_dir().exists(), "the demo must not create the data folder");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "the demo must remove its folder");
    let json = home.run(&["demo", "--format", "json"]).json();
    let commands = json["data"]["steps"].as_array().unwrap();
    assert!(commands.iter().any(|step| step["exit_code"] == 5), "{json}");
    let without = home.command().env("PATH", "/nonexistent").arg("demo").output().unwrap();
    let errors = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(!without.status.success() && errors.contains("next: install git"), "{without:?}");
}

#[test]
fn demo_serves_a_month_of_history_until_it_is_stopped() {
    let home = home();
    let mut child = home
        .command()
        .args(["demo", "--serve"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut key, mut url) = (String::new(), String::new());
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        if let Some(path) = line.strip_prefix("created a relay key in ") {
            key = std::fs::read_to_string(path).unwrap();
        }
        if let Some(address) = line.strip_prefix("baton listens on ") {
            url = address.to_owned();
            break;
        }
    }
    let found = home
        .command()
        .args(["search", "cart tabs", "--format", "json", "--server", &url])
        .env("BATON_RELAY_KEY", key.trim())
        .output()
        .unwrap();
    processes::signal(child.id(), "TERM");
    let mut status = None;
    processes::wait_until("the demo stops", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert!(found["data"]["results"].as_array().is_some_and(|results| results.len() > 3), "{found}");
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
}
