//! Import of observations and of recorded chats through the real binary.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::hooked::{CHAT, Hooked};

/// Returns a line of a Claude Code transcript.
fn line(kind: &str, second: u32, cwd: &Path, content: Value) -> Value {
    json!({
        "type": kind, "sessionId": CHAT, "cwd": cwd, "gitBranch": "login", "isSidechain": false,
        "timestamp": format!("2026-02-11T15:31:{second:02}.000Z"), "message": { "role": kind, "content": content },
    })
}

fn prompt(second: u32, cwd: &Path, text: &str) -> Value {
    line("user", second, cwd, text.into())
}

fn says(second: u32, cwd: &Path, text: &str) -> Value {
    line("assistant", second, cwd, json!([{ "type": "text", "text": text }]))
}

/// Returns the lines of a tool call and its result.
fn tool(second: u32, cwd: &Path, id: &str, name: &str, input: Value, output: &str) -> Vec<Value> {
    vec![
        line(
            "assistant",
            second,
            cwd,
            json!([{ "type": "tool_use", "id": id, "name": name, "input": input }]),
        ),
        line(
            "user",
            second + 1,
            cwd,
            json!([{ "type": "tool_result", "tool_use_id": id, "content": output }]),
        ),
    ]
}

/// Writes a transcript below the folder of Claude Code and returns its path.
fn write(hooked: &Hooked, name: &str, lines: &[Value]) -> PathBuf {
    let path = hooked.home.path().join(".claude/projects/-home-dev-shop").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).unwrap();
    path
}

fn first_turn(cwd: &Path) -> Vec<Value> {
    let mut lines = vec![prompt(1, cwd, "Fix the login")];
    let edit = json!({ "file_path": cwd.join("src/login.rs"), "old_string": "a", "new_string": "b" });
    lines.extend(tool(2, cwd, "toolu_1", "Edit", edit, "The file was updated"));
    lines.push(says(4, cwd, "The login works again."));
    lines
}

fn turns(hooked: &Hooked) -> Vec<Value> {
    let session = hooked.observations()[0]["session_id"].as_str().unwrap().to_owned();
    hooked.data(&["turn", "list", &session])["turns"].as_array().unwrap().clone()
}

#[test]
fn observations_are_imported_once_and_invalid_lines_are_reported_by_number() {
    for hooked in Hooked::each() {
        let file = hooked.home.path().join("notes.jsonl");
        let lines = [
            json!({ "title": "Fix the cache", "summary": "The cache kept stale keys.", "external_id": "n-1",
                    "files_touched": ["src/cache.rs"], "session": "notes", "repo": "acme/shop",
                    "created_at": "2026-02-11T15:31:21.085Z" })
            .to_string(),
            "{ broken".to_owned(),
            json!({ "title": "", "summary": "x" }).to_string(),
            String::new(),
            json!({ "title": "No id", "summary": "key is ghp_0123456789abcdefghijABCDEFGHIJ012345" })
                .to_string(),
        ];
        fs::write(&file, lines.join("\n")).unwrap();
        let file = file.to_str().unwrap();
        let first = hooked.data(&["import", "observations", file]);
        assert_eq!(
            (&first["added"], &first["unchanged"], &first["invalid"]),
            (&2.into(), &0.into(), &2.into())
        );
        let numbers: Vec<i64> = first["invalid_lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["line"].as_i64().unwrap())
            .collect();
        assert_eq!(numbers, [2, 3]);
        let text = hooked.home.run(&["import", "observations", file]).stdout;
        assert!(text.contains("\nskipped 2 invalid records:\n  "), "{text}");
        let second = hooked.data(&["import", "observations", file]);
        assert_eq!((&second["added"], &second["unchanged"]), (&0.into(), &2.into()));
        let found = hooked.data(&["observation", "list", "--repo", "acme/shop"])["observations"][0].clone();
        assert_eq!(found["title"], "Fix the cache");
        assert_eq!(found["files_touched"], json!(["src/cache.rs"]));
        assert_eq!(found["captured_at"], "2026-02-11T15:31:21.085Z");
        assert!(!hooked.observations().iter().any(|one| one.to_string().contains("ghp_0123")));
    }
}

#[test]
fn observations_are_read_from_standard_input() {
    let hooked = Hooked::new();
    let line = json!({ "title": "A", "summary": "B" }).to_string();
    let done = hooked.home.run_with_input(&["import", "observations", "-", "--repo", "a/b"], line.as_bytes());
    assert_eq!((done.code, done.stdout.trim()), (0, "imported 1 observation; 0 were already stored"));
    assert_eq!(hooked.observations()[0]["repo"], "a/b");
}

#[test]
fn claude_code_chats_are_imported_once_with_original_times_and_grown_files_add_the_rest() {
    for hooked in Hooked::each() {
        let cwd = hooked.home.working_folder().to_owned();
        let mut lines = first_turn(&cwd);
        write(&hooked, "chat.jsonl", &lines);
        let done = hooked.data(&["import", "claude-code"]);
        assert_eq!(
            (&done["sessions"], &done["turns"], &done["observations"]),
            (&1.into(), &1.into(), &1.into())
        );
        let seen = hooked.observations();
        assert_eq!(seen[0]["captured_at"], "2026-02-11T15:31:03.000Z");
        assert_eq!(seen[0]["files_touched"], json!(["src/login.rs"]));
        assert_eq!(seen[0]["repo"], "local/shop");
        let session =
            hooked.data(&["session", "show", seen[0]["session_id"].as_str().unwrap()])["session"].clone();
        assert_eq!((&session["status"], &session["branch"]), (&"ended".into(), &"login".into()));
        assert_eq!(session["created_at"], "2026-02-11T15:31:01.000Z");
        assert_eq!(turns(&hooked)[0]["closing_message"], "The login works again.");

        let again = hooked.data(&["import", "claude-code"]);
        assert_eq!(
            (&again["unchanged"], &again["turns"], &again["observations"]),
            (&1.into(), &0.into(), &0.into())
        );

        lines.push(prompt(10, &cwd, "Add a test"));
        lines.extend(tool(
            11,
            &cwd,
            "toolu_2",
            "Bash",
            json!({ "command": "cargo test" }),
            "test result: ok",
        ));
        write(&hooked, "chat.jsonl", &lines);
        let grown = hooked.data(&["import", "claude-code"]);
        assert_eq!((&grown["turns"], &grown["observations"]), (&1.into(), &1.into()));
        let listed = turns(&hooked);
        let states: Vec<(&Value, &Value)> =
            listed.iter().map(|turn| (&turn["prompt"], &turn["status"])).collect();
        assert_eq!(
            states,
            [(&"Add a test".into(), &"unfinished".into()), (&"Fix the login".into(), &"done".into())]
        );

        lines.push(says(15, &cwd, "The test passes."));
        write(&hooked, "chat.jsonl", &lines);
        let closed = hooked.data(&["import", "claude-code"]);
        assert_eq!((&closed["turns"], &closed["observations"]), (&0.into(), &0.into()));
        let latest = &turns(&hooked)[0];
        assert_eq!(
            (&latest["status"], &latest["closing_message"]),
            (&"done".into(), &"The test passes.".into())
        );
    }
}

#[test]
fn private_parts_secrets_and_own_calls_are_not_imported() {
    let hooked = Hooked::new();
    let cwd = hooked.home.working_folder().to_owned();
    let mut lines = vec![prompt(
        1,
        &cwd,
        "Deploy <private>to the secret host</private> with ghp_0123456789abcdefghijABCDEFGHIJ012345",
    )];
    lines.extend(tool(2, &cwd, "t1", "mcp__baton__handoff_latest", json!({}), "recalled text"));
    lines.extend(tool(4, &cwd, "t2", "Bash", json!({ "command": "deploy <private>now" }), "done"));
    lines.extend(tool(6, &cwd, "t3", "Read", json!({ "file_path": cwd.join("a.rs") }), "fn a() {}"));
    lines.push(says(8, &cwd, "Deployed."));
    write(&hooked, "chat.jsonl", &lines);
    let done = hooked.data(&["import", "claude-code"]);
    assert_eq!((&done["turns"], &done["observations"]), (&1.into(), &2.into()), "{done}");
    let stored = format!("{:?} {:?}", turns(&hooked), hooked.observations());
    for hidden in ["secret host", "ghp_0123", "recalled text", "deploy now"] {
        assert!(!stored.contains(hidden), "{hidden}: {stored}");
    }
    // A private part that is not closed ends with its tool use.
    assert!(stored.contains("a.rs") && stored.contains("Deployed."), "{stored}");
}

#[test]
fn sub_agent_transcripts_add_tool_uses_to_the_chat_but_no_turns() {
    let hooked = Hooked::new();
    let cwd = hooked.home.working_folder().to_owned();
    write(&hooked, &format!("{CHAT}.jsonl"), &first_turn(&cwd));
    let mut side = vec![prompt(2, &cwd, "You are a reviewer")];
    side.extend(tool(3, &cwd, "t9", "Read", json!({ "file_path": cwd.join("src/other.rs") }), "fn b() {}"));
    side.push(says(5, &cwd, "No problems found."));
    side.iter_mut().for_each(|line| line["isSidechain"] = true.into());
    write(&hooked, &format!("{CHAT}/subagents/agent-1.jsonl"), &side);
    let done = hooked.data(&["import", "claude-code"]);
    assert_eq!(
        (&done["files"], &done["turns"], &done["observations"]),
        (&2.into(), &1.into(), &2.into()),
        "{done}"
    );
    let sessions: Vec<Value> = hooked.observations().iter().map(|one| one["session_id"].clone()).collect();
    assert_eq!(sessions[0], sessions[1]);
    assert_eq!(turns(&hooked).len(), 1);
}

#[test]
fn a_chat_that_hooks_captured_is_imported_only_up_to_the_first_report() {
    for hooked in Hooked::each() {
        let cwd = hooked.home.working_folder().to_owned();
        hooked.hook(
            "user-prompt-submit",
            &hooked.claude("UserPromptSubmit", json!({ "prompt": "Live request" })),
        );
        let mut lines = first_turn(&cwd);
        let mut live = prompt(1, &cwd, "Live request");
        live["timestamp"] = "2099-01-01T00:00:00.000Z".into();
        lines.push(live);
        write(&hooked, "chat.jsonl", &lines);
        let done = hooked.data(&["import", "claude-code"]);
        assert_eq!((&done["turns"], &done["observations"]), (&1.into(), &1.into()), "{done}");
        assert_eq!(turns(&hooked)[0]["prompt"], "Fix the login");
    }
}

#[test]
fn codex_chats_are_imported_from_their_default_folder() {
    let hooked = Hooked::new();
    let at = |second: u32, kind: &str, payload: Value| json!({ "timestamp": format!("2026-03-01T10:00:{second:02}.000Z"), "type": kind, "payload": payload });
    let message = |second, role: &str, text: &str| {
        let content = json!([{ "type": "input_text", "text": text }]);
        at(second, "response_item", json!({ "type": "message", "role": role, "content": content }))
    };
    let lines = [
        at(
            0,
            "session_meta",
            json!({ "id": "0199", "cwd": "/gone/shop",
            "git": { "branch": "main", "repository_url": "https://github.com/acme/shop.git" } }),
        ),
        message(1, "user", "Fix the parser"),
        at(
            2,
            "response_item",
            json!({ "type": "custom_tool_call", "name": "apply_patch", "call_id": "c1",
            "input": "*** Begin Patch\n*** Update File: src/parser.rs\n@@\n-a\n+b\n*** End Patch" }),
        ),
        at(
            3,
            "response_item",
            json!({ "type": "custom_tool_call_output", "call_id": "c1", "output": "Done" }),
        ),
        message(4, "assistant", "The parser is fixed."),
    ];
    let folder = hooked.home.path().join(".codex/sessions/2026/03/01");
    fs::create_dir_all(&folder).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.join("rollout-2026-03-01-0199.jsonl"), text).unwrap();
    fs::write(folder.join("notes.jsonl"), "{}").unwrap();
    let done = hooked.data(&["import", "codex"]);
    assert_eq!(
        (&done["files"], &done["turns"], &done["observations"]),
        (&1.into(), &1.into(), &1.into()),
        "{done}"
    );
    let seen = &hooked.observations()[0];
    assert_eq!((&seen["repo"], &seen["files_touched"]), (&"acme/shop".into(), &json!(["src/parser.rs"])));
}

#[test]
fn bad_lines_and_files_are_reported_and_the_rest_is_imported() {
    let hooked = Hooked::new();
    let cwd = hooked.home.working_folder().to_owned();
    let path = write(&hooked, "chat.jsonl", &first_turn(&cwd));
    let mut text = fs::read_to_string(&path).unwrap();
    text = text.replacen('\n', "\n{ broken\n", 1);
    text += &format!("{{\"type\":\"user\",\"x\":\"{}\"}}\n", "y".repeat(33 * 1024 * 1024));
    text += &format!("{}\n{{\"type\":\"user\",\"message\":{{\"conte", prompt(20, &cwd, "Next request"));
    fs::write(&path, text).unwrap();
    write(&hooked, "foreign.jsonl", &[json!({ "query": "x" })]);
    let done = hooked.data(&["import", "claude-code"]);
    assert_eq!(
        (&done["turns"], &done["observations"], &done["invalid"]),
        (&2.into(), &1.into(), &2.into()),
        "{done}"
    );
    let lines: Vec<i64> =
        done["invalid_lines"].as_array().unwrap().iter().map(|line| line["line"].as_i64().unwrap()).collect();
    assert_eq!(lines, [2, 6]);
    assert_eq!(done["foreign"].as_array().unwrap().len(), 1);

    let run = |arguments: &[&str]| hooked.home.run(&[&["import"], arguments].concat());
    let missing = run(&["claude-code", "/no/such/folder"]);
    assert_eq!(missing.code, 3, "{missing:?}");
    assert!(missing.stderr.contains("/no/such/folder") && missing.stderr.contains("next:"), "{missing:?}");
    let foreign = run(&["claude-code", path.with_file_name("foreign.jsonl").to_str().unwrap()]);
    assert_eq!(foreign.code, 7, "{foreign:?}");
    let wrong = run(&["codex", path.to_str().unwrap()]);
    assert_eq!(wrong.code, 7, "{wrong:?}");
    assert_eq!(run(&["observations", "/no/such/file"]).code, 1);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_err() {
        assert_eq!(run(&["claude-code", path.to_str().unwrap()]).code, 1);
    }
}

#[test]
fn an_import_over_a_server_stores_the_same_records() {
    let hooked = Hooked::new();
    let cwd = hooked.home.working_folder().to_owned();
    write(&hooked, "chat.jsonl", &first_turn(&cwd));
    let server = hooked.home.serve();
    let done = hooked.data(&["import", "claude-code", "--server", server.url()]);
    assert_eq!((&done["turns"], &done["observations"]), (&1.into(), &1.into()), "{done}");
    let again = hooked.data(&["import", "claude-code", "--server", server.url()]);
    assert_eq!(again["unchanged"], 1);
    drop(server);
    assert_eq!(turns(&hooked)[0]["closing_message"], "The login works again.");
}

#[test]
fn imported_observations_are_found_at_once_and_options_may_follow_the_query() {
    for hooked in Hooked::each() {
        let file = hooked.home.path().join("memories.jsonl");
        let line =
            |number: u32| json!({ "title": format!("Lease {number}"), "summary": "The lease expired" });
        fs::write(&file, format!("{}\n{}\n", line(1), line(2))).unwrap();
        hooked.data(&["import", "observations", file.to_str().unwrap(), "--repo", "acme/shop"]);
        let found = |options: &[&str]| {
            let arguments = [&["search", "lease", "expired"], options].concat();
            hooked.data(&arguments)["results"].as_array().unwrap().len()
        };
        assert_eq!((found(&[]), found(&["--limit", "1"]), found(&["--repo", "acme/other"])), (2, 1, 0));
    }
}
