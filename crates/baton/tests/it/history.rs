//! `baton get`, `baton file` and `baton how` through the real binary.

use std::fs;

use serde_json::{Value, json};

use crate::checkout::Checkout;
use crate::hooked::Hooked;

fn file(hooked: &Hooked, path: &str) -> Value {
    hooked.data(&["file", path])["file"].clone()
}

#[test]
fn a_file_is_found_by_its_path_in_the_checkout_and_compared_with_the_disk() {
    let checkout = Checkout::new();
    let hooked = Hooked::at(checkout.home);
    let root = hooked.home.working_folder().to_owned();
    let path = root.join("walrus.rs");
    fs::write(&path, "one").unwrap();
    hooked.hook(
        "user-prompt-submit",
        &hooked.claude("UserPromptSubmit", json!({ "prompt": "Make the walrus fast" })),
    );
    let edit = json!({
        "tool_name": "Edit", "tool_input": { "file_path": path, "old_string": "a", "new_string": "b" },
        "tool_response": { "filePath": path },
    });
    hooked.hook("post-tool-use", &hooked.claude("PostToolUse", edit));
    hooked.work();
    let seen = file(&hooked, "walrus.rs");
    assert_eq!((&seen["session_count"], &seen["changed_since"]), (&1.into(), &false.into()), "{seen}");
    assert_eq!(seen["sessions"][0]["turns"][0]["title"], "Make the walrus fast");
    fs::write(&path, "two").unwrap();
    assert_eq!(file(&hooked, path.to_str().unwrap())["changed_since"], true);
    let text = hooked.home.run(&["file", "./walrus.rs"]).stdout;
    assert!(text.contains("used in 1 session; changed since"), "{text}");
    let unknown = hooked.home.run(&["file", "unknown.rs"]).stdout;
    assert_eq!(unknown.trim(), "nothing is recorded about unknown.rs");
    for outside in ["../walrus.rs", "/etc/hosts", "."] {
        let refused = hooked.home.run(&["file", outside]);
        assert!(refused.code == 7 && refused.stderr.contains("is outside of"), "{refused:?}");
    }
}

#[test]
fn earlier_runs_of_a_command_are_listed_with_their_results() {
    for hooked in Hooked::each() {
        hooked
            .hook("post-tool-use", &hooked.bash("cargo test walrus", "test result: ok. 3 passed; 0 failed"));
        hooked.work();
        let text = hooked.home.run(&["how", "cargo", "test"]).stdout;
        assert!(text.contains("3 passed"), "{text}");
        assert_eq!(hooked.home.run(&["how", "npm"]).stdout.trim(), "no earlier runs are recorded");
        assert_eq!(hooked.home.run(&["how", " "]).code, 7);
    }
}

#[test]
fn get_returns_a_session_that_has_no_summary_yet() {
    for hooked in Hooked::each() {
        let ask = json!({ "prompt": "Make the walrus fast" });
        hooked.hook("user-prompt-submit", &hooked.claude("UserPromptSubmit", ask));
        let session = hooked.sessions()[0].clone();
        let id = session["id"].as_str().unwrap();
        let turn = hooked.data(&["turn", "list", id])["turns"][0]["id"].clone();
        let turn = turn.as_str().unwrap();
        for given in [id, &id[..20]] {
            let found = hooked.data(&["get", given]);
            let item = &found["items"][0];
            assert_eq!((&item["id"], &item["kind"]), (&id.into(), &"summary".into()), "{found}");
            assert_eq!((&item["agent"], &item["repo"]), (&session["agent"], &session["repo"]), "{found}");
            assert_eq!(item["created_at"], session["created_at"]);
            assert_eq!(item["title"], "active session without a summary");
            let text = item["text"].as_str().unwrap();
            assert!(text.contains(&format!("last turn {turn} ")), "{text}");
            assert!(text.ends_with("\nMake the walrus fast"), "{text}");
        }
        let shown = hooked.home.run(&["get", id]).stdout;
        assert!(shown.contains("\nagent   claude-code\n"), "{shown}");
        hooked.data(&["session", "end", id]);
        let ended = hooked.data(&["get", id])["items"][0]["title"].clone();
        assert!(!ended.as_str().unwrap().starts_with("active"), "{ended}");
    }
}
