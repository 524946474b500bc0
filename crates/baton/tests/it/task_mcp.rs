//! Task tools of `baton mcp`, which are available only in a checkout.

use baton_testkit::binary::{Home, tool_answer};
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};
use crate::mcp_http;

fn tools(list: &Value) -> Vec<Value> {
    let is_task = |tool: &&Value| tool["name"].as_str().unwrap().starts_with("task_");
    list["result"]["tools"].as_array().unwrap().iter().filter(is_task).cloned().collect()
}

#[test]
fn task_tools_match_the_snapshot() {
    let checkout = Checkout::new();
    let tools = tools(&checkout.home.mcp_with(&["--tools", "tasks"]).request("tools/list", &json!({})));
    assert_eq!(tools.len(), baton_task::catalog().len());
    for tool in &tools {
        let name = &tool["name"];
        for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
            assert_eq!(schema["type"], "object", "{name}");
            for combined in ["oneOf", "anyOf", "allOf", "$ref", "$defs"] {
                assert!(schema.get(combined).is_none(), "{name}: schemas must be plain objects for models");
            }
        }
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        assert!(properties.values().all(|property| property["description"].is_string()), "{name}");
    }
    insta::assert_json_snapshot!("mcp_task_tools", tools);
}

#[test]
fn task_tools_require_a_checkout() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let mut client = home.mcp_with(&["--tools", "all"]);
    assert!(tools(&client.request("tools/list", &json!({}))).is_empty());
    let answer = client.request("tools/call", &json!({ "name": "task_list", "arguments": {} }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");

    let checkout = Checkout::new();
    let server = checkout.home.serve();
    assert!(
        tools(&mcp_http::ask(&server, &[], "tools/list", &json!({}))).is_empty(),
        "a server must not offer task tools"
    );
}

#[test]
fn a_task_can_be_processed_with_tools() {
    let checkout = Checkout::new();
    let mut client = checkout.home.mcp();
    let mut call = |tool: &str, arguments: Value| {
        let result = client.call(tool, &arguments);
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, tool_answer(&result));
        (result["isError"] == json!(true), text)
    };
    let role = |agent: &str, status: &str| json!({ "task_id": TASK, "agent": agent, "status": status });
    let (failed, begun) = call("task_init_context", json!({ "task_id": TASK }));
    assert!(!failed && begun["task_id"] == TASK, "{begun}");
    call("task_update_agent", role("implementer", "in_progress"));
    checkout.write("src/main.rs", "fn main() { by_tool() }\n");
    let (_, taken) = call("task_snapshot_worktree", json!({ "task_id": TASK, "agent": "implementer" }));
    assert_eq!(taken["snapshot"]["sequence"], 1, "{taken}");
    call("task_update_agent", role("implementer", "done"));

    // The running server detects a moved HEAD.
    checkout.git(&["commit", "--quiet", "--allow-empty", "-m", "other"]);
    let (failed, error) = call("task_update_agent", role("reviewer", "in_progress"));
    assert!(failed);
    assert_eq!((&error["code"], &error["retry"]["kind"]), (&json!("DRIFT_DETECTED"), &json!("never")));
    assert_eq!(error["details"]["differences"][0]["kind"], "base_commit_moved");
    assert!(error["suggestion"].as_str().unwrap().contains("resolve-drift"));
    assert!(error["correlation_id"].as_str().unwrap().starts_with("corr_"));
    let (failed, error) = call("task_snapshot_worktree", json!({ "task_id": TASK, "agent": "implementer" }));
    assert!(failed && error["code"] == "TASK_BLOCKED", "{error}");
    call("task_resolve_drift", json!({ "task_id": TASK, "note": "a commit of the user" }));
    let (failed, taken) = call("task_update_agent", role("reviewer", "in_progress"));
    assert!(!failed && taken["verified_snapshot"] == 2, "{taken}");
    let (failed, error) = call("task_complete", json!({ "task_id": TASK }));
    assert!(failed && error["suggestion"].as_str().unwrap().contains("add force: true"), "{error}");
    let (failed, error) = call("task_get_context", json!({ "task_id": "../x" }));
    assert!(failed && error["code"] == "INVALID_REQUEST", "{error}");
    let (_, list) = call("task_list", json!({}));
    assert_eq!(list["tasks"][0]["holder"], "reviewer");
    // The CLI reads what the tools wrote.
    assert_eq!(checkout.task(&["list"]), list);
}

#[test]
fn repo_defaults_to_the_repository_of_the_checkout() {
    let checkout = Checkout::new();
    let start = |arguments: &[&str]| {
        let all = [&["session", "start", "--agent", "a", "--format", "json"], arguments].concat();
        checkout.home.run(&all).json()["data"]["session"]["repo"].clone()
    };
    assert_eq!(start(&[]), "local/shop");
    checkout.git(&["remote", "add", "origin", "git@example.com:acme/webshop.git"]);
    assert_eq!(start(&[]), "acme/webshop");
    assert_eq!(start(&["--repo", "other/name"]), "other/name");
    let saved = checkout.home.run_with_input(&["checkpoint", "save", "--session", "w"], b"{\"a\":1}");
    assert_eq!(saved.code, 0, "{saved:?}");
    let listed = checkout.home.run(&["checkpoint", "workflows", "--format", "json"]).json();
    assert_eq!(listed["data"]["workflows"][0]["repo"], "acme/webshop", "{listed}");
}
