//! Verbs of the command line: output streams and exit codes.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use baton_testkit::binary::{Home, RELAY_KEY};
use baton_testkit::processes;

use crate::checkpoint_cli::without_privilege;
use crate::widths::on_a_terminal;

fn home() -> Home {
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
fn doctor_reports_open_modes_with_a_fix() {
    let home = home();
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]);
    let healthy = home.run(&["doctor", "--format", "json"]);
    assert_eq!((healthy.code, &healthy.json()["data"]["healthy"]), (0, &true.into()));
    std::fs::set_permissions(home.data_dir(), PermissionsExt::from_mode(0o755)).unwrap();
    let loose = home.run(&["doctor"]);
    assert!(loose.stdout.contains("has mode 0755"), "{}", loose.stdout);
    assert!(loose.stdout.contains("fix: chmod 700"), "{}", loose.stdout);
}

#[test]
fn doctor_checks_the_local_queue_although_a_server_is_configured() {
    let home = home();
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]);
    let found = home.run(&["--server", "http://127.0.0.1:9", "doctor", "--format", "json"]).json();
    assert_eq!(finding(&found, "observations")["level"], "ok");
}

/// Returns the finding of `baton doctor` with this name.
#[track_caller]
fn finding<'a>(doctor: &'a serde_json::Value, check: &str) -> &'a serde_json::Value {
    let findings = doctor["data"]["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["check"] == check).unwrap()
}

#[test]
fn doctor_checks_the_configured_server() {
    let home = home();
    let doctor = |server: &[&str]| {
        let found = home.run(&[server, &["doctor", "--format", "json"]].concat());
        (found.code, found.json())
    };
    assert!(!doctor(&[]).1.to_string().contains("\"server\""));
    let (code, missing) = doctor(&["--server", "http://127.0.0.1:9"]);
    let server = finding(&missing, "server");
    assert_eq!((code, &server["level"]), (1, &"error".into()), "{missing}");
    assert!(server["fix"].as_str().unwrap().contains("baton serve"), "{missing}");

    let served = home.serve();
    let url = served.url().to_owned();
    let (code, accepted) = doctor(&["--server", &url]);
    let message = format!("{url} responds and accepts the credential");
    assert_eq!((code, &finding(&accepted, "server")["message"]), (0, &message.into()), "{accepted}");
    let wrong = home
        .command()
        .env("BATON_RELAY_KEY", "wrong-relay-key-0123456789")
        .args(["--server", &url, "doctor"])
        .output();
    let wrong = String::from_utf8(wrong.unwrap().stdout).unwrap();
    assert!(wrong.contains("ERROR    server: "), "{wrong}");
}

#[test]
fn an_inaccessible_data_folder_is_not_a_missing_one() {
    let home = home();
    let sealed = home.path().join("sealed");
    std::fs::create_dir(&sealed).unwrap();
    for data_dir in [sealed.join("data"), sealed.clone()] {
        std::fs::set_permissions(&sealed, PermissionsExt::from_mode(0o000)).unwrap();
        let run = |arguments: &[&str]| {
            let output = without_privilege(&home).env("BATON_DATA_DIR", &data_dir).args(arguments).output();
            let output = output.unwrap();
            (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
        };
        for arguments in [&["status"][..], &[]] {
            let (code, text) = run(arguments);
            assert_eq!(code, Some(9), "{arguments:?}: {text}");
            assert!(text.contains("next: ") && text.contains("point BATON_DATA_DIR at"), "{text}");
        }
        let (code, doctor) = run(&["doctor", "--deep", "--format", "json"]);
        std::fs::set_permissions(&sealed, PermissionsExt::from_mode(0o700)).unwrap();
        let doctor = serde_json::from_str(&doctor).unwrap();
        assert_eq!((code, &finding(&doctor, "data folder")["level"]), (Some(1), &"error".into()));
        for check in ["database", "observations", "hooks", "agents", "checkpoints"] {
            assert_eq!(finding(&doctor, check)["level"], "skipped", "{check}");
        }
    }
}

#[test]
fn doctor_names_a_fix_for_the_data_folder_of_another_user() {
    use std::os::unix::fs::{MetadataExt, chown};

    let home = home();
    std::fs::create_dir(home.data_dir()).unwrap();
    let is_root = std::fs::metadata(home.data_dir()).unwrap().uid() == 0;
    let folder = if is_root { home.data_dir() } else { "/".into() };
    if is_root {
        chown(&folder, Some(65_534), None).unwrap();
    }
    let output = home.command().env("BATON_DATA_DIR", &folder).args(["doctor", "--format", "json"]).output();
    let doctor = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let fix = finding(&doctor, "data folder")["fix"].as_str().unwrap();
    assert!(fix.starts_with("sudo chown -R") && fix.contains("BATON_DATA_DIR"), "{fix}");
}

#[test]
fn doctor_and_verbs_reject_a_damaged_database() {
    let home = home();
    std::fs::create_dir(home.data_dir()).unwrap();
    std::fs::write(home.data_dir().join("baton.db"), b"this is not a database, not at all").unwrap();
    let doctor = home.run(&["doctor", "--format", "json"]);
    assert_eq!(doctor.code, 1);
    let database = finding(&doctor.json(), "database").clone();
    assert_eq!(database["message"], "the database is unavailable: the file is not a Baton database");
    let fix = database["fix"].as_str().unwrap();
    assert!(fix.starts_with("restore a backup") && !fix.contains("baton doctor"), "{fix}");
    assert_eq!(finding(&doctor.json(), "observations")["level"], "skipped");
    let verb = home.run(&["session", "list", "--format", "json"]);
    assert_eq!((verb.code, &verb.json()["error"]["code"]), (9, &"store_unavailable".into()));
    assert!(verb.json()["error"]["hint"].is_string());
    let bytes = std::fs::read(home.data_dir().join("baton.db")).unwrap();
    assert_eq!(bytes, b"this is not a database, not at all", "a rejected file must not be changed");
}

#[test]
fn doctor_reads_every_page_only_with_deep() {
    let home = home();
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]);
    let path = home.data_dir().join("baton.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let page = u16::from_be_bytes([bytes[16], bytes[17]]) as usize;
    // The quick check does not read the last page.
    let last = bytes.len() - page;
    bytes[last..].fill(0x55);
    std::fs::write(&path, bytes).unwrap();
    let found = |arguments: &[&str]| {
        let output = home.run(&[arguments, &["--format", "json"]].concat()).json();
        let findings = output["data"]["findings"].as_array().unwrap().clone();
        let database = findings.into_iter().find(|finding| finding["check"] == "database").unwrap();
        database["level"].as_str().unwrap().to_owned()
    };
    assert_eq!((found(&["doctor"]), found(&["doctor", "--deep"])), ("ok".into(), "error".into()));
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
fn completions_print_shell_scripts() {
    for (shell, mark) in [("bash", "_baton"), ("zsh", "#compdef"), ("fish", "complete -c baton")] {
        let finished = home().run(&["completions", shell]);
        assert_eq!(finished.code, 0);
        assert!(finished.stdout.contains(mark), "{shell}");
    }
}

#[test]
fn session_verbs_work_with_a_server() {
    let served = home();
    let server = served.serve();
    let url = server.url().to_owned();
    let here = home();
    let start = ["session", "start", "--agent", "a", "--repo", "o/r", "--server", &url, "--format", "json"];
    let started = here.run(&start);
    assert_eq!(started.code, 0, "{started:?}");
    assert!(!here.data_dir().join("baton.db").exists(), "nothing must be stored locally");
    let listed = here.run(&["session", "list", "--server", &url, "--format", "json"]).json();
    assert_eq!(listed["data"]["sessions"][0]["id"], started.json()["data"]["session_id"]);
    server.kill();
    let gone = here.run(&start);
    assert_eq!((gone.code, &gone.json()["error"]["code"]), (9, &"server_unreachable".into()));
}

/// Answers one request with a page that is not from Baton, and returns the address.
fn proxy(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let page = "<html>nginx</html>";
        let answer =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}", page.len());
        stream.write_all(answer.as_bytes()).unwrap();
    });
    url
}

#[test]
fn an_error_page_of_a_proxy_is_reported_with_its_status_and_address() {
    for (status, exit, code) in
        [("502 Bad Gateway", 9, "server_unreachable"), ("404 Not Found", 1, "unexpected_response")]
    {
        let url = proxy(status);
        let listed = home().run(&["session", "list", "--server", &url, "--format", "json"]);
        let error = &listed.json()["error"];
        assert_eq!((listed.code, &error["code"]), (exit, &code.into()), "{listed:?}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&url) && message.contains(&status[..3]), "{message}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("check")), "{error}");
    }
}

#[test]
fn token_of_one_venture_uses_that_venture_unless_another_is_chosen() {
    let served = home();
    let created = served.run(&["token", "create", "--name", "ci", "--venture", "acme", "--format", "json"]);
    let token = created.json()["data"]["token"].as_str().unwrap().to_owned();
    let server = served.serve();
    let url = server.url().to_owned();
    let here = home().with("BATON_RELAY_KEY", &token);
    let run = |words: &[&str]| here.run(&[words, &["--server", &url, "--format", "json"]].concat());
    assert_eq!(run(&["session", "start", "--agent", "a", "--repo", "o/r"]).code, 0);
    let listed = run(&["session", "list"]).json();
    assert_eq!(listed["data"]["sessions"][0]["venture"], "acme", "{listed}");
    for words in [
        &["handoff", "list"][..],
        &["handoff", "latest"],
        &["status"],
        &["context", "--repo", "o/r"],
        &["checkpoint", "workflows"],
        &["task", "list", "--everywhere"],
    ] {
        let done = run(words);
        assert_eq!(done.code, 0, "{words:?}: {done:?}");
    }
    assert_eq!(run(&["status"]).json()["data"]["venture"], serde_json::Value::Null, "the server decides");
    let shown = here.run(&["status", "--server", &url]).stdout;
    assert!(shown.contains("venture  default of the server\n"), "{shown}");
    let noted = run(&["note", "Use WAL", "--repo", "o/r"]).json();
    assert_eq!(noted["data"]["note"]["venture"], "acme", "{noted}");
    let chosen = run(&["session", "list", "--venture", "local"]).json();
    assert_eq!(chosen["error"]["code"], "forbidden", "{chosen}");
    let text = ["note", "--repo", "o/r", "--server", &url, "--format", "json", "--", "--venture is optional"];
    assert_eq!(here.run(&text).json()["data"]["note"]["venture"], "acme", "the text of a note is not a flag");
    let configured = here.with("BATON_VENTURE", "local");
    let chosen = configured.run(&["session", "list", "--server", &url, "--format", "json"]).json();
    assert_eq!(chosen["error"]["code"], "forbidden", "{chosen}");
    server.kill();
}

#[test]
fn relay_key_and_tokens_of_all_ventures_use_the_venture_of_the_server() {
    let served = home().with("BATON_VENTURE", "team");
    let created = served.run(&["token", "create", "--name", "ci", "--format", "json"]);
    let token = created.json()["data"]["token"].as_str().unwrap().to_owned();
    let server = served.serve();
    let url = server.url().to_owned();
    let with_token = home().with("BATON_RELAY_KEY", &token);
    for (agent, home) in [("a", home()), ("b", with_token)] {
        let run =
            |words: &[&str]| home.run(&[words, &["--server", &url, "--format", "json"]].concat()).json();
        let started = run(&["session", "start", "--agent", agent, "--repo", "o/r"]);
        assert_eq!(started["data"]["session"]["venture"], "team", "{started}");
        let listed = run(&["session", "list"]);
        assert_eq!(listed["data"]["sessions"][0]["id"], started["data"]["session_id"], "{listed}");
        assert_eq!(run(&["handoff", "list"])["success"], true);
    }
    server.kill();
}

#[test]
fn serve_names_the_process_only_if_the_address_is_in_use() {
    let home = home();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    // No machine has the other address.
    for (address, is_taken) in [(taken.as_str(), true), ("192.0.2.1:7423", false)] {
        let failed = home.run(&["--server", "http://127.0.0.1:9", "serve", "--listen", address]);
        assert_eq!(failed.code, 1, "{failed:?}");
        assert!(failed.stderr.contains("next: choose another address with --listen"), "{failed:?}");
        assert_eq!(failed.stderr.contains("stop the process that uses it"), is_taken, "{failed:?}");
        assert!(failed.stderr.contains("warning: baton serve works on the local store"), "{failed:?}");
    }
}

#[test]
fn serve_rejects_a_relay_key_that_is_short_or_a_token() {
    for (key, why) in
        [("fifteen-letters", "fewer than 16 characters"), ("bt_0123456789abcdef_0123", "it is a token")]
    {
        let in_file = home().with("BATON_RELAY_KEY", "");
        std::fs::create_dir_all(in_file.data_dir()).unwrap();
        std::fs::write(in_file.data_dir().join("relay.key"), key).unwrap();
        for home in [home().with("BATON_RELAY_KEY", key), in_file] {
            // No machine has this address, so a server that accepts the key stops as well.
            let failed = home.run(&["serve", "--listen", "192.0.2.1:1", "--format", "json"]);
            assert_eq!(failed.code, 2, "{failed:?}");
            let error = failed.json()["error"].clone();
            let message = error["message"].as_str().unwrap();
            assert!(error["code"] == "invalid_config" && message.contains(why), "{error}");
            assert!(!failed.stdout.contains(key) && !failed.stderr.contains(key), "{failed:?}");
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
