//! Output on terminals of several widths.

use std::process::{Command, Stdio};

use baton_core::Timestamp;
use baton_testkit::binary::Home;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::checkout::Checkout;
use crate::hooked::Hooked;

/// Runs a command on a terminal with this many columns and returns what it prints, without carriage returns.
pub(crate) fn on_a_terminal(
    home: &Home,
    columns: usize,
    arguments: &str,
    environment: &[(&str, &str)],
) -> String {
    let shell = format!("stty cols {columns}; {} {arguments}", env!("CARGO_BIN_EXE_baton"));
    let mut command = Command::new("script");
    for (name, value) in home.command().get_envs() {
        command.envs(value.map(|value| (name, value)));
    }
    command.current_dir(home.working_folder());
    command.env("TERM", "xterm").env_remove("NO_COLOR").envs(environment.iter().copied());
    let output = command.args(["-qec", &shell, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap().replace('\r', "")
}

/// Words that make every column and sentence longer than a narrow terminal.
const LONG: &str =
    "Keep people signed in for thirty days, because the proxy drops every header of the login service";

/// Returns a home with records of every kind, most of them longer than a line.
fn filled() -> Hooked {
    let checkout = Checkout::with_context();
    let hooked = Hooked::at(checkout.home);
    for (number, words) in [(1, LONG), (2, "Add logout")] {
        hooked.hook("user-prompt-submit", &hooked.claude("UserPromptSubmit", json!({ "prompt": words })));
        let output = format!("test result: ok. {number} passed; 0 failed");
        hooked.hook("post-tool-use", &hooked.bash("cargo test --workspace --all-features", &output));
        let path = hooked.home.working_folder().join("src/lib.rs");
        let edit = json!({
            "tool_name": "Edit", "tool_input": { "file_path": path, "old_string": "a", "new_string": LONG },
            "tool_response": { "filePath": path },
        });
        hooked.hook("post-tool-use", &hooked.claude("PostToolUse", edit));
        hooked.work();
    }
    hooked.hook("post-tool-use", &hooked.bash("cargo build --workspace --all-features", "done"));
    let branch = format!("feature/{}", "long-".repeat(20));
    for agent in ["claude-for-the-web-shop-and-its-login-service", "codex-2"] {
        let place = ["--repo", "acme-and-daughters/webshop-of-acme", "--branch", &branch];
        let started = hooked.data(&[&["session", "start", "--agent", agent], &place[..]].concat());
        let id = started["session_id"].as_str().unwrap();
        hooked.data(&["handoff", "create", "--session", id, "--summary", LONG, "--blocker", LONG]);
        let name = format!("Before {LONG}");
        let save = ["checkpoint", "save", "--session", agent, "--name", &name, "--format", "json"];
        assert_eq!(hooked.home.run_with_input(&save, b"{\"goal\":1}").code, 0);
    }
    let note = hooked.data(&["note", LONG, "--kind", "decision", "--file", "src/lib.rs"])["note"].clone();
    hooked.data(&["note", LONG, "--kind", "gotcha"]);
    hooked.data(&["memory", "pin", note["id"].as_str().unwrap()]);
    for days in ["30", "60"] {
        hooked.data(&["token", "create", "--name", LONG, "--venture", "acme", "--expires-in-days", days]);
    }
    hooked
}

/// Returns the exact times in a text, and panics if one is cut.
fn times(text: &str, command: &str) -> usize {
    let starts = text.match_indices("20").map(|(at, _)| &text[at..]);
    let is_time = |rest: &&str| {
        let date = rest.get(..8).unwrap_or_default();
        let mut characters = date.chars();
        characters.by_ref().take(4).all(|c| c.is_ascii_digit())
            && date.get(4..5) == Some("-")
            && date.get(5..7).is_some_and(|month| month.chars().all(|c| c.is_ascii_digit()))
    };
    let mut count = 0;
    for rest in starts.filter(is_time) {
        let time = rest.get(..24).unwrap_or(rest);
        assert!(time.parse::<Timestamp>().is_ok(), "{command}: a time is cut: {time:?} in\n{text}");
        count += 1;
    }
    count
}

#[test]
fn lines_fit_the_terminal_and_times_are_whole() {
    let hooked = filled();
    let observation = hooked.observations()[0]["id"].as_str().unwrap().to_owned();
    let session = hooked.observations()[0]["session_id"].as_str().unwrap().to_owned();
    let repo = "--repo acme-and-daughters/webshop-of-acme";
    let commands = [
        ("session list".to_owned(), 3),
        (format!("session list {repo} --limit 1"), 1),
        ("session history".to_owned(), 3),
        ("session history --limit 1".to_owned(), 1),
        ("session overview".to_owned(), 0),
        (format!("handoff list {repo}"), 2),
        (format!("handoff list {repo} --limit 1"), 1),
        ("checkpoint list --session codex-2".to_owned(), 1),
        ("checkpoint workflows".to_owned(), 2),
        ("note list".to_owned(), 2),
        ("note list --limit 1".to_owned(), 1),
        ("memory list".to_owned(), 1),
        ("observation list".to_owned(), 4),
        ("observation list --limit 1".to_owned(), 1),
        (format!("turn list {session}"), 2),
        (format!("turn list {session} --limit 1"), 1),
        (format!("timeline {observation}"), 1),
        ("queue list".to_owned(), 1),
        ("queue list --status done --limit 1".to_owned(), 1),
        ("requests --limit 20".to_owned(), 20),
        ("token list".to_owned(), 2),
        ("task list".to_owned(), 0),
        ("task list --everywhere".to_owned(), 1),
        ("config show".to_owned(), 0),
        ("search signed in".to_owned(), 1),
        ("file src/lib.rs".to_owned(), 1),
        ("how cargo test".to_owned(), 2),
        ("status".to_owned(), 1),
        (String::new(), 1),
        ("doctor".to_owned(), 0),
        ("key status".to_owned(), 0),
        (format!("session show {session}"), 1),
    ];
    for (command, at_least) in commands {
        for width in [60, 80, 120] {
            for option in ["", "--utc"] {
                let arguments = format!("{option} {command}");
                let text = on_a_terminal(&hooked.home, width, &arguments, &[("NO_COLOR", "1")]);
                for line in text.lines() {
                    let is_command =
                        ["baton ", "next: cd "].iter().any(|start| line.trim_start().starts_with(start));
                    assert!(
                        is_command || line.width() <= width,
                        "{arguments} at {width}: {line:?} in\n{text}"
                    );
                }
                let times = times(&text, &arguments);
                assert!(option.is_empty() || times >= at_least, "{arguments} at {width}: {times} in\n{text}");
            }
        }
    }
}

#[test]
fn the_command_for_the_next_page_can_be_copied() {
    let hooked = filled();
    for (command, noun) in [
        ("session history", "sess_"),
        ("handoff list --repo acme-and-daughters/webshop-of-acme", "ho_"),
        ("note list", "note_"),
        ("observation list", "obs_"),
    ] {
        let page = |command: &str| {
            let text = on_a_terminal(&hooked.home, 60, command, &[("NO_COLOR", "1")]);
            let id = text.split_whitespace().find(|word| word.starts_with(noun)).unwrap().to_owned();
            let next = text.lines().skip_while(|line| *line != "more:").nth(1).unwrap_or_default().to_owned();
            (id, next)
        };
        let (first, next) = page(&format!("{command} --limit 1"));
        let next = next.strip_prefix("baton ").unwrap_or_else(|| panic!("{command}: {next}"));
        let (second, after) = page(next);
        assert_ne!(first, second, "{command}");
        assert_eq!(after.matches("--cursor").count(), usize::from(!after.is_empty()), "{after}");
    }
}
