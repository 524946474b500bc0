//! Summaries of sessions.

use baton_core::observation::{Digest, FunctionAction, FunctionChange, SessionMaterial, SessionSummary};

use super::super::Offline;
use crate::compressor::Compressor;

fn digest(tool: &str, title: &str, files: &[&str], functions: &[(&str, FunctionAction)]) -> Digest {
    let change = |(name, action): &(&str, FunctionAction)| FunctionChange {
        file: files.first().copied().unwrap_or("").into(),
        name: (*name).into(),
        action: *action,
    };
    Digest {
        tool_name: tool.into(),
        title: title.into(),
        summary: format!("{title}."),
        files_touched: files.iter().map(|file| (*file).to_owned()).collect(),
        functions_changed: functions.iter().map(change).collect(),
    }
}

fn summarize(material: &SessionMaterial) -> SessionSummary {
    Offline.summarize(material).unwrap().summary
}

#[test]
fn session_without_observations_has_a_fixed_summary() {
    let empty =
        summarize(&SessionMaterial { prompts: vec!["hello there you".into()], ..SessionMaterial::default() });
    assert_eq!(
        empty,
        SessionSummary { summary: "No observations captured.".into(), ..SessionSummary::default() }
    );
}

#[test]
fn summary_contains_outcomes() {
    let material = SessionMaterial {
        previous: None,
        prompts: vec!["Add retries to our HTTP client.".into(), "commit it".into()],
        digests: vec![
            digest("Read", "Read src/http.rs: Client and 3 more", &[], &[]),
            digest(
                "Edit",
                "Add retry to src/http.rs",
                &["src/http.rs"],
                &[("Client::retry", FunctionAction::New)],
            ),
            digest(
                "Edit",
                "Modify send in src/http.rs",
                &["src/http.rs"],
                &[("Client::send", FunctionAction::Modified)],
            ),
            digest("Edit", "Edit README.md: +2 -0 lines", &["README.md"], &[]),
            digest("Bash", "Run cargo test: 14 passed", &[], &[]),
            digest("Bash", "Commit 'http: retry what can be retried'", &[], &[]),
        ],
    };
    let summary = summarize(&material);
    assert_eq!(
        summary.summary,
        "Asked to: \"Add retries to our HTTP client\" (and 1 more request). Changed 2 files: src/http.rs, README.md; added Client::retry; modified Client::send. Committed 'http: retry what can be retried'; last check was \"Run cargo test: 14 passed\". Ended with \"Edit README.md: +2 -0 lines\"."
    );
    assert_eq!(summary.key_files, ["src/http.rs", "README.md"]);
    assert_eq!(summary.key_decisions, ["Committed: http: retry what can be retried"]);
}

#[test]
fn a_summary_continues_another_and_stays_bounded() {
    let mut previous = None;
    for round in 0..30 {
        let file = format!("src/file_{round}.rs");
        let question = digest("AskUserQuestion", &format!("Ask user about round {round}"), &[], &[]);
        let material = SessionMaterial {
            previous: previous.take(),
            prompts: vec!["Do much".into()],
            digests: vec![
                digest(
                    "Edit",
                    &format!("Add f{round} to {file}"),
                    &[&file, "src/main.rs"],
                    &[("f", FunctionAction::New)],
                ),
                Digest { summary: format!("\"Round {round}?\" User chose: yes."), ..question },
            ],
        };
        let summary = summarize(&material);
        assert!(summary.summary.chars().count() <= 1_000);
        assert!(summary.summary.matches("Earlier: ").count() <= 1, "{}", summary.summary);
        previous = Some(summary);
    }
    let last = previous.unwrap();
    assert!(
        last.key_files.contains(&"src/main.rs".to_owned()) && last.key_files.len() == 10,
        "{:?}",
        last.key_files
    );
    assert_eq!(last.key_decisions.len(), 10);
    assert_eq!(last.key_decisions.last().unwrap(), "\"Round 29?\" User chose: yes.");
    let unchanged =
        summarize(&SessionMaterial { previous: Some(last.clone()), ..SessionMaterial::default() });
    assert_eq!(unchanged, last);
}

#[test]
fn unanswered_questions_rejected_plans_and_failed_commits_are_no_decisions() {
    let mut plan = digest("ExitPlanMode", "Propose plan 'Keep hooks': not approved", &[], &[]);
    plan.summary = "The user did not approve the plan \"Keep hooks\".".into();
    let digests = vec![
        plan,
        digest("AskUserQuestion", "Ask user about Storage: not answered", &[], &[]),
        digest("Bash", "Commit 'Fix it': nothing to commit", &[], &[]),
    ];
    let summary = summarize(&SessionMaterial { digests, ..SessionMaterial::default() });
    assert!(summary.key_decisions.is_empty(), "{:?}", summary.key_decisions);
    assert!(!summary.summary.contains("ommitted"), "{}", summary.summary);
}

#[test]
fn decisions_of_the_user_are_kept() {
    let mut declined = digest("Bash", "Create pull request: declined by user", &[], &[]);
    declined.summary =
        "The user declined to let Bash run; nothing was done. They said: \"rename the branch first\"".into();
    let summary = summarize(&SessionMaterial { digests: vec![declined], ..SessionMaterial::default() });
    assert!(summary.key_decisions[0].contains("rename the branch first"));
    assert!(
        summary.summary.starts_with("Nothing was changed in 1 step; looked into:"),
        "{}",
        summary.summary
    );
}
