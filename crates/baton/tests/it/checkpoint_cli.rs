//! Checkpoints on the command line: standard input and files, output streams, exit codes, and use with a server.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use baton_testkit::binary::{Finished, Home};
use serde_json::{Value, json};

use crate::checkpoint_http::noise;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_baton"))
}

fn save(home: &Home, more: &[&str], context: &str) -> Finished {
    let arguments = [&["checkpoint", "save", "--session", "w"], more].concat();
    home.run_with_input(&arguments, context.as_bytes())
}

fn run_json(home: &Home, arguments: &[&str]) -> Finished {
    home.run(&[arguments, &["--format", "json"]].concat())
}

/// Returns the exit code and error code of a failed verb.
#[track_caller]
fn failure(finished: &Finished) -> (i32, String) {
    let body = finished.json();
    assert_eq!(body["success"], false);
    (finished.code, body["error"]["code"].as_str().unwrap().to_owned())
}

#[test]
fn contexts_are_saved_from_stdin_and_printed_to_stdout() {
    let home = home();
    let saved = save(&home, &[], r#"{ "goal": "接力棒", "n": 1.50 }"#);
    assert_eq!(saved.code, 0, "{saved:?}");
    assert!(
        saved.stdout.starts_with("saved ckpt_") && saved.stdout.contains("workflow w"),
        "{}",
        saved.stdout
    );
    let again = save(&home, &[], r#"{"n":1.5,"goal":"接力棒"}"#);
    assert!(again.stdout.starts_with("unchanged since ckpt_"), "{}", again.stdout);
    let loaded = home.run(&["checkpoint", "load", "--session", "w"]);
    let context: Value = serde_json::from_str(&loaded.stdout).unwrap();
    assert_eq!(context, json!({ "goal": "接力棒", "n": 1.5 }), "standard output is the context alone");
    std::fs::write(home.path().join("context.json"), r#"{"from":"file"}"#).unwrap();
    assert_eq!(save(&home, &["--file", "context.json", "--name", "n", "--tag", "t"], "").code, 0);
    let listed = home.run(&["checkpoint", "list", "--session", "w"]);
    assert_eq!(listed.stdout.lines().count(), 2);
    assert!(listed.stdout.lines().next().unwrap().ends_with("n #t"), "{}", listed.stdout);
    let diff = home.run(&["checkpoint", "diff", "--session", "w"]);
    assert!(diff.stdout.contains("+ from: \"file\"") && diff.stdout.contains("- goal"), "{}", diff.stdout);
    let long = format!(r#"{{"goal":"g","notes":"{}"}}"#, noise(5_000));
    assert_eq!(save(&home, &[], &long).code, 0);
    let view = home.run(&["checkpoint", "load", "--session", "w", "--max-bytes", "500"]);
    assert!(serde_json::from_str::<Value>(&view.stdout).is_ok(), "{}", view.stdout);
    assert!(view.stderr.contains("shortened or omitted"), "notes must go to standard error: {}", view.stderr);
}

#[test]
fn invalid_input_fails_with_the_documented_codes() {
    let home = home();
    let deep = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    let json = &["--format", "json"];
    for (context, code) in [
        ("", "invalid_json"),
        ("{", "invalid_json"),
        ("nonsense", "invalid_json"),
        (r#"{"a":1,"a":2}"#, "invalid_json"),
        (r#"{"a":1} {"b":2}"#, "invalid_json"),
        (&deep, "invalid_json"),
        ("[1]", "invalid_request"),
        ("null", "invalid_request"),
        ("\"text\"", "invalid_request"),
        (r#"{"a":9007199254740993}"#, "invalid_request"),
    ] {
        let finished = save(&home, json, context);
        assert_eq!(failure(&finished), (7, code.to_owned()), "{}", &context[..context.len().min(60)]);
    }
    for id in ["../x", "a/b", "%2e%2e", ""] {
        let finished =
            home.run_with_input(&["checkpoint", "save", "--session", id, "--format", "json"], b"{}");
        assert_eq!(failure(&finished), (7, "invalid_request".into()), "{id}");
        let load = run_json(&home, &["checkpoint", "load", id]);
        assert_eq!(failure(&load), (7, "invalid_request".into()), "{id}");
    }
    let cases: [(&[&str], i32, &str); 10] = [
        (&["load"], 2, "usage"),
        (&["load", "ckpt_1", "--session", "w"], 2, "usage"),
        (&["load", "ckpt_01HQXV3NK8ZZZZZZZZZZZZZZZZ"], 3, "checkpoint_not_found"),
        (&["load", "--session", "w"], 3, "session_not_found"),
        (&["load", "--session", "w", "--max-bytes", "-1"], 7, "invalid_request"),
        (&["list", "--session", "w", "--limit", "0"], 7, "invalid_request"),
        (&["delete", "ckpt_01HQXV3NK8ZZZZZZZZZZZZZZZZ"], 3, "checkpoint_not_found"),
        (&["diff", "ckpt_1"], 2, "usage"),
        (&["mark-critical", "--session", "w", "k"], 3, "session_not_found"),
        (&["list"], 2, "usage"),
    ];
    for (arguments, code, name) in cases {
        let finished = run_json(&home, &[&["checkpoint"], arguments].concat());
        assert_eq!(failure(&finished), (code, name.to_owned()), "{arguments:?}");
    }
    let secret = format!(r#"{{"k":"AKIA{}"}}"#, "A1B2C3D4E5F6G7H8");
    let finished = save(&home, json, &secret);
    assert_eq!(failure(&finished), (8, "secret_found".into()));
    assert!(
        finished.stdout.contains("context.k") && !finished.stdout.contains("A1B2C3D4"),
        "{}",
        finished.stdout
    );
    let missing = save(&home, &["--file", "absent.json", "--format", "json"], "");
    assert_eq!(failure(&missing), (1, "unreadable_input".into()));
    let listed = run_json(&home, &["checkpoint", "workflows"]);
    assert_eq!(listed.json()["data"]["workflows"], json!([]), "invalid input must store nothing");
}

#[test]
fn oversized_contexts_are_rejected_with_a_hint() {
    let home = home();
    let over = format!(r#"{{"s":"{}"}}"#, noise(16 * 1024 * 1024));
    let finished = save(&home, &["--format", "json"], &over);
    assert_eq!(failure(&finished), (7, "payload_too_large".into()));
    let mut far_over = vec![b' '; 64 * 1024 * 1024];
    far_over.extend(b"{}");
    let finished = home.run_with_input(&["checkpoint", "save", "--session", "w"], &far_over);
    assert_eq!(finished.code, 7);
    assert!(finished.stderr.contains("larger than 67108864 bytes"), "{}", finished.stderr);
    assert!(finished.stderr.contains("next: omit data"), "{}", finished.stderr);
}

#[test]
fn every_checkpoint_verb_works_with_a_server() {
    let served = home();
    let server = served.serve();
    let here = home();
    let url = server.url().to_owned();
    let run = |arguments: &[&str], input: &str| {
        let arguments = [&["checkpoint"], arguments, &["--server", &url, "--format", "json"]].concat();
        let finished = here.run_with_input(&arguments, input.as_bytes());
        assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
        finished.json()["data"].clone()
    };
    let context = r#"{"goal":"ü ☕","n":[1,{"a":null}]}"#;
    let saved = run(&["save", "--session", "w", "--name", "n ü", "--tag", "t", "--repo", "o/r"], context);
    let first = saved["checkpointId"].as_str().unwrap();
    let loaded = run(&["load", first], "");
    assert_eq!(loaded["context"].to_string(), context);
    assert_eq!(loaded["metadata"]["name"], "n ü");
    let second =
        run(&["save", "--session", "w", "--force"], context)["checkpointId"].as_str().unwrap().to_owned();
    assert_eq!(
        run(&["load", "--session", "w", "--max-tokens", "1", "--level", "basic"], "")["checkpointId"],
        *second
    );
    assert_eq!(
        run(&["list", "--session", "w", "--limit", "1"], "")["checkpoints"].as_array().unwrap().len(),
        1
    );
    assert_eq!(run(&["mark-critical", "--session", "w", "n"], "")["status"], "SUCCESS");
    assert_eq!(run(&["diff", first, &second], "")["changes"], json!([]));
    assert_eq!(run(&["explain", first, "--key", "n"], "")["keys"][0]["layer"], "CRITICAL");
    assert_eq!(run(&["workflows", "--repo", "o/r"], "")["workflows"][0]["checkpointCount"], 2);
    assert_eq!(run(&["delete", &second], "")["checkpointId"], *second);
    assert!(!here.data_dir().join("baton.db").exists(), "nothing must be stored locally");
    let stored = run_json(&served, &["checkpoint", "list", "--session", "w"]).json();
    assert_eq!(stored["data"]["checkpoints"].as_array().unwrap().len(), 1);
    let missing = run_json(&here, &["checkpoint", "load", &second, "--server", &url]);
    assert_eq!(failure(&missing), (3, "checkpoint_not_found".into()));
}

/// Returns a command without the capability of root to ignore file permissions.
pub(crate) fn without_privilege(home: &Home) -> Command {
    let plain = home.command();
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root {
        return plain;
    }
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-dac_override,-dac_read_search").arg(plain.get_program());
    command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(home.path());
    command
}

#[test]
fn a_read_only_data_folder_is_reported_and_not_changed() {
    let home = home();
    assert_eq!(save(&home, &[], r#"{"n":1}"#).code, 0);
    let set_modes = |folder: u32, file: u32| {
        for entry in std::fs::read_dir(home.data_dir()).unwrap() {
            let path = entry.unwrap().path();
            std::fs::set_permissions(path, PermissionsExt::from_mode(file)).unwrap();
        }
        std::fs::set_permissions(home.data_dir(), PermissionsExt::from_mode(folder)).unwrap();
    };
    std::fs::write(home.path().join("context.json"), r#"{"n":2}"#).unwrap();
    set_modes(0o500, 0o400);
    let arguments = ["checkpoint", "save", "--session", "w", "--file", "context.json", "--format", "json"];
    let output = without_privilege(&home).args(arguments).stdin(Stdio::null()).output().unwrap();
    set_modes(0o700, 0o600);
    let body: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &body["error"]["code"]),
        (Some(9), &"store_unavailable".into()),
        "{body}"
    );
    assert!(body["error"]["hint"].is_string(), "{body}");
    let listed = run_json(&home, &["checkpoint", "list", "--session", "w"]).json();
    assert_eq!(
        listed["data"]["checkpoints"].as_array().unwrap().len(),
        1,
        "existing checkpoints must be kept"
    );
}
