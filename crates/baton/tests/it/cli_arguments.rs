//! Arguments of the command line: usage errors, short ids, free text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use baton_testkit::binary::RELAY_KEY;

use crate::cli::home;

#[test]
fn invalid_arguments_end_with_the_help_to_read() {
    let home = home();
    for (arguments, verb) in [
        ("session heartbeat foo", "session heartbeat"),
        ("handoff show xyz", "handoff show"),
        ("context --repo acme/shop --max-tokens 10", "context"),
        ("search cargo --since yesterdayx", "search"),
        ("session list --limit 0", "session list"),
        ("token create --name x --expires-in-days 0", "token create"),
    ] {
        let done = home.run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(done.code, 7, "{done:?}");
        assert!(done.stderr.ends_with(&format!("next: see baton {verb} --help\n")), "{done:?}");
    }
}

#[test]
fn short_ids_are_accepted_and_ambiguous_ones_list_the_candidates() {
    let home = home();
    let start = |agent: &str| {
        let started =
            home.run(&["session", "start", "--agent", agent, "--repo", "o/r", "--format", "json"]).json();
        started["data"]["session_id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (start("a"), start("b"));
    let shared = first.bytes().zip(second.bytes()).take_while(|(one, other)| one == other).count();
    let unique = &first[..=shared];
    let ambiguous = &first[..shared];
    let server = home.serve();
    for place in [&[][..], &["--server", server.url()][..]] {
        let run = |words: &[&str]| {
            let words: Vec<&str> = [words, place, &["--format", "json"]].concat();
            home.command().env("BATON_RELAY_KEY", RELAY_KEY).args(words).output().unwrap()
        };
        let read = |output: &std::process::Output| -> serde_json::Value {
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
        };
        let shown = read(&run(&["session", "show", unique]));
        assert_eq!(shown["data"]["session"]["id"], first.as_str());
        let found = read(&run(&["search", "anything", "--session", unique]));
        assert_eq!(found["success"], true, "{found}");
        let refused = run(&["session", "show", ambiguous]);
        assert_eq!(refused.status.code(), Some(7));
        let error = &read(&refused)["error"];
        assert_eq!(error["code"], "ambiguous_id");
        assert_eq!(error["details"]["candidates"], serde_json::json!([first, second]));
        let missing = run(&["handoff", "show", "ho_01M7"]);
        assert_eq!(missing.status.code(), Some(3));
        assert_eq!(read(&missing)["error"]["hint"], "list them with: baton handoff list");
    }
}

#[test]
fn ids_that_match_nothing_are_not_found() {
    let home = home();
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]);
    let server = home.serve();
    let commands = [
        "handoff show ho_ZZ",
        "handoff show ho_0000",
        "handoff ack ho_ILOU --agent a",
        "handoff withdraw ho_!",
        "handoff create --session sess_ZZ --summary done",
        "session show sess_ZZ",
        "session heartbeat sess_01m7h6d3ahf4dp3yjeergq2kgt",
        "session update sess_0 --branch main",
        "session end sess_01M7H6D3AHF4DP3YJEERGQ2KGTX",
        "summarize sess_é",
        "observation show obs_ZZ",
        "observation list --session sess_ZZ",
        "note show note_ZZ",
        "note delete note_ZZ",
        "note list --session sess_ZZ",
        "turn show turn_x",
        "turn show turn_999",
        "turn list sess_ZZ",
        "checkpoint load ckpt_ZZ",
        "checkpoint delete ckpt_ZZ",
        "checkpoint diff ckpt_ZZ ckpt_YY",
        "get obs_ZZ",
        "get turn_x",
        "get sess_ZZ",
        "timeline obs_ZZ",
        "memory reject obs_ZZ",
        "memory forget --session sess_ZZ",
        "search words --session sess_ZZ",
        "requests --session sess_ZZ",
        "requests --session sess_0000",
    ];
    for place in [&[][..], &["--server", server.url()][..]] {
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            let output = home.command().env("BATON_RELAY_KEY", RELAY_KEY).args(&words).args(place).output();
            let output = output.unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{command} {place:?}: {errors}");
            assert!(errors.contains("there is no ") && errors.contains("\nnext: "), "{command}: {errors}");
        }
    }
    for token in ["zz", "00", ""] {
        let refused = home.run(&["token", "revoke", token]);
        assert_eq!(refused.code, 3, "{refused:?}");
        assert!(refused.stderr.contains("next: list tokens with baton token list"), "{refused:?}");
    }
}

#[test]
fn short_token_ids_are_accepted() {
    let home = home();
    let created = home.run(&["token", "create", "--name", "ci"]);
    let id = created.stdout.trim().split('_').nth(1).unwrap();
    let message = format!(
        "created token {id}  ci  write in all ventures; store its secret now, it is not shown again\n"
    );
    assert_eq!(created.stderr, message);
    assert_eq!(home.run(&["token", "revoke", &id[..6]]).code, 0);
    assert!(home.run(&["token", "list"]).stdout.contains("revoked at"));
}

#[test]
fn usage_errors_exit_with_2_also_with_json_output() {
    let home = home();
    let finished = home.run(&["session", "start"]);
    assert_eq!(finished.code, 2);
    assert!(finished.stdout.is_empty() && finished.stderr.contains("--repo"), "{finished:?}");
    let finished = home.run(&["nonsense", "--format", "json"]);
    assert_eq!(finished.code, 2);
    assert_eq!(finished.json()["error"]["code"], "usage");
    let finished = home.run(&["session", "start", "--repo", "o/r", "--format=json"]);
    assert_eq!((finished.code, &finished.json()["error"]["code"]), (2, &"usage".into()));
}

#[test]
fn a_missing_selection_names_the_arguments_of_the_command_line() {
    let home = home();
    for (command, expected) in [
        ("checkpoint load", "<CHECKPOINT_ID|--session <ID>>"),
        ("checkpoint load ckpt_1 --session w", "'--session <ID>'"),
        ("checkpoint load --session w --max-bytes 9 --max-tokens 9", "'--max-tokens <TOKENS>'"),
        ("checkpoint explain", "<CHECKPOINT_ID|--session <ID>>"),
        ("checkpoint diff", "<FROM|--session <ID>>"),
        ("checkpoint diff ckpt_1", "<TO>"),
        ("checkpoint diff ckpt_1 ckpt_2 --session w", "'--session <ID>'"),
        ("memory forget", "<ID|--session <ID>|--repo <OWNER/NAME>|--before <TIME>>"),
        ("memory forget --dry-run --venture local", "--before <TIME>>"),
        ("memory forget turn_1 --repo o/r", "'--repo <OWNER/NAME>'"),
    ] {
        let failed = home.run(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(failed.code, 2, "{command}: {failed:?}");
        assert!(failed.stderr.contains(expected), "{command}: {failed:?}");
    }
}

#[test]
fn an_argument_that_is_not_utf8_is_a_usage_error() {
    let home = home();
    for format in ["human", "json"] {
        let mut command = home.command();
        command.args(["session", "list", "--format", format, "--repo"]).arg(OsStr::from_bytes(b"\xff"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        if format == "json" {
            let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(document["error"]["code"], "usage", "{document}");
        }
    }
}

#[test]
fn a_note_outside_a_checkout_needs_a_repository() {
    let refused = home().run(&["note", "x"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.starts_with("error: cannot record a note: no repository given\n"), "{refused:?}");
    assert!(refused.stderr.contains("next: add --repo OWNER/NAME or --session ID"), "{refused:?}");
}

#[test]
fn free_text_may_start_with_a_hyphen() {
    let home = home();
    let started = home.run(&["session", "start", "--agent", "a", "--repo", "o/r", "--format", "json"]).json();
    let session = started["data"]["session_id"].as_str().unwrap().to_owned();
    let ended = home.run(&[
        "session",
        "end",
        &session,
        "--summary",
        "- a list",
        "--done",
        "-x works",
        "--next",
        "--help is next",
        "--blocker",
        "- none",
        "--format",
        "json",
    ]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let id = ended.json()["data"]["handoff_id"].as_str().unwrap().to_owned();
    let shown = home.run(&["handoff", "show", &id, "--format", "json"]).json()["data"]["handoff"].clone();
    assert_eq!(shown["summary"], "- a list");
    assert_eq!(shown["payload"]["next_actions"][0], "--help is next");
}
