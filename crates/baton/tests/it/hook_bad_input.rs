//! Hooks with invalid input: the agent never fails, nothing is partially stored, and the cause is in the log.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use baton_testkit::binary::Home;
use serde_json::json;

use crate::hooked::Hooked;
use crate::served::with;

/// Asserts that nothing was stored or saved to the outbox.
#[track_caller]
fn assert_nothing_stored(hooked: &Hooked) {
    assert_eq!(hooked.queue(), [0; 4]);
    assert!(hooked.sessions().is_empty());
    assert!(hooked.spilled().is_empty());
}

#[test]
fn invalid_reports_are_logged_and_shown_by_doctor() {
    let hooked = Hooked::new();
    let sound = hooked.bash("ls", "a b").to_string();
    let report = |more| hooked.claude("PostToolUse", more).to_string().into_bytes();
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("post-tool-use", Vec::new(), "empty"),
        ("post-tool-use", b" \n\t ".to_vec(), "empty"),
        ("post-tool-use", sound[..sound.len() / 2].into(), "not JSON"),
        ("post-tool-use", sound[..sound.len() - 1].into(), "not JSON"),
        ("post-tool-use", (0..=255).cycle().take(5_000).collect(), "not JSON"),
        ("post-tool-use", vec![0; 5_000], "not JSON"),
        ("post-tool-use", format!("{sound}{sound}").into_bytes(), "not JSON"),
        ("post-tool-use", b"[1, 2]".to_vec(), "not a JSON object"),
        ("post-tool-use", b"null".to_vec(), "not a JSON object"),
        ("post-tool-use", "[".repeat(100_000).into_bytes(), "not JSON"),
        ("notification", sound.clone().into_bytes(), "notification"),
        ("", sound.clone().into_bytes(), "unknown event"),
        ("post-tool-use", report(json!({})), "tool_name"),
        ("post-tool-use", report(json!({ "tool_name": {} })), "tool_name"),
        ("post-tool-use", report(json!({ "tool_name": "Bash", "cwd": 5, "repo": "no slash" })), "repo"),
        ("user-prompt-submit", report(json!({})), "prompt"),
        ("user-prompt-submit", report(json!({ "prompt": [] })), "prompt"),
        ("stop", report(json!({ "track": "north" })), "track"),
    ];
    for (number, (event, input, expected)) in cases.iter().enumerate() {
        let finished = hooked.call(&[event], input);
        let shown = String::from_utf8_lossy(&input[..input.len().min(200)]).into_owned();
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""), "{event} {shown}");
        let troubles = hooked.troubles();
        assert_eq!(troubles.len(), number + 1, "{event} {shown}");
        let trouble = troubles.last().unwrap();
        let message = trouble["message"].as_str().unwrap();
        assert!(message.contains(expected) && message.len() <= 500, "{expected}: {message}");
        assert_eq!(trouble["event"], *event);
        trouble["at"].as_str().unwrap().parse::<baton_core::Timestamp>().unwrap();
        let (level, diagnosis) = hooked.diagnosis();
        assert!(level == "warning" && diagnosis.contains(message), "{level} {diagnosis}");
    }
    assert_nothing_stored(&hooked);
    let log = hooked.home.data_dir().join("logs/hook.log");
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    hooked.hook("post-tool-use", &hooked.bash("ls", "a b"));
    assert_eq!(
        (hooked.queue(), hooked.troubles().len()),
        ([1, 0, 0, 0], cases.len()),
        "a valid report must be stored"
    );
    std::fs::remove_file(log).unwrap();
    assert_eq!(hooked.diagnosis(), ("ok".into(), "no problems".into()));
}

#[test]
fn a_report_with_an_invalid_field_is_stored() {
    let hooked = Hooked::new();
    let long = "x".repeat(200);
    let odd = [
        json!({ "tool_name": 7 }),
        json!({ "session_id": { "a": 1 } }),
        json!({ "session_id": "has space" }),
        json!({ "session_id": "" }),
        json!({ "session_id": 17 }),
        json!({ "session_id": long }),
        json!({ "session_id": "日本" }),
        json!({ "tool_use_id": 12 }),
        json!({ "error": { "code": 3 } }),
        json!({ "cwd": 5 }),
        json!({ "cwd": "/" }),
        json!({ "branch": long.repeat(2), "host": 3 }),
    ];
    for (number, more) in odd.iter().enumerate() {
        let report =
            with(json!({ "session_id": "chat", "tool_name": "Bash", "tool_response": "a" }), more.clone());
        hooked.hook("post-tool-use", &report);
        assert_eq!(hooked.queue()[0], number as u64 + 1, "{more}");
    }
    let finished =
        hooked.call(&["post-tool-use", "--agent", "no name"], hooked.bash("ls", "a").to_string().as_bytes());
    assert_eq!((finished.stdout.as_str(), hooked.queue()[0]), ("", odd.len() as u64 + 1));
    assert!(hooked.troubles()[0]["message"].as_str().unwrap().contains("--agent"));
    let items = hooked.data(&["queue", "list"])["items"].clone();
    assert!(items.as_array().unwrap().iter().any(|item| item["repo"] == "local/filesystem-root"), "{items}");
}

#[test]
fn an_invalid_command_line_exits_with_0_and_stores_the_report() {
    let hooked = Hooked::new();
    let sound = hooked.bash("ls", "a b").to_string();
    let cases: [(&[&str], &str); 5] = [
        (&["hook"], "<EVENT>"),
        (&["hook", "post-tool-use", "--frobnicate"], "--frobnicate"),
        (&["hook", "post-tool-use", "stop"], "stop"),
        (&["hook", "post-tool-use", "--client"], "--client"),
        (&["--log", "warn", "hook", "post-tool-use", "--frobnicate"], "--frobnicate"),
    ];
    for (number, (arguments, expected)) in cases.iter().enumerate() {
        let finished = hooked.home.run_with_input(arguments, sound.as_bytes());
        assert_eq!((finished.code, finished.stdout.as_str()), (0, ""), "{arguments:?}: {finished:?}");
        let troubles = hooked.troubles();
        assert_eq!(troubles.len(), number + 1, "{arguments:?}");
        let message = troubles[number]["message"].as_str().unwrap();
        assert!(message.contains(expected) && !message.starts_with("error: "), "{message}");
        assert!(hooked.diagnosis().1.contains(expected));
    }
    assert_eq!(hooked.queue(), [4, 0, 0, 0], "all reports but the one without an event must be stored");
    assert_eq!(hooked.home.run(&["handoff", "hook", "--frobnicate"]).code, 2, "other verbs must fail");
    let help = hooked.home.run(&["hook", "--help"]);
    assert!(help.code == 0 && help.stdout.contains("session-start"), "{help:?}");
    assert_eq!(hooked.troubles().len(), cases.len(), "help must not be logged as an error");
}

#[test]
fn an_invalid_configuration_exits_with_0_and_keeps_the_report() {
    let hooked = Hooked::new();
    let report = hooked.bash("ls", "a b").to_string();
    let project = hooked.home.working_folder().join(".baton.toml");
    let user = hooked.home.path().join(".config/baton/config.toml");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    let mut count = 0;
    for file in [&project, &user] {
        for text in ["[session\nventure = ", "session.venture = 7\n", "\u{0}\u{1}"] {
            std::fs::write(file, text).unwrap();
            let finished = hooked.call(&["post-tool-use"], report.as_bytes());
            assert_eq!(finished.stdout, "");
            count += 1;
            assert_eq!(hooked.troubles().len(), count, "{text:?} in {}", file.display());
            let doctor = hooked.home.run(&["doctor"]);
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(
                doctor.code != 0 && doctor.stderr.contains(name),
                "doctor must name the file: {doctor:?}"
            );
        }
        std::fs::remove_file(file).unwrap();
        let (level, diagnosis) = hooked.diagnosis();
        assert!(level == "warning" && diagnosis.contains(file.to_str().unwrap()), "{level} {diagnosis}");
    }
    assert_eq!(hooked.queue(), [3, 0, 0, 0], "an invalid project file must not disable capture");
    assert_eq!(
        hooked.spilled().len(),
        3,
        "with an invalid user file the store is unknown, so reports are spooled"
    );
    hooked.hook("post-tool-use", &hooked.bash("ls", "c"));
    assert_eq!((hooked.queue(), hooked.spilled().len()), ([7, 0, 0, 0], 0));
}

#[test]
fn an_invalid_environment_variable_loses_no_report() {
    for (name, value, stored) in [
        ("BATON_COMPRESSOR", "bogus", true),
        ("BATON_SESSION_STALE_MINUTES", "soon", true),
        ("BATON_HEARTBEAT_JITTER_SECONDS", "86400", true),
        ("BATON_LOG", "===", true),
        ("BATON_VENTURE", "a b", false),
        ("BATON_SERVER", "nowhere", false),
    ] {
        let home = Home::new(env!("CARGO_BIN_EXE_baton")).with(name, value).working_in("shop");
        let report = json!({ "session_id": "chat", "tool_name": "Bash", "tool_response": "a" }).to_string();
        let finished = home.run_with_input(&["hook", "post-tool-use"], report.as_bytes());
        assert_eq!((finished.code, finished.stdout.as_str()), (0, ""), "{finished:?}");
        let log = std::fs::read_to_string(home.data_dir().join("logs/hook.log")).unwrap();
        assert_eq!(log.lines().count(), 1, "{name}: {log}");
        assert_eq!(home.data_dir().join("baton.db").exists(), stored, "{name}");
        assert_eq!(home.data_dir().join("spill/hooks").exists(), !stored, "{name}");
    }
}

#[test]
fn an_unusable_data_folder_does_not_fail_the_agent() {
    let hooked = Hooked::new();
    std::fs::write(hooked.home.data_dir(), b"a file").unwrap();
    for event in ["session-start", "post-tool-use", "stop", "session-end", "nonsense"] {
        let finished = hooked.call(&[event], hooked.bash("ls", "a b").to_string().as_bytes());
        // Only the session start prints a warning that reports cannot be stored.
        assert_eq!(finished.stdout.contains("Baton warning"), event == "session-start", "{finished:?}");
    }
    assert_eq!(std::fs::read(hooked.home.data_dir()).unwrap(), b"a file", "the file must not be changed");
    std::fs::remove_file(hooked.home.data_dir()).unwrap();
    hooked.hook("post-tool-use", &hooked.bash("ls", "a b"));
    assert_eq!(hooked.queue(), [2, 0, 0, 0]);
}

/// A hook stops waiting for an agent that never closes its input.
#[test]
fn input_that_never_ends_times_out() {
    let hooked = Hooked::new();
    let mut child = hooked
        .home
        .command()
        .args(["hook", "post-tool-use"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(br#"{"session_id": "#).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert_eq!(hooked.troubles().len(), 1);
    assert_nothing_stored(&hooked);
}

/// The time limit of a hook does not apply while the agent is still sending.
#[test]
fn a_slowly_sent_report_is_kept() {
    let hooked = Hooked::new();
    let mut child =
        hooked.home.command().args(["hook", "post-tool-use"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let started = Instant::now();
    // Longer than the time limit of a hook.
    while started.elapsed() < Duration::from_secs(7) {
        input.write_all(b" ").unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    input.write_all(hooked.bash("ls", "late").to_string().as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(hooked.queue()[0] as usize + hooked.spilled().len(), 1, "{:?}", hooked.troubles());
    assert_eq!(hooked.work(), 1);
}

#[test]
fn a_large_log_is_rotated_and_entries_are_truncated() {
    let hooked = Hooked::new();
    hooked.call(&["nonsense"], b"");
    let log = hooked.home.data_dir().join("logs/hook.log");
    let line = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, line.repeat(1 + 1024 * 1024 / line.len())).unwrap();
    hooked.call(&["nonsense"], b"");
    assert_eq!(hooked.troubles().len(), 1);
    assert!(log.with_extension("log.1").exists());
    let long = "x".repeat(10_000);
    hooked.call(&[&long], with(json!({}), json!({ "prompt": long })).to_string().as_bytes());
    assert!(std::fs::metadata(&log).unwrap().len() < 2_000, "log entries must be truncated");
}
