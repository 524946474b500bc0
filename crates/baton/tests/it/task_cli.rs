//! `baton task` on the command line: where it works, errors, exit codes and output.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use baton_testkit::binary::{Finished, Home};
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};

/// Creates a home that is a checkout with one invalid task file.
fn checkout() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    fs::create_dir(home.path().join(".git")).unwrap();
    fs::create_dir(home.path().join("tasks")).unwrap();
    fs::write(home.path().join("tasks/TASK-2.task.yaml"), "title: [\n").unwrap();
    home
}

fn task(home: &Home, arguments: &[&str]) -> Finished {
    home.run(&[&["task"], arguments].concat())
}

#[test]
fn outside_of_a_repository_task_verbs_fail() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let finished = task(&home, &["list"]);
    assert_eq!(finished.code, 3);
    assert!(finished.stderr.contains("is not in a checkout of a git repository"), "{}", finished.stderr);
    let json = task(&home, &["list", "--format", "json"]);
    assert_eq!((json.code, &json.json()["error"]["code"]), (3, &json!("not_found")));
}

#[test]
fn task_verbs_create_no_files_in_a_checkout_without_tasks() {
    let home = checkout();
    assert_eq!(task(&home, &["list", "--format", "json"]).json()["data"], json!({ "tasks": [] }));
    assert!(task(&home, &["list"]).stdout.contains("no task has a context here"));
    assert_eq!(
        task(&home, &["sweep-contexts", "--ttl", "1h"]).stdout,
        "nothing to sweep\nnext: baton task list\n"
    );
    for _ in 0..2 {
        let purged = task(&home, &["purge-context", "TASK-1", "--format", "json"]);
        assert_eq!((purged.code, &purged.json()["data"]["purged"]), (0, &json!(false)));
    }
    assert!(!home.path().join(".agent-output").exists());
    assert!(!home.data_dir().exists(), "task verbs must not create a store");
}

#[test]
fn exit_codes_match_the_error() {
    let home = checkout();
    let code = |arguments: &[&str]| task(&home, arguments).code;
    assert_eq!(code(&["get-context", "TASK-1"]), 3);
    assert_eq!(code(&["init-context", "TASK-1"]), 3);
    assert_eq!(code(&["init-context", "TASK-2"]), 7, "the task file is not YAML");
    assert_eq!(code(&["get-context", "../TASK-1"]), 7);
    assert_eq!(code(&["update-agent", "TASK-1", "--agent", "../x", "--status", "done"]), 7);
    assert_eq!(code(&["update-agent", "TASK-1", "--agent", "reviewer", "--status", "finished"]), 7);
    assert_eq!(code(&["mark-blocked", "TASK-1", "--agent", "reviewer", "--finding", " "]), 7);
    assert_eq!(code(&["sweep-contexts", "--ttl", "soon"]), 7);
    assert_eq!(code(&["record-qa", "TASK-1", "--agent", "implementer", "--from", "../outside.log"]), 3);
    assert_eq!(code(&["record-qa", "TASK-1", "--agent", "implementer"]), 2);
    assert_eq!(code(&["nonsense"]), 2);
}

#[test]
fn an_unreadable_task_file_is_reported_with_its_position() {
    let finished = task(&checkout(), &["init-context", "TASK-2", "--format", "json"]);
    let error = finished.json()["error"].clone();
    assert_eq!(error["details"]["path"], "tasks/TASK-2.task.yaml");
    assert!(error["details"]["line"].as_u64().unwrap() >= 1, "{error}");
}

#[test]
fn a_damaged_context_is_reported_and_can_be_purged() {
    let home = checkout();
    let folder = home.path().join(".agent-output/TASK-1");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("context.json"), "{\"version\":1}").unwrap();
    let finished = task(&home, &["get-context", "TASK-1"]);
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("context.json"), "{}", finished.stderr);
    assert!(finished.stderr.contains("next: "), "{}", finished.stderr);
    assert_eq!(task(&home, &["purge-context", "TASK-1"]).code, 0);
    assert!(!folder.exists());
}

#[test]
fn the_task_table_of_a_project_file_causes_no_warning() {
    let home = checkout();
    fs::write(
        home.path().join(".baton.toml"),
        "[task]\npipeline = ['writer']\n[task.qa]\ncommands = ['make']\n",
    )
    .unwrap();
    let finished = task(&home, &["list"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
}

/// Runs a verb with this umask and returns its data.
fn task_under_umask(checkout: &Checkout, umask: &str, arguments: &[&str]) -> Value {
    let plain = checkout.home.command();
    let mut command = Command::new("sh");
    command
        .env_clear()
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(checkout.root())
        .args(["-c", &format!("umask {umask} && exec \"$0\" \"$@\"")])
        .arg(plain.get_program())
        .arg("task")
        .args(arguments)
        .args(["--format", "json"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["data"].clone()
}

/// Lists files and folders below a folder that group or others can access.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.mode() & 0o077 != 0 {
            found.push(format!("{:o} {}", metadata.mode() & 0o7777, path.display()));
        }
        if metadata.is_dir() {
            assert_eq!(metadata.mode() & 0o700, 0o700, "{}", path.display());
            found.extend(open_to_others(&path));
        }
    }
    found
}

#[test]
fn task_files_are_private_under_any_umask() {
    for umask in ["000", "077"] {
        let checkout = Checkout::new();
        let run = |arguments: &[&str]| task_under_umask(&checkout, umask, arguments);
        let output = checkout.path(".agent-output");
        let private = |what: &str| {
            assert_eq!(fs::metadata(&output).unwrap().mode() & 0o7777, 0o700, "umask {umask}, {what}");
            assert_eq!(open_to_others(&output), [""; 0], "umask {umask}, {what}");
        };
        run(&["init-context", TASK]);
        private("init-context");
        run(&["update-agent", TASK, "--agent", "implementer", "--status", "in_progress"]);
        checkout.write("src/main.rs", "fn main() { fast(); }\n");
        run(&["snapshot-worktree", TASK, "--agent", "implementer"]);
        checkout.write("qa.log", "1 passed\n");
        run(&["record-qa", TASK, "--agent", "implementer", "--from", "qa.log"]);
        private("snapshot-worktree and record-qa");
        run(&["complete", TASK, "--force"]);
        private("complete");
        assert!(output.join(".archive").is_dir());
    }
}

#[test]
fn every_verb_ends_with_the_next_command() {
    let checkout = Checkout::new();
    let run = |arguments: &[&str]| {
        let finished = checkout.home.run(&[&["task"], arguments].concat());
        assert_eq!(finished.code, 0, "{arguments:?}: {}", finished.stderr);
        let json = checkout.home.run(&[&["task"], arguments, &["--format", "json"]].concat());
        (finished, json)
    };
    // Each verb is run with text output and with JSON output.
    let ends_with_next = |arguments: &[&str]| {
        let (finished, _) = run(arguments);
        let last = finished.stdout.lines().last().unwrap_or_default().trim_start();
        assert!(
            last.starts_with("next: ") && last.contains("baton task "),
            "{arguments:?}: {}",
            finished.stdout
        );
    };
    ends_with_next(&["list"]);
    ends_with_next(&["list", "--everywhere"]);
    ends_with_next(&["init-context", TASK]);
    ends_with_next(&["list"]);
    ends_with_next(&["list", "--everywhere"]);
    ends_with_next(&["get-context", TASK]);
    ends_with_next(&["get-context", TASK, "--role", "reviewer"]);
    ends_with_next(&["run-qa", TASK, "--agent", "implementer", "--baseline", "--", "true"]);
    ends_with_next(&["update-agent", TASK, "--agent", "implementer", "--status", "in_progress"]);
    ends_with_next(&["rebuild-context", TASK]);
    checkout.write("src/main.rs", "fn main() { fast(); }\n");
    checkout.write("qa.log", "1 passed\n");
    ends_with_next(&["run-qa", TASK, "--agent", "implementer", "--", "true"]);
    ends_with_next(&["record-qa", TASK, "--agent", "implementer", "--from", "qa.log"]);
    ends_with_next(&["note", TASK, "--agent", "implementer", "look at the cache"]);
    ends_with_next(&["attach-evidence", TASK, "--type", "log", "--path", "qa.log"]);
    ends_with_next(&["snapshot-worktree", TASK, "--agent", "implementer"]);
    ends_with_next(&["update-agent", TASK, "--agent", "implementer", "--status", "done"]);
    ends_with_next(&["verify-worktree", TASK, "--expected-agent", "implementer"]);
    // Programs read the output of these verbs, so the next command goes to standard error.
    for arguments in [&["get-diff", TASK][..], &["get-diff", TASK, "--content"], &["env", TASK]] {
        let (finished, json) = run(arguments);
        assert!(!finished.stdout.contains("next: "), "{arguments:?}: {}", finished.stdout);
        assert!(finished.stderr.ends_with("--agent reviewer --status in_progress\n"), "{}", finished.stderr);
        assert!(json.json()["data"]["next"].is_string() && json.stderr.is_empty(), "{json:?}");
    }
    ends_with_next(&["mark-blocked", TASK, "--agent", "reviewer", "--finding", "a finding"]);
    checkout.write("src/main.rs", "fn main() { drift(); }\n");
    checkout.refused(5, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
    let drift = checkout.home.run(&["task", "get-diff", TASK, "--type", "drift", "--content"]);
    assert!(
        drift.stderr.contains("next: baton task resolve-drift TASK-0824 --note TEXT"),
        "{}",
        drift.stderr
    );
    let resolved = checkout.home.run(&["task", "resolve-drift", TASK, "--note", "meant so"]);
    assert!(resolved.stdout.lines().last().unwrap().starts_with("next: baton task "), "{}", resolved.stdout);
    let completed = checkout.home.run(&["task", "complete", TASK, "--force"]);
    assert!(completed.stdout.ends_with("next: baton task list\n"), "{completed:?}");
    ends_with_next(&["sweep-contexts"]);
    ends_with_next(&["purge-context", TASK]);
}

#[test]
fn task_env_exports_the_path_of_the_context() {
    let checkout = Checkout::with_context();
    let text = checkout.home.run(&["task", "env", TASK]).stdout;
    let shell = Command::new("sh")
        .args(["-c", &format!("{text}\nprintf %s \"$TASK_CONTEXT_PATH\"")])
        .output()
        .unwrap();
    let path = String::from_utf8(shell.stdout).unwrap();
    assert!(Path::new(&path).is_absolute(), "{path}");
    let expected = checkout.path(".agent-output/TASK-0824/context.json").canonicalize().unwrap();
    assert_eq!(Path::new(&path).canonicalize().unwrap(), expected);
    assert_eq!(checkout.task(&["env", TASK])["variables"]["TASK_CONTEXT_PATH"], json!(path));
    checkout.refused(3, &["env", "TASK-0825"]);
}

#[test]
fn help_lists_global_options_at_the_top_level_only() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    assert!(home.run(&["--help"]).stdout.contains("--data-dir <FOLDER>"));
    for verb in [&["task", "--help"][..], &["task", "note", "-h"], &["help", "session", "start"]] {
        let help = home.run(verb);
        assert_eq!(help.code, 0, "{verb:?}: {}", help.stderr);
        assert!(!help.stdout.contains("--data-dir"), "{verb:?}: {}", help.stdout);
    }
    // Global options are accepted everywhere.
    assert_eq!(home.run(&["session", "list", "--format", "json"]).json()["success"], json!(true));
}

#[test]
fn role_and_agent_flags_and_both_word_forms_are_accepted() {
    let checkout = Checkout::with_context();
    checkout.task(&["update-agent", TASK, "--role", "implementer", "--status", "in-progress"]);
    checkout.write("src/main.rs", "fn main() { fast(); }\n");
    checkout.task(&["snapshot-worktree", TASK, "--role", "implementer"]);
    checkout.task(&["get-context", TASK, "--agent", "implementer"]);
    checkout.task(&["get-diff", TASK, "--role", "implementer", "--type", "from-base"]);
    checkout.task(&["verify-worktree", TASK, "--role", "implementer"]);
}

#[test]
fn the_default_actor_is_the_user_name() {
    let user = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(user.stdout).unwrap().trim().to_owned();
    let actor = |environment: &[(&str, &str)]| {
        let checkout = Checkout::new();
        let mut command = checkout.home.command();
        command.envs(environment.iter().copied()).args(["task", "init-context", TASK]);
        assert!(command.output().unwrap().status.success());
        checkout.context()["audit"]["updated_by"].as_str().unwrap().to_owned()
    };
    assert_eq!(actor(&[]), user, "without variables");
    assert_eq!(actor(&[("USER", "  ")]), user);
    assert_eq!(actor(&[("USER", "ada")]), "ada");
    assert_eq!(actor(&[("USER", "ada"), ("BATON_AGENT", "claude-1")]), "claude-1");
}
