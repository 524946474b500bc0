//! `baton relay`: the work of one agent is passed to another one, with fake agents on the `PATH`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use baton_testkit::binary::{Finished, Home};
use serde_json::{Value, json};

use crate::hooked::Hooked;

const BINARY: &str = env!("CARGO_BIN_EXE_baton");

/// Script of a fake agent: keeps its arguments and environment, and reports the start of its chat as a hook would.
const AGENT: &str = r#"#!/bin/sh
for argument in "$@"; do printf '%s\0' "$argument"; done > "$HOME/arguments"
env > "$HOME/environment"
printf '{"session_id":"next-chat","turn_id":"t-1","cwd":"%s","hook_event_name":"SessionStart","source":"startup"}' "$PWD" |
  BATON_PROGRAM hook session-start --client codex > "$HOME/answer"
"#;

/// A checkout with an agent's live session: a request, an edit, a note, and a turn that failed at the usage limit.
fn checkout() -> Hooked {
    let home = Home::new(BINARY).working_in("shop");
    let path = format!("{}:/usr/bin:/bin", home.path().join("agents").display());
    let home = home.with("PATH", &path);
    fs::create_dir(home.path().join("agents")).unwrap();
    for arguments in [&["init", "--quiet", "--initial-branch", "login"][..], &["add", "."], &COMMIT] {
        fs::write(home.working_folder().join("README.md"), "shop\n").unwrap();
        git(home.working_folder(), arguments);
    }
    fs::write(home.working_folder().join("login.rs"), "fn login() {}\n").unwrap();
    let hooked = Hooked::at(home);
    hooked.hook(
        "user-prompt-submit",
        &hooked.claude("UserPromptSubmit", json!({ "prompt": "Users must stay signed in." })),
    );
    hooked.hook("post-tool-use", &hooked.bash("cargo test login", "test result: FAILED. 2 passed; 1 failed"));
    assert_eq!(hooked.work(), 1);
    let noted = hooked.home.run(&["note", "Cookies: the proxy drops headers", "--kind", "decision"]);
    assert_eq!(noted.code, 0, "{noted:?}");
    hooked.hook("stop-failure", &hooked.claude("StopFailure", json!({ "error": "rate_limit" })));
    hooked
}

const COMMIT: [&str; 7] =
    ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message=Start"];

fn git(folder: &Path, arguments: &[&str]) {
    assert!(Command::new("git").args(arguments).current_dir(folder).status().unwrap().success());
}

fn install(home: &Home, program: &str) {
    let path = home.path().join("agents").join(program);
    fs::write(&path, AGENT.replace("BATON_PROGRAM", BINARY)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn relay(hooked: &Hooked, arguments: &[&str]) -> Finished {
    hooked.home.run(&[&["relay"], arguments].concat())
}

fn handoffs(hooked: &Hooked) -> Vec<Value> {
    hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"].as_array().unwrap().clone()
}

fn kept(hooked: &Hooked, file: &str) -> String {
    fs::read_to_string(hooked.home.path().join(file)).unwrap()
}

#[test]
fn starts_the_agent_with_the_work_and_links_both_sessions() {
    for program in ["claude", "codex", "gemini", "opencode"] {
        let hooked = checkout();
        install(&hooked.home, program);
        let sender = hooked.sessions().remove(0);
        let to = if program == "claude" { "claude-code" } else { program };
        let done = relay(&hooked, &["--to", to]);
        assert_eq!(done.code, 0, "{done:?}");
        let arguments = kept(&hooked, "arguments");
        let arguments: Vec<&str> = arguments.trim_end_matches('\0').split('\0').collect();
        // The tests have no terminal.
        let expected = match program {
            "claude" | "gemini" => "-p",
            "codex" => "exec",
            _ => "run",
        };
        assert_eq!((arguments.len(), arguments[0]), (2, expected), "{arguments:?}");
        let handoff = handoffs(&hooked).remove(0);
        let id = handoff["id"].as_str().unwrap();
        for part in [
            "Continue the work of claude-code",
            "branch login",
            "Users must stay signed in.",
            "Cookies: the proxy drops headers",
            "- login.rs",
            id,
        ] {
            assert!(arguments[1].contains(part), "{part}: {}", arguments[1]);
        }
        assert!(!arguments[1].contains("Other active agents"), "{}", arguments[1]);
        assert!(!arguments[1].contains("not handed over yet"), "{}", arguments[1]);
        assert_eq!((&handoff["session_id"], &handoff["to_agent"]), (&sender["id"], &json!(to)));
        assert_eq!(handoff["status_label"], "relayed");
        assert_eq!(handoff["payload"]["references"]["uncommitted_files"], json!(["login.rs"]));
        let receiver = hooked.sessions().into_iter().find(|session| session["agent"] == "codex").unwrap();
        assert_eq!(handoff["acknowledged_session_id"], receiver["id"], "{handoff}");
        assert_ne!(receiver["id"], sender["id"]);
        assert_eq!(kept(&hooked, "answer"), "", "the prompt has the context already");
        assert!(kept(&hooked, "environment").contains(&format!("BATON_HANDOFF={id}")));
    }
}

#[test]
fn next_chat_of_the_started_agent_gets_the_context_from_its_hook() {
    let hooked = checkout();
    install(&hooked.home, "codex");
    assert_eq!(relay(&hooked, &["--to", "codex"]).code, 0);
    let start = json!({
        "session_id": "another-chat", "turn_id": "t-1", "cwd": hooked.home.working_folder(),
        "hook_event_name": "SessionStart", "source": "startup",
    });
    let answer = hooked.response("session-start", &start);
    assert!(answer.contains("Users must stay signed in."), "{answer}");
}

#[test]
fn print_shows_the_prompt_and_records_nothing() {
    let hooked = checkout();
    let printed = relay(&hooked, &["--to", "codex", "--print"]);
    assert_eq!(printed.code, 0, "an agent that is not installed: {printed:?}");
    assert!(printed.stdout.starts_with("Continue the work of claude-code in "), "{printed:?}");
    assert!(printed.stdout.contains("- login.rs"), "{printed:?}");
    assert!(!printed.stdout.contains("Other active agents"), "the sender is not another agent: {printed:?}");
    assert_eq!(handoffs(&hooked), Vec::<Value>::new());
    let data = hooked.data(&["relay", "--to", "codex", "--print"]);
    assert_eq!(data["prompt"].as_str().unwrap().trim(), printed.stdout.trim());
}

#[test]
fn print_shows_what_a_relay_sends() {
    let hooked = checkout();
    let request = |prompt: &str| {
        let report = hooked.claude("UserPromptSubmit", json!({ "prompt": prompt }));
        hooked.hook("user-prompt-submit", &report);
    };
    // The request that failed is no longer the latest one.
    request("Use cookies instead of local storage.");
    hooked.hook("stop", &hooked.claude("Stop", json!({ "last_assistant_message": "Cookies work now." })));
    request("Now write the test of the logout.");
    let printed = relay(&hooked, &["--to", "codex", "--print"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    let summary = |session: &Value| {
        hooked.data(&["session", "show", session["id"].as_str().unwrap()])["summary"].clone()
    };
    assert_eq!(summary(&hooked.sessions()[0]), Value::Null, "nothing is recorded");
    assert_eq!(handoffs(&hooked), Vec::<Value>::new());
    install(&hooked.home, "codex");
    assert_eq!(relay(&hooked, &["--to", "codex"]).code, 0);
    let sent = kept(&hooked, "arguments");
    let handoff = handoffs(&hooked).remove(0);
    // The goal has a line of its own.
    let (_, state) = handoff["summary"].as_str().unwrap().split_once("\"; later: ").unwrap();
    let parts =
        ["Goal:\n- Users must stay signed in.", "Cookies: the proxy drops headers", "- login.rs", state];
    for part in parts {
        assert!(sent.contains(part), "{part}: {sent}");
        assert!(printed.stdout.contains(part), "{part}: {}", printed.stdout);
    }
}

#[test]
fn missing_agent_is_an_error_and_records_nothing() {
    let hooked = checkout();
    // A file that cannot be executed is not a program.
    fs::write(hooked.home.path().join("agents/codex"), "").unwrap();
    let refused = relay(&hooked, &["--to", "codex"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("codex is not on the PATH"), "{refused:?}");
    assert!(refused.stderr.contains("npm install -g @openai/codex"), "{refused:?}");
    assert_eq!(handoffs(&hooked), Vec::<Value>::new());
    let unknown = relay(&hooked, &["--to", "clippy"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
}

#[test]
fn program_that_cannot_be_started_leaves_no_handoff() {
    let hooked = checkout();
    let path = hooked.home.path().join("agents/codex");
    fs::write(&path, "#!/missing/interpreter\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let failed = relay(&hooked, &["--to", "codex"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("cannot start"), "{failed:?}");
    assert_eq!(handoffs(&hooked), Vec::<Value>::new());
}

#[test]
fn handoff_of_the_agent_is_kept() {
    let hooked = checkout();
    install(&hooked.home, "codex");
    let arguments = [
        "handoff",
        "create",
        "--summary",
        "The form works.",
        "--goal",
        "Users stay signed in",
        "--rejected",
        "Local storage: readable by scripts",
        "--next",
        "Add logout",
        "--workflow",
        "login-work",
    ];
    assert_eq!(hooked.home.run(&arguments).code, 0);
    assert_eq!(relay(&hooked, &["--to", "codex"]).code, 0);
    let handoff = handoffs(&hooked).remove(0);
    assert_eq!(
        (&handoff["status_label"], &handoff["summary"]),
        (&json!("relayed"), &json!("The form works."))
    );
    assert_eq!(handoff["payload"]["next_actions"], json!(["Add logout"]));
    assert_eq!(handoff["payload"]["references"]["workflow"], "login-work");
    let prompt = kept(&hooked, "arguments");
    assert!(
        prompt.contains("Local storage: readable by scripts") && prompt.contains("Add logout"),
        "{prompt}"
    );
}

#[test]
fn work_of_a_chat_that_has_ended_is_passed_on() {
    let hooked = checkout();
    install(&hooked.home, "codex");
    hooked.hook("session-end", &hooked.claude("SessionEnd", json!({})));
    assert_eq!(hooked.sessions(), Vec::<Value>::new());
    let done = relay(&hooked, &["--to", "codex"]);
    assert_eq!(done.code, 0, "{done:?}");
    let found = handoffs(&hooked);
    assert_eq!(found.len(), 1, "the handoff of the ended chat is used");
    let receiver = hooked.sessions().remove(0);
    assert_eq!(found[0]["acknowledged_session_id"], receiver["id"]);
    assert!(kept(&hooked, "arguments").contains("Users must stay signed in."));
}

#[test]
fn relay_needs_a_checkout_and_recorded_work() {
    let home = Home::new(BINARY).working_in("empty");
    let outside = home.run(&["relay", "--to", "codex", "--print"]);
    assert_eq!(outside.code, 2, "{outside:?}");
    assert!(outside.stderr.contains("not in a checkout"), "{outside:?}");
    git(home.working_folder(), &["init", "--quiet"]);
    let nothing = home.run(&["relay", "--to", "codex", "--print"]);
    assert_eq!(nothing.code, 3, "{nothing:?}");
    assert!(nothing.stderr.contains("nothing is recorded for local/empty"), "{nothing:?}");
}
