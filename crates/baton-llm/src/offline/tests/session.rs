//! Summaries of sessions.

use baton_core::observation::{
    Digest, FunctionAction, FunctionChange, SessionMaterial, SessionSummary, TurnStatus, TurnText,
};

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

fn turn(prompt: &str, closing: Option<&str>) -> TurnText {
    TurnText { prompt: prompt.to_owned(), closing: closing.map(str::to_owned), status: TurnStatus::Done }
}

fn summarize(material: &SessionMaterial) -> SessionSummary {
    Offline.summarize(material).unwrap().summary
}

#[test]
fn session_without_observations_has_a_fixed_summary() {
    let empty = summarize(&SessionMaterial {
        turns: vec![turn("hello there you", None)],
        ..SessionMaterial::default()
    });
    assert_eq!(
        empty,
        SessionSummary { summary: "No observations captured.".into(), ..SessionSummary::default() }
    );
}

#[test]
fn summary_contains_outcomes() {
    let material = SessionMaterial {
        previous: None,
        notes: vec![],
        pending: vec![],
        turns: vec![
            turn("Add retries to our HTTP client.", Some("Retries are in.")),
            turn("commit it", None),
        ],
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
        "Asked to: \"Add retries to our HTTP client\"; the last of 2 requests: \"commit it\". Changed 2 files: src/http.rs, README.md; added Client::retry; modified Client::send. Committed 'http: retry what can be retried'; last check was \"Run cargo test: 14 passed\". The agent last said: Retries are in."
    );
    assert_eq!(summary.key_files, ["src/http.rs", "README.md"]);
    assert_eq!(summary.key_decisions, ["Committed: http: retry what can be retried"]);
}

#[test]
fn summary_of_a_long_session_is_bounded_and_contains_its_end() {
    let digests: Vec<Digest> = (0..300)
        .flat_map(|round| {
            let file = format!("src/some/long/folder/file_{round}.rs");
            let title = format!("Add f{round} to {file}");
            let question = digest("AskUserQuestion", &format!("Ask user about round {round}"), &[], &[]);
            [
                digest("Edit", &title, &[&file, "src/main.rs"], &[("f", FunctionAction::New)]),
                Digest { summary: format!("\"Round {round}?\" User chose: yes."), ..question },
            ]
        })
        .collect();
    let long = "We talked about a great many things. ".repeat(100);
    let turns = vec![
        turn(&long, Some(&long)),
        turn(&long.replace("We", "They"), Some(&format!("All tests pass now. {long}"))),
    ];
    let summary = summarize(&SessionMaterial { turns, digests, ..SessionMaterial::default() });
    assert!(summary.summary.chars().count() <= 1_000, "{}", summary.summary);
    assert!(summary.summary.contains("The agent concluded: All tests pass now."), "{}", summary.summary);
    assert_eq!((summary.key_files.len(), summary.key_files[0].as_str()), (10, "src/main.rs"));
    assert_eq!(summary.key_decisions.len(), 10);
    assert_eq!(summary.key_decisions.last().unwrap(), "\"Round 299?\" User chose: yes.");
}

#[test]
fn summary_says_how_the_last_turn_ended() {
    let of = |status| {
        let turns =
            vec![turn("Do it", Some("Half of it is done.")), TurnText { status, ..turn("Go on", None) }];
        summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary
    };
    assert!(of(TurnStatus::Unfinished).contains("unfinished. The agent last said: Half of it"));
    assert!(of(TurnStatus::Failed).contains("stopped with an error."));
    assert!(of(TurnStatus::Interrupted).contains("The user interrupted the last turn."));
    assert!(!of(TurnStatus::Done).contains("Nothing was changed"), "nothing is known about changes");
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
