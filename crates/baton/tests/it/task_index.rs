//! The task index in the store lists the tasks of all checkouts; a failing store never blocks a task verb.

use std::fs;

use baton_testkit::binary::Finished;
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};

fn everywhere(checkout: &Checkout, arguments: &[&str]) -> Vec<Value> {
    // Run outside of a checkout.
    let mut command = checkout.home.command();
    command.current_dir(checkout.home.path()).args(["task", "list", "--everywhere", "--format", "json"]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["data"]["tasks"].as_array().unwrap().clone()
}

/// Returns status, holder and open drifts of the only task in the index.
fn state(checkout: &Checkout) -> (Value, Value, Value) {
    let known = everywhere(checkout, &[]);
    assert_eq!(known.len(), 1, "the index must contain one task: {known:?}");
    let task = &known[0];
    (task["status"].clone(), task["holder"].clone(), task["open_drifts"].clone())
}

#[test]
fn the_index_is_updated_after_every_verb() {
    let checkout = Checkout::new();
    checkout.git(&["remote", "add", "origin", "https://example.com/acme/shop.git"]);
    assert_eq!(everywhere(&checkout, &[]), Vec::<Value>::new());
    checkout.task(&["init-context", TASK]);
    let known = everywhere(&checkout, &[])[0].clone();
    assert_eq!((&known["task_id"], &known["title"]), (&json!(TASK), &json!("Faster settings")));
    assert_eq!((&known["repo"], &known["checkout"]), (&json!("acme/shop"), &json!(checkout.root())));
    assert_eq!(state(&checkout), (json!("pending"), Value::Null, json!(0)));
    checkout.update("implementer", "in_progress");
    assert_eq!(state(&checkout), (json!("in_progress"), json!("implementer"), json!(0)));
    checkout.write("src/main.rs", "fn main() { fast() }\n");
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    assert_eq!(state(&checkout), (json!("waiting"), Value::Null, json!(0)));
    checkout.write("src/main.rs", "fn main() { edited_by_hand() }\n");
    checkout.refused(5, &["update-agent", TASK, "--agent", "reviewer", "--status", "in_progress"]);
    assert_eq!(state(&checkout), (json!("waiting"), Value::Null, json!(1)));
    checkout.task(&["resolve-drift", TASK, "--note", "it was me"]);
    checkout.task(&["mark-blocked", TASK, "--agent", "reviewer", "--finding", "x"]);
    assert_eq!(state(&checkout), (json!("blocked"), Value::Null, json!(0)));
    checkout.task(&["complete", TASK, "--force"]);
    assert_eq!(state(&checkout), (json!("completed"), Value::Null, json!(0)));
    assert_eq!(everywhere(&checkout, &["--status", "blocked"]), Vec::<Value>::new());
    assert_eq!(everywhere(&checkout, &["--repo", "acme/shop", "--limit", "1"]).len(), 1);
    // After a second init and a purge, the archived task is listed again.
    checkout.task(&["init-context", TASK]);
    assert_eq!(state(&checkout).0, "pending");
    checkout.task(&["purge-context", TASK]);
    assert_eq!(state(&checkout).0, "completed");
}

#[test]
fn deleted_checkouts_are_removed_and_swept_tasks_are_completed() {
    let checkout = Checkout::with_context();
    checkout.git(&["worktree", "add", "--quiet", "../linked"]);
    let linked = checkout.home.path().join("linked");
    let mut command = checkout.home.command();
    let output = command.current_dir(&linked).args(["task", "init-context", TASK]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(everywhere(&checkout, &[]).len(), 2);
    fs::remove_dir_all(linked).unwrap();
    for _ in 0..2 {
        let known = everywhere(&checkout, &[]);
        assert_eq!(known.len(), 1, "{known:?}");
        assert_eq!(known[0]["checkout"], json!(checkout.root()));
    }
    checkout.task(&["sweep-contexts", "--ttl", "0s", "--all"]);
    assert_eq!(state(&checkout).0, "completed");
}

#[test]
fn every_interface_lists_the_same_tasks() {
    let checkout = Checkout::implemented();
    let known = everywhere(&checkout, &[]);
    let server = checkout.home.serve();
    assert_eq!(server.get("/api/tasks").json()["tasks"], json!(known));
    assert_eq!(server.get("/api/tasks?status=nonsense").status, 400);
    let mut client = checkout.home.mcp();
    let listed = client.call("tasks_everywhere", &json!({}));
    assert_eq!(listed["structuredContent"]["tasks"], json!(known));
    // Changes by MCP tools are recorded as well.
    client
        .call("task_update_agent", &json!({ "task_id": TASK, "agent": "reviewer", "status": "in_progress" }));
    assert_eq!(state(&checkout).1, "reviewer");
}

#[test]
fn the_index_of_a_server_is_updated_and_an_unreachable_server_is_a_warning() {
    let checkout = Checkout::new();
    let server = checkout.home.serve();
    let run = |url: &str, arguments: &[&str]| {
        let output = checkout.home.command().env("BATON_SERVER", url).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Finished {
            code: output.status.code().unwrap(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    };
    let url = server.url();
    let begun = run(url, &["task", "init-context", TASK]);
    assert_eq!((begun.code, begun.stderr.as_str()), (0, ""));
    assert!(
        run(url, &["task", "list", "--everywhere"]).stdout.contains("TASK-0824  Faster settings  pending")
    );
    let taken = run(
        "http://127.0.0.1:1",
        &["task", "update-agent", TASK, "--agent", "implementer", "--status", "in_progress"],
    );
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(taken.stderr.contains("warning: cannot update the task index"), "{taken:?}");
}

#[test]
fn an_unusable_store_is_a_warning() {
    let checkout = Checkout::new();
    fs::create_dir_all(checkout.home.data_dir().parent().unwrap()).unwrap();
    fs::write(checkout.home.data_dir(), "no folder").unwrap();
    let finished = checkout.home.run(&["task", "init-context", TASK]);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(finished.stderr.contains("warning: cannot update the task index"), "{finished:?}");
    assert_eq!(checkout.context()["task_id"], TASK);
}
