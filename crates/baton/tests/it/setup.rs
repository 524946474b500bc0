//! `baton setup`: the files of each agent, removal, and files that cannot be edited safely.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use baton_testkit::binary::{Finished, Home};
use serde_json::{Value, json};

const AGENTS: [&str; 10] = [
    "claude-code",
    "codex",
    "gemini",
    "opencode",
    "cursor",
    "antigravity",
    "vscode",
    "copilot-cli",
    "windsurf",
    "cline",
];

/// A home with a project.
fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_baton")).working_in("shop");
    fs::create_dir(home.working_folder().join(".git")).unwrap();
    home
}

/// Returns all files below the home except those of Baton, with their content and mode.
fn files(home: &Home) -> BTreeMap<String, (String, u32)> {
    fn walk(folder: &Path, root: &Path, found: &mut BTreeMap<String, (String, u32)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if ["data", "tmp"].contains(&name.as_str()) {
                continue;
            }
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_dir() {
                found.insert(format!("{name}/"), (String::new(), 0));
                walk(&path, root, found);
            } else {
                let content = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
                found.insert(name, (content, metadata.mode() & 0o777));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(home.path(), home.path(), &mut found);
    found
}

/// Returns the records of setup by file name.
fn records(home: &Home) -> BTreeMap<String, String> {
    let entries = fs::read_dir(home.data_dir().join("setup")).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .collect()
}

fn write(home: &Home, path: &str, content: &str) {
    let path = home.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn setup(home: &Home, arguments: &[&str]) -> Finished {
    home.run(&[&["setup"], arguments].concat())
}

fn ok(home: &Home, arguments: &[&str]) -> String {
    let finished = setup(home, arguments);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{finished:?}");
    finished.stdout
}

#[test]
fn writes_the_documented_files_of_every_agent() {
    for scope in ["user", "project"] {
        let mut text = String::new();
        for agent in AGENTS {
            let home = home();
            ok(&home, &[agent, "--scope", scope]);
            text += &format!("=== {agent}\n\n");
            for (name, (content, mode)) in files(&home) {
                if name.ends_with('/') || name == ".gitconfig" {
                    continue;
                }
                let content = content
                    .replace(env!("CARGO_BIN_EXE_baton"), "/opt/baton")
                    .replace(home.data_dir().to_str().unwrap(), "/data")
                    .replace(env!("CARGO_PKG_VERSION"), "<version>");
                text += &format!("--- {name} ({mode:o})\n{content}\n");
            }
        }
        insta::assert_snapshot!(format!("setup_files_{scope}"), text);
    }
}

/// Configuration that users have, by path.
const EXISTING: [(&str, &str); 6] = [
    (
        ".codex/config.toml",
        "# mine\r\nmodel = \"o5\" # fast\r\n\r\n[mcp_servers.other]\r\ncommand = \"x\"\r\n",
    ),
    (
        ".codex/hooks.json",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"notify\"}]}]}}",
    ),
    (
        ".cursor/hooks.json",
        "{\n\t\"version\": 1,\n\t\"hooks\": {\n\t\t// mine\n\t\t\"stop\": [{ \"command\": \"notify\" }],\n\t},\n}\n",
    ),
    (
        ".cursor/mcp.json",
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"other\": { \"command\": \"x\" }\r\n  }\r\n}\r\n",
    ),
    (".codeium/windsurf/mcp_config.json", "{}"),
    (
        ".gemini/antigravity-cli/hooks.json",
        "{\"lint\":{\"Stop\":[{\"type\":\"command\",\"command\":\"lint\"}]}}\n",
    ),
];

#[test]
fn removal_restores_the_original_bytes_and_leaves_no_files() {
    let home = home();
    for (path, content) in EXISTING {
        write(&home, path, content);
    }
    let before = files(&home);
    for agent in AGENTS {
        ok(&home, &[agent]);
        let first = files(&home);
        let again = ok(&home, &[agent, "--format", "json"]);
        assert!(!again.contains("\"create\"") && !again.contains("\"update\""), "{again}");
        assert_eq!(files(&home), first, "{agent}: a second setup must change nothing");
        for (path, content) in EXISTING {
            for kept in ["// mine", "# mine", "# fast", "notify", "\"other\"", "lint"] {
                assert!(
                    !content.contains(kept) || first[path].0.contains(kept),
                    "{agent}: {path} lost {kept}"
                );
            }
        }
    }
    for agent in AGENTS {
        ok(&home, &[agent, "--remove"]);
    }
    assert_eq!(files(&home), before);
    assert!(!home.data_dir().join("setup").exists(), "no record must be left");
}

#[test]
fn removal_keeps_changes_that_the_user_made_after_setup() {
    let home = home();
    write(&home, ".codex/config.toml", "model = \"o5\"\n");
    ok(&home, &["codex", "cursor"]);
    let edited =
        fs::read_to_string(home.path().join(".codex/config.toml")).unwrap() + "\n[tui]\ntheme = \"dark\"\n";
    write(&home, ".codex/config.toml", &edited);
    write(
        &home,
        ".cursor/mcp.json",
        &fs::read_to_string(home.path().join(".cursor/mcp.json"))
            .unwrap()
            .replace("\"mcpServers\": {", "\"mcpServers\": {\n    \"other\": { \"command\": \"x\" },"),
    );
    ok(&home, &["codex", "cursor", "--remove"]);
    let left = files(&home);
    assert!(left[".codex/config.toml"].0.contains("theme = \"dark\""), "{left:?}");
    assert!(!left[".codex/config.toml"].0.contains("baton"), "{left:?}");
    assert!(left[".cursor/mcp.json"].0.contains("\"other\""), "{left:?}");
    assert!(!left[".cursor/mcp.json"].0.contains("baton"), "{left:?}");
    assert!(!left.contains_key(".cursor/hooks.json"), "{left:?}");
}

#[test]
fn shared_files_stay_until_the_last_agent_is_removed() {
    let home = home();
    ok(&home, &["vscode", "copilot-cli"]);
    ok(&home, &["vscode", "--remove"]);
    assert!(files(&home).contains_key(".copilot/hooks/baton.json"));
    ok(&home, &["copilot-cli", "--remove"]);
    assert!(!files(&home).contains_key(".copilot/hooks/baton.json"));
}

#[test]
fn a_dry_run_of_a_removal_changes_no_file_and_no_record() {
    let home = home();
    ok(&home, &["vscode", "copilot-cli"]);
    let shared = home.path().join(".copilot/hooks/baton.json");
    let before = records(&home);
    let one = ok(&home, &["vscode", "--remove", "--dry-run"]);
    assert!(one.contains(&format!("unchanged  {}", shared.display())), "{one}");
    let both = ok(&home, &["vscode", "copilot-cli", "--remove", "--dry-run"]);
    assert!(both.contains(&format!("delete     {}", shared.display())), "{both}");
    assert_eq!(records(&home), before);
    ok(&home, &["copilot-cli", "--remove"]);
    assert!(shared.exists(), "vscode still uses the file");
}

#[test]
fn removal_forgets_files_that_no_longer_contain_anything_of_baton() {
    let home = home();
    write(&home, ".codex/config.toml", "model = \"o5\"\n");
    ok(&home, &["codex"]);
    write(&home, ".codex/config.toml", "model = \"o6\"\n");
    fs::remove_file(home.path().join(".codex/hooks.json")).unwrap();
    let before = records(&home);
    ok(&home, &["codex", "--remove", "--dry-run"]);
    assert_eq!(records(&home), before);
    ok(&home, &["codex", "--remove"]);
    assert_eq!(files(&home)[".codex/config.toml"].0, "model = \"o6\"\n");
    assert!(!home.data_dir().join("setup").exists(), "no record must be left");
}

#[test]
fn removal_keeps_the_file_if_its_backup_is_damaged() {
    let home = home();
    write(&home, ".codex/config.toml", "model = \"o5\"\n");
    ok(&home, &["codex"]);
    for (path, text) in records(&home) {
        let mut record: Value = serde_json::from_str(&text).unwrap();
        record["original"] = "not base64".into();
        fs::write(home.data_dir().join("setup").join(path), record.to_string()).unwrap();
    }
    ok(&home, &["codex", "--remove"]);
    assert_eq!(files(&home)[".codex/config.toml"].0, "model = \"o5\"\n");
}

#[test]
fn a_symbolic_link_is_kept_and_its_target_is_edited() {
    let home = home();
    write(&home, "dotfiles/codex.toml", "model = \"o5\"\n");
    fs::create_dir(home.path().join(".codex")).unwrap();
    let link = home.path().join(".codex/config.toml");
    symlink("../dotfiles/codex.toml", &link).unwrap();
    ok(&home, &["codex"]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let target = home.path().join("dotfiles/codex.toml");
    assert!(fs::read_to_string(&target).unwrap().contains("[mcp_servers.baton]"));
    ok(&home, &["codex", "--remove"]);
    assert_eq!(fs::read_to_string(&target).unwrap(), "model = \"o5\"\n");
}

#[test]
fn an_entry_with_another_path_is_replaced() {
    let home = home();
    write(
        &home,
        "shop/.cursor/mcp.json",
        "{ \"mcpServers\": { \"baton\": { \"command\": \"/home/colleague/baton\" } } }",
    );
    let hooks =
        json!({ "version": 1, "hooks": { "stop": [{ "command": "/home/colleague/baton hook stop" }] } });
    write(&home, "shop/.cursor/hooks.json", &hooks.to_string());
    ok(&home, &["cursor", "--scope", "project"]);
    let found = files(&home);
    for path in ["shop/.cursor/mcp.json", "shop/.cursor/hooks.json"] {
        assert!(!found[path].0.contains("colleague"), "{}", found[path].0);
    }
    assert_eq!(found["shop/.cursor/hooks.json"].0.matches("hook stop").count(), 1);
}

#[test]
fn large_files_are_edited_and_modes_are_kept() {
    let home = home();
    let history: String =
        (0..80_000).map(|line| format!("    \"line {line} {}\",\n", "x".repeat(50))).collect();
    let content = format!("{{\n  \"history\": [\n{history}    \"end\"\n  ]\n}}\n");
    assert!(content.len() > 5_000_000);
    write(&home, ".cursor/mcp.json", &content);
    let path = home.path().join(".cursor/mcp.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    ok(&home, &["cursor"]);
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    ok(&home, &["cursor", "--remove"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), content);

    write(&home, ".cursor/mcp.json", &format!("{{ \"history\": \"{}\" }}", "x".repeat(5_000_000)));
    let shown = ok(&home, &["cursor"]);
    assert!(shown.contains("\"history\"") && shown.len() < 10_000, "{} bytes are shown", shown.len());
}

#[test]
fn files_that_cannot_be_edited_safely_are_not_changed() {
    type Prepare = fn(&Home);
    let cases: [(&str, &str, Prepare); 9] = [
        ("cursor", "the file is not valid JSON", |home| write(home, ".cursor/mcp.json", "{ \"a\": ")),
        ("cursor", "the key `hooks` occurs twice", |home| {
            write(home, ".cursor/hooks.json", "{ \"hooks\": {}, \"hooks\": {} }");
        }),
        ("codex", "the file is not valid TOML", |home| write(home, ".codex/config.toml", "a = 1\na = 2\n")),
        ("codex", "the file is not UTF-8 text", |home| {
            write(home, ".codex/x", "");
            fs::write(home.path().join(".codex/hooks.json"), b"{\"a\":\"\xff\"}").unwrap();
        }),
        ("codex", "its symbolic link cannot be followed", |home| {
            write(home, ".codex/x", "");
            symlink("/nowhere/config.toml", home.path().join(".codex/config.toml")).unwrap();
        }),
        ("codex", "it is read-only", |home| {
            write(home, ".codex/config.toml", "a = 1\n");
            let path = home.path().join(".codex/config.toml");
            fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
        }),
        ("codex", "it is not a regular file", |home| {
            fs::create_dir_all(home.path().join(".codex/config.toml")).unwrap();
        }),
        ("codex", "Not a directory", |home| write(home, ".codex", "")),
        ("cline", "the script belongs to another program", |home| {
            write(home, "Documents/Cline/Hooks/TaskStart", "#!/bin/sh\nnotify\n");
        }),
    ];
    for (agent, problem, prepare) in cases {
        let home = home();
        prepare(&home);
        let before = files(&home);
        for arguments in [&[agent][..], &[agent, "--dry-run"]] {
            let finished = setup(&home, arguments);
            assert_eq!(finished.code, 1, "{problem}: {finished:?}");
            assert!(
                finished.stderr.contains("cannot change") && finished.stderr.contains(problem),
                "{finished:?}"
            );
        }
        assert_eq!(files(&home), before, "{problem}");
        assert!(!home.data_dir().join("setup").exists(), "{problem}");
    }
}

#[test]
fn files_of_other_users_are_not_changed() {
    // Only root can give a file away.
    let home = home();
    write(&home, ".codex/config.toml", "a = 1\n");
    if chown(home.path().join(".codex/config.toml"), Some(12_345), None).is_err() {
        return;
    }
    let finished = setup(&home, &["codex"]);
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(finished.stderr.contains("it belongs to another user"), "{finished:?}");
    assert!(!files(&home).contains_key(".codex/hooks.json"), "no file may be written");
}

#[test]
fn a_dry_run_shows_the_changes_and_writes_nothing() {
    let home = home();
    write(&home, ".codex/config.toml", "model = \"o5\"\n");
    let before = files(&home);
    let shown = ok(&home, &["codex", "--dry-run"]);
    for expected in
        ["update", ".codex/config.toml", "+[mcp_servers.baton]", "create", "nothing was written", "/hooks"]
    {
        assert!(shown.contains(expected), "{expected} is missing: {shown}");
    }
    assert_eq!(files(&home), before);
}

#[test]
fn agents_are_detected_and_must_be_named_without_a_terminal() {
    let home = home();
    let home = home.with("PATH", "/nonexistent");
    let nothing = setup(&home, &[]);
    assert_eq!(nothing.code, 3, "{nothing:?}");
    assert!(nothing.stderr.contains("no installed agent was found"), "{nothing:?}");
    write(&home, ".codex/config.toml", "");
    write(&home, ".cursor/x", "");
    let unnamed = setup(&home, &[]);
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
    assert!(unnamed.stderr.contains("baton setup codex cursor, or baton setup --all"), "{unnamed:?}");
    let all = ok(&home, &["--all"]);
    assert!(all.contains("Codex (user scope)") && all.contains("Cursor") && !all.contains("Gemini"), "{all}");
    let unknown = setup(&home, &["codx"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("similar value exists: 'codex'"), "{unknown:?}");
    let unknown = setup(&home, &["nope"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("possible values: claude-code, codex, gemini,"), "{unknown:?}");
    assert!(!unknown.stderr.contains("similar value"), "{unknown:?}");
}

/// Returns the findings of `baton doctor` about agents.
fn doctor(home: &Home) -> Vec<String> {
    let finished = home.run(&["doctor", "--format", "json"]).json();
    let findings = finished["data"]["findings"].as_array().unwrap().clone();
    let about_agents = findings.iter().filter(|finding| finding["check"] == "agents");
    about_agents
        .map(|finding| {
            format!("{} {} | {}", finding["level"], finding["message"], finding["fix"]).replace('"', "")
        })
        .collect()
}

#[test]
fn doctor_reports_the_state_of_each_connection() {
    let home = home();
    assert_eq!(doctor(&home), ["ok none is set up; run baton setup to connect one | null"]);
    ok(&home, &["claude-code"]);
    let [claude, server] = doctor(&home).try_into().unwrap();
    assert!(
        claude.starts_with("warning Claude Code (user), no event yet: the agent has sent nothing"),
        "{claude}"
    );
    assert!(server.starts_with("ok MCP server ") && server.contains("responds with"), "{server}");

    let report =
        json!({ "session_id": "chat-1", "cwd": home.working_folder(), "hook_event_name": "SessionStart" });
    home.run_with_input(&["hook", "session-start", "--client", "claude-code"], report.to_string().as_bytes());
    assert!(doctor(&home)[0].starts_with("ok Claude Code (user), last event 20"), "{:?}", doctor(&home));
    let status = home.run(&["status"]).stdout;
    assert!(status.contains("captured claude-code, last 20"), "{status}");

    let hooks = ".claude/skills/baton/hooks/hooks.json";
    let written = fs::read_to_string(home.path().join(hooks)).unwrap();
    write(&home, hooks, &written.replace("\"timeout\": 10", "\"timeout\": 11"));
    let changed = &doctor(&home)[0];
    assert!(
        changed.contains("differs from what setup writes") && changed.contains("baton setup claude-code"),
        "{changed}"
    );
    write(&home, hooks, &written.replace(env!("CARGO_BIN_EXE_baton"), "/nowhere/baton"));
    let moved = &doctor(&home)[0];
    assert!(moved.contains("the configured binary /nowhere/baton does not exist"), "{moved}");
    ok(&home, &["claude-code"]);
    assert!(doctor(&home)[0].starts_with("ok "), "{:?}", doctor(&home));
}

#[test]
fn doctor_lists_the_connections_of_the_user_once_in_the_home_folder() {
    let home = home();
    ok(&home, &["claude-code", "codex"]);
    let in_project = doctor(&home).len();
    let in_home = Home::at(home.path(), env!("CARGO_BIN_EXE_baton"));
    let found = doctor(&in_home);
    assert_eq!(found.len(), in_project, "{found:?}");
    assert!(!found.iter().any(|finding| finding.contains("(project)")), "{found:?}");
}

#[test]
fn doctor_reports_codex_hooks_that_are_not_trusted() {
    let home = home();
    let codex = home.path().join("tmp/bin/codex");
    let answer = |status: &str| {
        let hooks =
            json!([{ "command": "/x/baton hook stop", "trustStatus": status }, { "command": "other" }]);
        let listed = json!({ "id": 2, "result": { "data": [{ "hooks": hooks }] } });
        write(
            &home,
            "tmp/bin/codex",
            &format!(
                "#!/bin/sh\nread a; echo '{{\"id\":1,\"result\":{{}}}}'\nread b; read c; echo '{listed}'\n"
            ),
        );
        fs::set_permissions(&codex, fs::Permissions::from_mode(0o755)).unwrap();
    };
    answer("untrusted");
    let path = format!("{}:{}", codex.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let reader = Home::at(home.path(), env!("CARGO_BIN_EXE_baton")).working_in("shop").with("PATH", &path);
    ok(&reader, &["codex"]);
    let untrusted = &doctor(&reader)[0];
    assert!(
        untrusted.contains("1 hooks are not trusted") && untrusted.contains("enter /hooks"),
        "{untrusted}"
    );
    answer("trusted");
    assert!(doctor(&reader)[0].contains("the agent has sent nothing"), "{:?}", doctor(&reader));
    write(&home, "tmp/bin/codex", "#!/bin/sh\nexit 1\n");
    assert!(doctor(&reader)[0].contains("cannot read the trust state"), "{:?}", doctor(&reader));
}
