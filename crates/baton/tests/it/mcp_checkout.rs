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
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "session_start").unwrap();
    let required = tool["inputSchema"]["required"].as_array().unwrap();
    assert!(required.contains(&json!("agent")) && !required.contains(&json!("repo")), "{required:?}");
}

#[test]
fn outside_a_checkout_session_start_requires_a_repository() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let mut client = home.mcp();
    let error = tool_answer(&client.call("session_start", &json!({ "agent": "a" })));
    assert_eq!(error["code"], "INVALID_REQUEST", "{error}");
    assert!(error["message"].as_str().unwrap().contains("repo"), "{error}");
}
