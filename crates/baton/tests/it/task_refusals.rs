//! Errors of `baton task` on a real repository: secrets, invalid input, missing git. No file is partially written.

use std::fs;

use serde_json::json;

use crate::checkout::{Checkout, TASK};

/// Builds a secret at run time, so that this file does not contain one.
fn secret() -> String {
    format!("AKIA{}", "IOSFODNN7EXAMPLQ")
}

#[test]
fn secrets_are_rejected_by_every_verb_that_stores_text() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", &format!("const KEY: &str = \"{}\";\n", secret()));
    checkout.write("qa.log", &format!("using {}\n", secret()));
    let finding = format!("it says {}", secret());
    let before = checkout.context();
    for verb in [
        &["snapshot-worktree", TASK, "--agent", "implementer"][..],
        &["record-qa", TASK, "--agent", "implementer", "--from", "qa.log"],
        &["mark-blocked", TASK, "--agent", "implementer", "--finding", &finding],
        &["attach-evidence", TASK, "--type", "log", "--path", "qa.log"],
    ] {
        let error = checkout.refused(8, verb);
        assert_eq!(error["code"], "secret_found");
        assert!(!error.to_string().contains(&secret()), "{error}");
    }
    assert_eq!(checkout.context(), before, "nothing was written");
    let forced = checkout.task(&["snapshot-worktree", TASK, "--agent", "implementer", "--force-secrets"]);
    assert!(forced["warnings"].to_string().contains("secret"), "{forced}");
    assert_eq!(checkout.context()["audit"]["forced_secrets"][0]["verb"], "snapshot-worktree");

    checkout.update("implementer", "done");
    checkout.write("src/main.rs", "fn main() {}\n");
    checkout.write("src/lib.rs", "fn other() {}\n");
    checkout.refused(5, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
    let note = ["resolve-drift", TASK, "--note", &finding];
    assert_eq!(checkout.refused(8, &note)["code"], "secret_found");
}

/// Returns the task files and snapshot objects that contain a text.
fn files_containing(checkout: &Checkout, needle: &str) -> Vec<String> {
    let objects = checkout.path(".agent-output/.objects");
    let mut found = Vec::new();
    if objects.is_dir() {
        let folder = objects.to_str().unwrap();
        let ids = checkout.git(&["--git-dir", folder, "cat-file", "--batch-check", "--batch-all-objects"]);
        for line in ids.lines() {
            let id = line.split(' ').next().unwrap();
            if checkout.git(&["--git-dir", folder, "cat-file", "-p", id]).contains(needle) {
                found.push(line.to_owned());
            }
        }
    }
    let mut folders = vec![checkout.path(".agent-output")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(needle) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn a_rejected_secret_leaves_no_object() {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    let snapshot = ["snapshot-worktree", TASK, "--agent", "implementer"];
    let wide: Vec<u8> = format!("key = {}", secret()).encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [secret().into_bytes(), format!("\0\u{1} {}", secret()).into_bytes(), wide] {
        fs::write(checkout.path("src/new.rs"), bytes).unwrap();
        let error = checkout.refused(8, &snapshot);
        assert!(error["message"].as_str().unwrap().contains("aws-access-key at src/new.rs"), "{error}");
        assert_eq!(files_containing(&checkout, &secret()), Vec::<String>::new());
        fs::remove_file(checkout.path("src/new.rs")).unwrap();
    }
    // A forced secret is stored.
    checkout.write("src/new.rs", &secret());
    checkout.task(&[&snapshot[..], &["--force-secrets"]].concat());
    assert!(!files_containing(&checkout, &secret()).is_empty());
}

#[test]
fn a_drift_with_a_secret_is_listed_and_not_stored() {
    let checkout = Checkout::implemented();
    checkout.write("src/main.rs", &format!("const KEY: &str = \"{}\";\n", secret()));
    fs::rename(checkout.path("src/lib.rs"), checkout.path("src/library.rs")).unwrap();
    let error = checkout.refused(5, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
    let differences = &error["details"]["differences"];
    let named: Vec<&str> = differences
        .as_array()
        .unwrap()
        .iter()
        .map(|difference| difference["path"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(named, ["src/lib.rs", "src/library.rs", "src/main.rs", "src/lib.rs"], "{error}");
    let sha = baton_core::Sha256Hash::of(&fs::read(checkout.path("src/main.rs")).unwrap()).to_string();
    assert_eq!(differences[2]["actual"], sha);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("only names and hashes of this tree were stored: potential secret"),
        "{message}"
    );
    assert!(message.contains("aws-access-key at src/main.rs:1") && !message.contains(&secret()), "{message}");
    assert_eq!(files_containing(&checkout, &secret()), Vec::<String>::new());
    let resolve = ["resolve-drift", TASK, "--note", "it is a key of a test"];
    checkout.refused(8, &resolve);
    assert_eq!(files_containing(&checkout, &secret()), Vec::<String>::new());
    checkout.task(&[&resolve[..], &["--force-secrets"]].concat());
    checkout.update("reviewer", "in_progress");
}

#[test]
fn secrets_in_names_are_redacted_and_not_stored() {
    let checkout = Checkout::implemented();
    let path = format!("src/{}.rs", secret());
    checkout.write(&path, "// a strange name\n");
    let error = checkout.refused(5, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
    assert_eq!(error["details"]["differences"][0]["path"], "src/[redacted:aws-access-key].rs", "{error}");
    let resolve = checkout.refused(8, &["resolve-drift", TASK, "--note", "x"]);
    assert!(resolve["message"].as_str().unwrap().contains("in the name src/[redacted"), "{resolve}");
    assert!(!format!("{error}{resolve}").contains(&secret()));
    assert_eq!(files_containing(&checkout, &secret()), Vec::<String>::new());

    let checkout = Checkout::new();
    checkout.git(&["checkout", "--quiet", "-b", &format!("feature/{}", secret())]);
    let error = checkout.refused(8, &["init-context", TASK]);
    assert!(error["message"].as_str().unwrap().contains("aws-access-key at git.branch"), "{error}");
    assert_eq!(files_containing(&checkout, &secret()), Vec::<String>::new());
}

#[test]
fn invalid_input_fails_with_the_documented_codes() {
    let checkout = Checkout::with_context();
    checkout.refused(3, &["init-context", "TASK-9999"]);
    checkout.refused(3, &["get-context", "TASK-9999"]);
    let refused = checkout.refused(7, &["get-context", "../../etc"]);
    assert_eq!(refused["hint"], "see baton task get-context --help");
    checkout.refused(7, &["attach-evidence", TASK, "--type", "x", "--path", "../../outside"]);
    checkout.refused(7, &["attach-evidence", TASK, "--type", "x", "--path", "/etc/hostname"]);
    checkout.refused(3, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
    checkout.refused(4, &["update-agent", TASK, "--agent", "validator", "--status", "in_progress"]);
    checkout.write("tasks/TASK-7.task.yaml", "title: x\n  status: [\n");
    let error = checkout.refused(7, &["init-context", "TASK-7"]);
    assert!(error["details"]["line"].is_u64() && error["details"]["column"].is_u64(), "{error}");
    checkout.write("tasks/TASK-7.task.yaml", "- x\n");
    checkout.refused(7, &["init-context", "TASK-7"]);
    let unknown = checkout.refused(7, &["init-context", "TASK-0825", "--base-commit", "nothing"]);
    assert!(unknown["message"].as_str().unwrap().contains("there is no commit nothing"), "{unknown}");
    checkout.refused(7, &["init-context", "TASK-0825", "--base-commit=--all"]);
    assert!(
        !checkout.path(".agent-output/TASK-0825").exists() && !checkout.path(".agent-output/TASK-7").exists()
    );

    let context = checkout.path(".agent-output/TASK-0824/context.json");
    let mut text = fs::read_to_string(&context).unwrap();
    text = text.replace("Faster settings", "Slower settings");
    fs::write(&context, text).unwrap();
    assert_eq!(checkout.refused(1, &["get-context", TASK])["code"], "task_corrupt");
}

#[test]
fn a_changed_task_file_causes_a_warning() {
    let checkout = Checkout::with_context();
    let path = "tasks/TASK-0824-settings.task.yaml";
    let text = fs::read_to_string(checkout.path(path)).unwrap();
    checkout.write(path, &text.replace("Make it faster", "Make it much faster"));
    let taken = checkout.update("implementer", "in_progress");
    assert!(taken["warnings"].to_string().contains("changed after the context was created"), "{taken}");
    let rebuilt = checkout.task(&["rebuild-context", TASK]);
    assert_eq!((&rebuilt["changed"], &rebuilt["immutable_revision"]), (&json!(true), &json!(2)));
}

#[test]
fn a_moved_head_causes_a_warning() {
    let checkout = Checkout::with_context();
    checkout.git(&["commit", "--quiet", "--allow-empty", "-m", "other"]);
    let read = checkout.task(&["get-context", TASK]);
    assert!(read["warnings"].to_string().contains("HEAD"), "{read}");
}

#[test]
fn without_git_reads_work_and_writes_fail_with_a_hint() {
    let checkout = Checkout::implemented();
    let run = |arguments: &[&str]| {
        let output =
            checkout.home.command().env("PATH", "/nonexistent").arg("task").args(arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run(&["list"]).0, 0);
    assert_eq!(run(&["get-diff", TASK, "--agent", "implementer", "--content"]).0, 0);
    assert_eq!(run(&["get-context", TASK]).0, 0);
    // Verbs that write a context record HEAD, so they need git. They must not change the context.
    let before = fs::read(checkout.path(".agent-output/TASK-0824/context.json")).unwrap();
    for verb in [
        &["verify-worktree", TASK, "--expected-agent", "implementer"][..],
        &["mark-blocked", TASK, "--agent", "reviewer", "--finding", "x"],
        &["update-agent", TASK, "--agent", "reviewer", "--status", "in_progress"],
        &["note", TASK, "--agent", "implementer", "x"],
        &["attach-evidence", TASK, "--type", "plan", "--path", "README.md"],
        &["rebuild-context", TASK],
        &["complete", TASK, "--force"],
    ] {
        let (code, stderr) = run(verb);
        assert_eq!(code, 1, "{verb:?}: {stderr}");
        assert!(
            stderr.contains("`git` was not found") && stderr.contains("install git"),
            "{verb:?}: {stderr}"
        );
        let (_, stderr) = run(&[verb, &["--format", "json"]].concat());
        assert!(!stderr.contains("\"internal\""), "{stderr}");
    }
    assert_eq!(fs::read(checkout.path(".agent-output/TASK-0824/context.json")).unwrap(), before);
    assert_eq!(run(&["purge-context", TASK]).0, 0);
}

#[test]
fn a_missing_git_has_its_own_error_code() {
    let checkout = Checkout::implemented();
    let mut command = checkout.home.command();
    command.env("PATH", "/nonexistent").args(["task", "mark-blocked", TASK, "--agent", "reviewer"]);
    let output = command.args(["--finding", "x", "--format", "json"]).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["error"]["code"], "git_unavailable", "{answer}");
}

#[test]
fn without_git_session_start_requires_repo() {
    let checkout = Checkout::new();
    let start = |arguments: &[&str]| {
        let mut command = checkout.home.command();
        command.env("PATH", "/nonexistent").args(["session", "start", "--agent", "a"]).args(arguments);
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, stderr) = start(&[]);
    assert!(code == 1 && stderr.contains("next: add --repo OWNER/NAME; or install git"), "{stderr}");
    assert_eq!(start(&["--repo", "acme/shop"]).0, 0);
}

#[test]
fn bare_repositories_have_no_tasks() {
    let checkout = Checkout::new();
    checkout.git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
    let run = |folder: &str| {
        let folder = checkout.home.path().join(folder);
        let output = checkout
            .home
            .command()
            .current_dir(folder)
            .args(["task", "init-context", TASK])
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, stderr) = run("bare.git");
    assert!(code == 3 && stderr.contains("is not in a checkout of a git repository"), "{stderr}");
    // A repository configured as bare has no working tree.
    checkout.git(&["config", "core.bare", "true"]);
    let (code, stderr) = run("shop");
    assert!(
        code == 3 && stderr.contains("repository without a working tree") && stderr.contains("next: "),
        "{stderr}"
    );
    assert!(!checkout.path(".agent-output/TASK-0824").exists());
}

#[test]
fn every_error_has_a_next_step() {
    let checkout = Checkout::with_context();
    let stderr = |arguments: &[&str]| {
        let finished = checkout.home.run(&[&["task"], arguments].concat());
        assert_ne!(finished.code, 0, "{arguments:?}");
        finished.stderr
    };
    for arguments in [
        &["update-agent", TASK, "--agent", "implementer", "--status", "finished"][..],
        &["update-agent", TASK, "--agent", "stranger", "--status", "done"],
        &["get-context", "../x"],
        &["mark-blocked", TASK, "--agent", "reviewer", "--finding", " "],
        &["attach-evidence", TASK, "--type", "plan", "--path", "README.md", "--lines", "9-1"],
        &["attach-evidence", TASK, "--type", "plan", "--path", "none.md"],
        &["record-qa", TASK, "--agent", "implementer", "--from", "none.log"],
        &["run-qa", TASK, "--agent", "reviewer"],
        &["sweep-contexts", "--ttl", "soon"],
        &["get-diff", TASK, "--agent", "implementer"],
        &["complete", TASK],
        &["resolve-drift", TASK, "--note", "x"],
        &["snapshot-worktree", TASK, "--agent", "implementer"],
        &["init-context", TASK],
        &["init-context", "TASK-9999"],
    ] {
        assert!(stderr(arguments).contains("\nnext: "), "{arguments:?}: {}", stderr(arguments));
    }
}

#[test]
fn colours_in_a_log_do_not_hide_failures() {
    let checkout = Checkout::with_context();
    let log = "\u{1b}[31mFAILED\u{1b}[0m t.py::a - x\n\u{1b}[1m1 failed\u{1b}[0m, 3 passed in 0.1s\n";
    let arguments = ["task", "record-qa", TASK, "--agent", "implementer", "--from", "-", "--format", "json"];
    let finished = checkout.home.run_with_input(&arguments, log.as_bytes());
    let run = finished.json()["data"]["runs"][0].clone();
    assert_eq!((&run["failed"], &run["failures"][0]["name"]), (&json!(1), &json!("t.py::a")), "{run}");
}

#[test]
fn a_repository_of_another_user_is_rejected() {
    let checkout = Checkout::implemented();
    let output = checkout
        .home
        .command()
        .env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        .args(["task", "verify-worktree", TASK, "--expected-agent", "implementer"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("belongs to another user") && stderr.contains("safe.directory"), "{stderr}");
}

#[test]
fn a_git_folder_without_head_is_not_a_repository() {
    let checkout = Checkout::implemented();
    fs::remove_file(checkout.path(".git/HEAD")).unwrap();
    checkout.refused(3, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
}

/// Returns a function that runs `baton task` as an unprivileged user. If the tests run as root, the checkout is given
/// to that user first, because root can read every file.
fn as_ordinary_user(checkout: &Checkout) -> impl Fn(&[&str]) -> (Option<i32>, String) {
    use std::os::unix::fs::lchown;
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65_534;
    fn give(path: &std::path::Path) {
        lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        if path.is_dir() && !path.is_symlink() {
            fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
        }
    }
    let is_root = rustix::process::geteuid().is_root();
    let mut binary = std::path::PathBuf::from(env!("CARGO_BIN_EXE_baton"));
    if is_root {
        // Other users may not have access to the build folder.
        let copy = checkout.home.path().join("baton-of-this-user");
        fs::copy(&binary, &copy).unwrap();
        binary = copy;
        give(checkout.home.path());
    }
    let (plain, root) = (checkout.home.command(), checkout.root().to_owned());
    let environment: Vec<_> =
        plain.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    move |arguments| {
        let mut command = std::process::Command::new(&binary);
        command.env_clear().envs(environment.clone()).current_dir(&root).arg("task").args(arguments);
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }
}

#[test]
fn unreadable_folders_and_embedded_repositories_are_reported() {
    use std::os::unix::fs::PermissionsExt;

    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fn main() { fast(); }\n");
    checkout.write("sealed/inner/file", "x\n");
    checkout.git(&["init", "--quiet", "embedded"]);
    checkout.write("embedded/file", "x\n");
    let task = as_ordinary_user(&checkout);
    let mode = |path: &str, mode| {
        fs::set_permissions(checkout.path(path), fs::Permissions::from_mode(mode)).unwrap()
    };
    let snapshot = ["snapshot-worktree", TASK, "--agent", "implementer"];
    for folder in ["sealed", "sealed/inner", "src"] {
        mode(folder, 0o000);
        let (code, text) = task(&snapshot);
        assert_eq!(code, Some(1), "{folder}: {text}");
        assert!(text.contains(folder) && text.contains("readable"), "{folder}: {text}");
        mode(folder, 0o755);
    }
    mode("sealed/inner/file", 0o000);
    let (code, text) = task(&snapshot);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("sealed/inner/file"), "{text}");
    mode("sealed/inner/file", 0o644);
    let (code, text) = task(&snapshot);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("embedded is an embedded repository"), "{text}");
}

#[test]
fn command_without_content_is_rejected() {
    let checkout = Checkout::with_context();
    for command in ["", "  ", "# todo", "\n# todo\n\n"] {
        let refused = checkout.home.run(&["task", "run-qa", TASK, "--agent", "implementer", "--", command]);
        assert!(refused.code == 7 && refused.stderr.contains("contains no command"), "{refused:?}");
    }
}

#[test]
fn baseline_is_rejected_after_an_edit_that_git_was_told_to_ignore() {
    let checkout = Checkout::with_context();
    let baseline = ["task", "run-qa", TASK, "--agent", "implementer", "--baseline", "--", "true"];
    checkout.git(&["update-index", "--assume-unchanged", "src/lib.rs"]);
    checkout.write("src/lib.rs", "pub fn edited() {}\n");
    let refused = checkout.home.run(&baseline);
    assert!(refused.code == 4 && refused.stderr.contains("src/lib.rs"), "{refused:?}");
    checkout.git(&["checkout", "--quiet", "HEAD", "--", "src/lib.rs"]);
    assert_eq!(checkout.home.run(&baseline).code, 0);
}
