//! Verbs of the command line: output streams and exit codes.

use std::os::unix::fs::PermissionsExt;

use baton_testkit::binary::Home;

use crate::widths::on_a_terminal;

pub(crate) fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_baton"))
}

#[test]
fn version_includes_the_commit() {
    let finished = home().run(&["--version"]);
    assert_eq!(finished.code, 0);
    let text = finished.stdout.trim();
    assert!(text.starts_with("baton 0.") && text.ends_with(')'), "{text}");
}

#[test]
fn without_a_verb_the_state_and_the_next_command_are_shown() {
    let home = home();
    let fresh = home.run::<&str>(&[]);
    assert_eq!((fresh.code, fresh.stderr.as_str()), (0, ""));
    assert!(fresh.stdout.contains("next: baton setup"), "{}", fresh.stdout);
    assert!(!home.data_dir().exists(), "showing the state must not create the data folder");
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]);
    let used = home.run::<&str>(&[]);
    assert!(used.stdout.contains("active   1 session"), "{}", used.stdout);
    assert_eq!(home.run(&["--format", "json"]).json()["data"]["next"], "baton setup");
}

#[test]
fn terminals_get_tables_that_fit_relative_times_and_colours() {
    let home = home();
    let branch = "feature/".to_owned() + &"long".repeat(30);
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r", "--branch", &branch]);
    let plain = on_a_terminal(&home, 90, "session list", &[("NO_COLOR", "1")]);
    let lines: Vec<&str> = plain.trim().lines().collect();
    assert!(lines[0].starts_with("SESSION  ") && lines[0].ends_with("HEARTBEAT"), "{plain}");
    assert!(lines[1].contains("…  ") && !lines[1].ends_with('Z'), "{plain}");
    assert!(lines.iter().all(|line| line.chars().count() <= 90), "{plain}");
    assert!(on_a_terminal(&home, 90, "session list --utc", &[]).trim_end().ends_with('Z'));
    assert!(on_a_terminal(&home, 90, "session list", &[]).contains("\u{1b}[1mSESSION"));
}

#[test]
fn pipes_get_exact_times_and_no_colours() {
    let home = home();
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]);
    let listed = home.run(&["session", "list"]);
    assert!(listed.stdout.trim_end().ends_with('Z') && !listed.stdout.contains("AGENT"), "{}", listed.stdout);
    let failed = home.run(&["session", "show", "nonsense"]);
    for text in [listed.stdout, failed.stderr] {
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn exit_codes_match_the_error() {
    let home = home();
    let code = |arguments: &[&str]| home.run(arguments).code;
    assert_eq!(code(&["session", "heartbeat", "nonsense"]), 7);
    assert_eq!(code(&["session", "heartbeat", "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ"]), 3);
    let id = home.run(&["session", "start", "--agent", "a", "--repo", "o/r", "--format", "json"]).json();
    let id = id["data"]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(code(&["session", "end", &id, "--summary", "done"]), 0);
    assert_eq!(code(&["session", "heartbeat", &id]), 4);
    let secret = format!("token gh{}_{}", "p", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    assert_eq!(code(&["session", "end", &id, "--summary", &secret]), 8);
}

#[test]
fn a_failure_prints_the_next_step() {
    let finished = home().run(&["session", "heartbeat", "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ"]);
    assert!(finished.stdout.is_empty());
    assert!(finished.stderr.contains("there is no session"), "{}", finished.stderr);
    assert!(finished.stderr.contains("next: list sessions with session_history"), "{}", finished.stderr);
    assert!(finished.stderr.contains(" or start one with"), "{}", finished.stderr);
}

#[test]
fn counts_of_one_are_singular() {
    let home = home();
    let arguments = ["checkpoint", "save", "--session", "w"];
    assert_eq!(home.run_with_input(&arguments, br#"{"goal":"x"}"#).code, 0);
    let listed = home.run(&["checkpoint", "workflows"]).stdout;
    assert!(listed.contains("  1 checkpoint, 12 bytes, saved "), "{listed}");
    let checked = home.run(&["doctor", "--deep"]).stdout;
    assert!(checked.contains("content: intact: 1 checkpoint and 0 captured tool uses"), "{checked}");
}

#[test]
fn data_files_are_private() {
    let home = home();
    assert_eq!(home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]).code, 0);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.data_dir()), 0o700);
    assert_eq!(mode(&home.data_dir().join("baton.db")), 0o600);
}

#[test]
fn a_data_folder_that_cannot_be_created_is_an_error() {
    let home = home();
    std::fs::write(home.data_dir(), b"a file").unwrap();
    let finished = home.run(&["session", "start", "--agent", "a", "--repo", "o/r", "--format", "json"]);
    assert_eq!((finished.code, &finished.json()["error"]["code"]), (9, &"store_unavailable".into()));
    let message = finished.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("cannot "), "{message}");
    assert_eq!(
        message.to_lowercase().matches("not a directory").count(),
        1,
        "the cause is stated once: {message}"
    );
}

#[test]
fn config_show_prints_origins_and_masks_secrets() {
    let home = home();
    std::fs::write(home.path().join(".baton.toml"), "[session]\nvneture = \"x\"\nventure = \"mine\"\n")
        .unwrap();
    let finished = home.run(&["config", "show", "--format", "json"]);
    assert!(finished.stderr.contains("did you mean `session.venture`"), "{}", finished.stderr);
    let json = finished.json();
    let entry = |key: &str| {
        json["data"]["settings"].as_array().unwrap().iter().find(|entry| entry["key"] == key).unwrap().clone()
    };
    assert_eq!(entry("session.venture")["value"], "mine");
    assert!(entry("session.venture")["origin"].as_str().unwrap().contains(".baton.toml"));
    assert!(entry("data_dir")["origin"].as_str().unwrap().contains("BATON_DATA_DIR"));
    assert!(!finished.stdout.contains(baton_testkit::binary::RELAY_KEY), "the relay key must not be shown");
}

#[test]
fn completions_print_shell_scripts() {
    for (shell, mark) in [("bash", "_baton"), ("zsh", "#compdef"), ("fish", "complete -c baton")] {
        let finished = home().run(&["completions", shell]);
        assert_eq!(finished.code, 0);
        assert!(finished.stdout.contains(mark), "{shell}");
    }
}
