//! `baton mcp` started in a checkout: the repository defaults to that of the checkout, as on the command line.

use baton_testkit::binary::{Home, tool_answer};
use serde_json::{Value, json};

use crate::checkout::Checkout;

fn checkout_of_webshop() -> Checkout {
    let checkout = Checkout::new();
    checkout.git(&["remote", "add", "origin", "git@github.com:acme/webshop.git"]);
    checkout
}

/// Saves a context named `plan` with the command line and returns its workflow.
fn save_with_cli(home: &Home, step: u32) -> Value {
    let context = json!({ "workflowId": "plan", "step": step }).to_string();
    let arguments = ["checkpoint", "save", "--format", "json"];
    let saved = home.run_with_input(&arguments, context.as_bytes());
    assert_eq!(saved.code, 0, "{saved:?}");
    saved.json()["data"]["sessionId"].clone()
}

#[test]
fn a_save_over_mcp_continues_the_workflow_of_the_command_line() {
    let checkout = checkout_of_webshop();
    let by_cli = save_with_cli(&checkout.home, 1);
    let mut client = checkout.home.mcp();
    let mut save = |more: Value| {
        let mut arguments = json!({ "context": { "workflowId": "plan", "step": 2 } });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool_answer(&client.call("workflow_checkpoint_save", &arguments))["sessionId"].clone()
    };
    assert_eq!(save(json!({})), by_cli);
    assert_eq!(save(json!({ "repo": null })), by_cli);
    assert_eq!(save(json!({ "repo": "acme/webshop" })), by_cli);
    assert_ne!(save(json!({ "repo": "acme/other" })), by_cli, "an explicit repository takes precedence");
    let listed = tool_answer(&client.call("workflow_list", &json!({ "repo": "acme/webshop" })));
    assert_eq!(listed["workflows"].as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn session_start_uses_the_repository_of_the_checkout() {
    let checkout = checkout_of_webshop();
    let mut client = checkout.home.mcp();
    let mut start = |arguments: Value| tool_answer(&client.call("session_start", &arguments));
    assert_eq!(start(json!({ "agent": "a" }))["session"]["repo"], "acme/webshop");
    assert_eq!(start(json!({ "agent": "a", "repo": "acme/other" }))["session"]["repo"], "acme/other");
}

#[test]
fn outside_a_checkout_the_folder_names_the_repository() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let repo =
        tool_answer(&home.mcp().call("session_start", &json!({ "agent": "a" })))["session"]["repo"].clone();
    assert!(repo.as_str().unwrap().starts_with("local/"), "{repo}");
}

#[test]
fn a_session_is_started_without_any_argument() {
    let checkout = checkout_of_webshop();
    let mut client = checkout.home.mcp_before_handshake();
    let client_info = json!({ "name": "codex-mcp-client", "version": "0.166.0" });
    client.request(
        "initialize",
        &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info }),
    );
    client.send_line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let session = tool_answer(&client.call("session_start", &json!({})))["session"].clone();
    assert_eq!((&session["agent"], &session["client"]), (&json!("codex"), &json!("codex")));
    assert_eq!((&session["client_version"], &session["repo"]), (&json!("0.166.0"), &json!("acme/webshop")));
    let active = tool_answer(&client.call("active_sessions", &json!({})));
    assert_eq!(active["sessions"][0]["id"], session["id"], "{active}");
    let latest = tool_answer(&client.call("handoff", &json!({ "action": "latest" })));
    assert_eq!(latest["handoff"], Value::Null, "{latest}");

    let home = checkout.home.with("BATON_AGENT", "reviewer-2");
    let session = tool_answer(&home.mcp().call("session_start", &json!({})))["session"].clone();
    assert_eq!(session["agent"], "reviewer-2", "the configured agent takes precedence");
}
