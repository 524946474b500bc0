//! Import of chats of Gemini CLI, OpenCode and Cursor and of the memory of claude-mem, through the real binary.
//!
//! Files and rows have the form that Gemini CLI 0.61 and OpenCode 1.18 write; `real_agents` imports their real files.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::hooked::Hooked;

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// Returns turns, observations and unchanged sources of an import.
fn counts(done: &Value) -> (u64, u64, u64) {
    let count = |name: &str| done[name].as_u64().unwrap();
    (count("turns"), count("observations"), count("unchanged"))
}

fn turns(hooked: &Hooked) -> Vec<Value> {
    let session = hooked.observations()[0]["session_id"].as_str().unwrap().to_owned();
    hooked.data(&["turn", "list", &session])["turns"].as_array().unwrap().clone()
}

/// Returns the content of a database and its log, to show that an import changes nothing.
fn bytes(path: &Path) -> (Vec<u8>, Option<Vec<u8>>) {
    (fs::read(path).unwrap(), fs::read(format!("{}-wal", path.display())).ok())
}

/// Writes a database and leaves its log as a program does that is still running.
fn database(path: &Path, statements: &str) -> Connection {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let database = Connection::open(path).unwrap();
    database.pragma_update(None, "journal_mode", "WAL").unwrap();
    database.execute_batch(statements).unwrap();
    database
}

/// Returns the messages of a chat of Gemini CLI with one tool call.
fn gemini_messages(call: &str) -> Vec<Value> {
    let at = |second: u32| format!("2026-03-01T10:00:{second:02}.000Z");
    let output = json!({ "output": format!("Output: shipped {SECRET}\nProcess Group PGID: 7") });
    let call = json!({
        "id": call, "name": "run_shell_command", "args": { "command": "echo shipped" }, "status": "success",
        "timestamp": at(3), "result": [{ "functionResponse": { "response": output } }], "resultDisplay": "shipped",
    });
    vec![
        json!({ "id": "u1", "timestamp": at(1), "type": "user", "content": [{ "text": "Ship feature-7" }] }),
        json!({ "id": "g1", "timestamp": at(2), "type": "gemini", "content": "", "toolCalls": [call] }),
        json!({ "id": "g2", "timestamp": at(4), "type": "gemini", "content": "Feature-7 is shipped." }),
    ]
}

fn gemini_chat(id: &str) -> Value {
    json!({ "sessionId": id, "projectHash": "8f5d", "startTime": "2026-03-01T10:00:00.000Z", "kind": "main" })
}

#[test]
fn gemini_chats_are_imported_once_and_grown_files_add_the_rest() {
    for hooked in Hooked::each() {
        let project = hooked.home.path().join(".gemini/tmp/shop");
        fs::create_dir_all(project.join("chats")).unwrap();
        fs::write(project.join(".project_root"), hooked.home.working_folder().to_str().unwrap()).unwrap();
        let path = project.join("chats/session-2026-03-01T10-00-5f62c712.jsonl");
        let lines: Vec<Value> =
            [gemini_chat("5f62c712-adc2")].into_iter().chain(gemini_messages("shell_1")).collect();
        let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        text += "{ broken\n{\"query\":1}\n";
        fs::write(&path, &text).unwrap();
        fs::write(project.join("logs.json"), "[]").unwrap();

        let done = hooked.data(&["import", "gemini"]);
        assert_eq!(counts(&done), (1, 1, 0), "{done}");
        let numbers: Vec<i64> = done["invalid_lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["line"].as_i64().unwrap())
            .collect();
        assert_eq!(numbers, [5, 6]);
        let seen = hooked.observations();
        assert_eq!(
            (&seen[0]["repo"], &seen[0]["captured_at"]),
            (&"local/shop".into(), &"2026-03-01T10:00:03.000Z".into())
        );
        assert!(!seen[0].to_string().contains(SECRET));
        assert_eq!(turns(&hooked)[0]["closing_message"], "Feature-7 is shipped.");
        assert_eq!(counts(&hooked.data(&["import", "gemini"])), (0, 0, 1));

        let next = json!({ "id": "u2", "timestamp": "2026-03-01T10:00:20.000Z", "type": "user", "content": "Now test it" });
        fs::write(&path, format!("{text}{next}\n")).unwrap();
        assert_eq!(counts(&hooked.data(&["import", "gemini"])), (1, 0, 0));
    }
}

#[test]
fn documents_of_older_gemini_versions_and_tool_uses_of_sub_agents_are_imported() {
    let hooked = Hooked::new();
    let chats = hooked.home.path().join(".gemini/tmp/8f5d/chats");
    fs::create_dir_all(chats.join("aaaaaaaa-1")).unwrap();
    let mut document = gemini_chat("old");
    document["messages"] = gemini_messages("shell_1").into();
    let old = chats.join("session-2026-03-01T10-00-old.json");
    fs::write(&old, serde_json::to_string_pretty(&document).unwrap()).unwrap();
    let chat = gemini_chat("aaaaaaaa-1");
    let request = json!({ "id": "u1", "timestamp": "2026-03-01T10:00:01.000Z", "type": "user", "content": "Review it" });
    fs::write(chats.join("session-2026-03-01T10-00-aaaaaaaa.jsonl"), format!("{chat}\n{request}\n")).unwrap();
    let mut sub = gemini_chat("sub");
    sub["kind"] = "subagent".into();
    let lines: String =
        [sub].into_iter().chain(gemini_messages("shell_2")).map(|line| format!("{line}\n")).collect();
    fs::write(chats.join("aaaaaaaa-1/sub.jsonl"), lines).unwrap();

    let done = hooked.data(&["import", "gemini"]);
    assert_eq!(counts(&done), (2, 2, 0), "{done}");
    let sessions = hooked.data(&["session", "history"])["sessions"].as_array().unwrap().clone();
    let mut ids: Vec<&str> = sessions.iter().map(|one| one["client_session_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["aaaaaaaa-1", "old"]);
    assert_eq!(counts(&hooked.data(&["import", "gemini"])), (0, 0, 3));

    fs::write(&old, "{ broken").unwrap();
    let failed = hooked.home.run(&["import", "gemini", old.to_str().unwrap()]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("cannot import") && failed.stderr.contains("next:"), "{failed:?}");
}

const OPENCODE_TABLES: &str = "
    CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL, time_created INTEGER NOT NULL);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, data TEXT NOT NULL);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, data TEXT NOT NULL);";
const OPENCODE_START: i64 = 1_794_843_006_000;

/// Returns messages of a chat of OpenCode, each with its parts, from this second on.
fn opencode_messages(second: i64) -> [(i64, Value, Vec<Value>); 2] {
    let at = |seconds: i64| OPENCODE_START + (second + seconds) * 1_000;
    let state = json!({
        "status": "completed", "input": { "command": format!("echo {second} {SECRET}") }, "output": "shipped",
        "metadata": { "exit": 0 }, "time": { "start": at(2), "end": at(2) },
    });
    [
        (
            at(0),
            json!({ "role": "user", "time": { "created": at(0) } }),
            vec![json!({ "type": "text", "text": format!("Ship feature-{second}") })],
        ),
        (
            at(1),
            json!({ "role": "assistant", "time": { "created": at(1) } }),
            vec![
                json!({ "type": "tool", "tool": "bash", "callID": format!("call_{second}"), "state": state }),
                json!({ "type": "text", "text": "It is shipped.", "time": { "end": at(3) } }),
            ],
        ),
    ]
}

fn add_to_opencode(database: &Connection, session: &str, second: i64) {
    for (created, message, parts) in opencode_messages(second) {
        let id = format!("msg_{session}_{created}");
        let sql = "INSERT INTO message VALUES (?1, ?2, ?3, ?4)";
        database.execute(sql, params![id, session, created, message.to_string()]).unwrap();
        for (place, part) in parts.iter().enumerate() {
            let sql = "INSERT INTO part VALUES (?1, ?2, ?3, ?4)";
            database
                .execute(sql, params![format!("prt_{created}_{place}"), id, session, part.to_string()])
                .unwrap();
        }
    }
}

#[test]
fn opencode_chats_are_imported_once_from_a_database_in_use_that_stays_unchanged() {
    for hooked in Hooked::each() {
        let path = hooked.home.path().join(".local/share/opencode/opencode.db");
        let writer = database(&path, OPENCODE_TABLES);
        let folder = hooked.home.working_folder().to_str().unwrap();
        let session = "INSERT INTO session VALUES (?1, ?2, ?3, ?4)";
        writer.execute(session, params!["ses_1", None::<String>, folder, OPENCODE_START]).unwrap();
        writer.execute(session, params!["ses_2", "ses_1", folder, OPENCODE_START + 500]).unwrap();
        add_to_opencode(&writer, "ses_1", 1);
        add_to_opencode(&writer, "ses_2", 10);
        let broken = "INSERT INTO part SELECT 'prt_x', message_id, session_id, '{ broken' FROM part LIMIT 1";
        writer.execute_batch(broken).unwrap();
        let before = bytes(&path);

        let done = hooked.data(&["import", "opencode"]);
        assert_eq!(counts(&done), (1, 2, 0), "the sub-agent adds a tool use and no turn: {done}");
        assert_eq!(done["invalid"], 1, "{done}");
        assert!(done["invalid_lines"][0]["file"].as_str().unwrap().ends_with("opencode.db#ses_1"), "{done}");
        let seen = hooked.observations();
        assert_eq!(seen[0]["session_id"], seen[1]["session_id"]);
        assert_eq!(
            (&seen[0]["repo"], &seen[1]["captured_at"]),
            (&"local/shop".into(), &"2026-11-16T15:30:09.000Z".into())
        );
        assert!(!Value::from(seen).to_string().contains(SECRET));
        let turn = &turns(&hooked)[0];
        assert_eq!(
            (&turn["prompt"], &turn["closing_message"]),
            (&"Ship feature-1".into(), &"It is shipped.".into())
        );
        assert_eq!(counts(&hooked.data(&["import", "opencode"])), (0, 0, 2));
        assert_eq!(bytes(&path), before);

        add_to_opencode(&writer, "ses_1", 40);
        assert_eq!(counts(&hooked.data(&["import", "opencode", path.to_str().unwrap()])), (1, 1, 1));
    }
}

#[test]
fn json_files_of_older_opencode_versions_are_imported() {
    let hooked = Hooked::new();
    let storage = hooked.home.path().join(".local/share/opencode/storage");
    let write = |path: PathBuf, value: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    };
    let session = json!({ "id": "ses_1", "directory": "/gone/shop", "time": { "created": OPENCODE_START } });
    write(storage.join("session/global/ses_1.json"), &session.to_string());
    write(storage.join("session/global/ses_2.json"), "{ broken");
    for (created, message, parts) in opencode_messages(1) {
        write(storage.join(format!("message/ses_1/msg_{created}.json")), &message.to_string());
        for (place, part) in parts.iter().enumerate() {
            write(storage.join(format!("part/msg_{created}/prt_{place}.json")), &part.to_string());
        }
    }
    let done = hooked.home.run(&["import", "opencode", "--format", "json"]);
    assert_eq!(done.code, 1, "the broken session is reported: {done:?}");
    let data = &done.json()["data"];
    assert_eq!(counts(data), (1, 1, 0), "{data}");
    assert!(data["failed"][0]["file"].as_str().unwrap().ends_with("storage#ses_2"), "{data}");
    assert_eq!(hooked.observations()[0]["repo"], "local/shop");
}

#[test]
fn cursor_chats_are_imported_once_with_the_folder_of_their_window() {
    for hooked in Hooked::each() {
        let user = hooked.home.path().join(".config/Cursor/User");
        let path = user.join("globalStorage/state.vscdb");
        let tables = "CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
                      CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);";
        let global = database(&path, tables);
        let put = |database: &Connection, table: &str, key: &str, value: &str| {
            let sql = format!("INSERT INTO {table} VALUES (?1, ?2)");
            database.execute(&sql, params![key, value.as_bytes()]).unwrap();
        };
        let headers = json!([{ "bubbleId": "b1" }, { "bubbleId": "b2" }, { "bubbleId": "gone" }, { "bubbleId": "b3" }, { "bubbleId": "b4" }]);
        let chat = json!({ "composerId": "c1", "createdAt": 1_772_359_200_000_i64, "createdOnBranch": "login", "fullConversationHeadersOnly": headers });
        put(&global, "cursorDiskKV", "composerData:c1", &chat.to_string());
        put(&global, "cursorDiskKV", "composerData:broken", "{ broken");
        let empty = json!({ "composerId": "empty", "createdAt": 1_772_359_200_000_i64, "fullConversationHeadersOnly": [] });
        put(&global, "cursorDiskKV", "composerData:empty", &empty.to_string());
        let tool = json!({ "name": "run_terminal_cmd", "toolCallId": "t1", "status": "completed",
                           "rawArgs": json!({ "command": format!("echo {SECRET}") }).to_string(), "result": "{\"output\":\"shipped\"}" });
        let bubbles = [
            (
                "b1",
                json!({ "type": 1, "text": "Ship feature-7", "createdAt": "2026-03-01T10:00:01.000Z" })
                    .to_string(),
            ),
            ("b2", json!({ "type": 2, "text": "", "toolFormerData": tool }).to_string()),
            ("b3", "{ broken".to_owned()),
            ("b4", json!({ "type": 2, "text": "Feature-7 is shipped." }).to_string()),
        ];
        for (id, text) in bubbles {
            put(&global, "cursorDiskKV", &format!("bubbleId:c1:{id}"), &text);
        }
        let window = user.join("workspaceStorage/w1");
        let local = database(&window.join("state.vscdb"), tables);
        put(
            &local,
            "ItemTable",
            "composer.composerData",
            &json!({ "allComposers": [{ "composerId": "c1" }] }).to_string(),
        );
        let folder = format!("file://{}", hooked.home.working_folder().display());
        fs::write(window.join("workspace.json"), json!({ "folder": folder }).to_string()).unwrap();
        let before = bytes(&path);

        let done = hooked.home.run(&["import", "cursor", "--format", "json"]);
        assert_eq!(done.code, 1, "the broken chat is reported: {done:?}");
        let data = &done.json()["data"];
        assert_eq!((counts(data), &data["invalid_lines"][0]["line"]), ((1, 1, 0), &4.into()), "{data}");
        assert!(data["failed"][0]["file"].as_str().unwrap().ends_with("state.vscdb#broken"), "{data}");
        let seen = hooked.observations();
        assert_eq!(
            (&seen[0]["repo"], &seen[0]["captured_at"]),
            (&"local/shop".into(), &"2026-03-01T10:00:01.001Z".into())
        );
        assert!(!seen[0].to_string().contains(SECRET));
        assert_eq!(turns(&hooked)[0]["closing_message"], "Feature-7 is shipped.");
        let again = hooked.home.run(&["import", "cursor", "--format", "json"]).json();
        assert_eq!((&again["data"]["turns"], &again["data"]["observations"]), (&0.into(), &0.into()));
        assert_eq!(bytes(&path), before);
    }
}

#[test]
fn memories_of_claude_mem_are_imported_once_with_their_sessions() {
    for hooked in Hooked::each() {
        let path = hooked.home.path().join("claude-mem.db");
        let writer = database(
            &path,
            &format!(
                "CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT, memory_session_id TEXT, project TEXT, platform_source TEXT);
                 CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, type TEXT, title TEXT, subtitle TEXT,
                     facts TEXT, narrative TEXT, files_read TEXT, files_modified TEXT, created_at TEXT, created_at_epoch INTEGER);
                 CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, request TEXT, learned TEXT,
                     completed TEXT, next_steps TEXT, created_at TEXT, created_at_epoch INTEGER);
                 CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, content_session_id TEXT, prompt_number INTEGER, prompt_text TEXT,
                     created_at TEXT, created_at_epoch INTEGER);
                 INSERT INTO sdk_sessions VALUES (1, 'chat-1', 'mem-1', 'shop', 'claude');
                 INSERT INTO observations VALUES (7, 'mem-1', 'shop', 'bugfix', 'Fix the lease', 'Expired too early', '[\"Clock skew of 2 s\"]',
                     'The lease expired too early. {SECRET}', '[\"src/clock.rs\"]', '[\"src/lease.rs\"]', '2026-03-01T10:00:02.000Z', 1772359202000);
                 INSERT INTO observations VALUES (9, 'mem-1', 'shop', 'change', '', '', NULL, NULL, NULL, NULL, 'bad', 1772359203000);
                 INSERT INTO session_summaries VALUES (1, 'mem-1', 'shop', 'Repair leases', 'Skew matters', 'Fixed it', 'Deploy', 'bad', 1772359204000);
                 INSERT INTO user_prompts VALUES (1, 'chat-1', 1, 'Repair the leases' || char(10) || 'please', 'x', 1772359201000);"
            ),
        );
        let before = bytes(&path);
        let import =
            |more: &[&str]| hooked.data(&[&["import", "claude-mem", path.to_str().unwrap()], more].concat());
        let done = import(&[]);
        assert_eq!((&done["added"], &done["invalid"]), (&3.into(), &1.into()), "{done}");
        assert_eq!(done["invalid_lines"][0]["line"], 9, "{done}");
        let again = import(&[]);
        assert_eq!((&again["added"], &again["unchanged"]), (&0.into(), &3.into()));
        assert_eq!(bytes(&path), before);
        let seen = hooked.data(&["observation", "list", "--repo", "local/shop"])["observations"]
            .as_array()
            .unwrap()
            .clone();
        let titles: Vec<&str> = seen.iter().map(|one| one["title"].as_str().unwrap()).collect();
        assert_eq!(titles, ["Repair leases", "Fix the lease", "Repair the leases"], "newest first");
        assert_eq!(seen[1]["files_touched"], json!(["src/lease.rs", "src/clock.rs"]));
        assert_eq!(seen[1]["captured_at"], "2026-03-01T10:00:02.000Z");
        assert!(seen.iter().all(|one| one["session_id"] == seen[0]["session_id"]));
        assert!(!Value::from(seen).to_string().contains(SECRET));
        let found = hooked.data(&["search", "clock", "skew"])["results"].as_array().unwrap().clone();
        assert!(found.iter().any(|one| one["title"] == "Fix the lease"), "{found:?}");
        drop(writer);
    }
}

#[test]
fn databases_of_other_programs_are_refused_with_the_reason() {
    let hooked = Hooked::new();
    let path = hooked.home.path().join("other.db");
    database(&path, "CREATE TABLE t (x)");
    let text = hooked.home.path().join("text.db");
    fs::write(&text, "not a database").unwrap();
    for (client, code, missing) in [
        ("opencode", 7, "no table `session`"),
        ("cursor", 7, "no table `cursorDiskKV`"),
        ("claude-mem", 1, "not a database of claude-mem"),
    ] {
        let run = |path: &Path| hooked.home.run(&["import", client, path.to_str().unwrap()]);
        let foreign = run(&path);
        assert_eq!(foreign.code, code, "{foreign:?}");
        assert!(foreign.stderr.contains(missing) && foreign.stderr.contains("next:"), "{foreign:?}");
        let other = run(&text);
        assert_eq!(other.code, 1, "{other:?}");
        assert!(other.stderr.contains("it is not a SQLite database"), "{other:?}");
        let absent = run(Path::new("/no/such/file.db"));
        assert!(absent.code != 0 && absent.stderr.contains("/no/such/file.db"), "{absent:?}");
    }
}
