//! `baton mcp` started in a checkout: the repository defaults to the repository of the checkout, as on the
//! command line.

use baton_testkit::binary::{Home, McpClient, tool_answer};
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

/// Reports an event of Claude Code in the checkout.
fn hook(checkout: &Checkout, event: &str, chat: &str) -> String {
    let report = json!({ "session_id": chat, "cwd": checkout.root(), "prompt": "Make it fast" });
    let arguments = ["hook", event, "--client", "claude-code"];
    let done = checkout.home.run_with_input(&arguments, report.to_string().as_bytes());
    assert_eq!(done.code, 0, "{done:?}");
    done.stdout
}

fn claude(checkout: &Checkout) -> McpClient {
    let mut client = checkout.home.mcp_before_handshake();
    let client_info = json!({ "name": "claude-code", "version": "2.1.325" });
    client.request(
        "initialize",
        &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info }),
    );
    client.send_line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client
}

fn live(checkout: &Checkout) -> Vec<Value> {
    let listed = checkout.home.run(&["session", "list", "--repo", "acme/webshop", "--format", "json"]);
    listed.json()["data"]["sessions"].as_array().unwrap().clone()
}

#[test]
fn context_resource_does_not_list_the_session_of_the_client_as_another_agent() {
    let checkout = checkout_of_webshop();
    let mut client = claude(&checkout);
    let session = tool_answer(&client.call("session_start", &json!({})))["session_id"].clone();
    checkout.home.run(&["session", "start", "--agent", "other-1", "--repo", "acme/webshop"]);
    let read = client.request("resources/read", &json!({ "uri": "baton://context" }));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    let agents = text.split_once("Other active agents:").unwrap().1;
    assert!(agents.contains("other-1") && !agents.contains(session.as_str().unwrap()), "{text}");
}

#[test]
fn mcp_uses_the_session_that_the_hooks_of_the_same_client_opened() {
    let checkout = checkout_of_webshop();
    hook(&checkout, "session-start", "chat-1");
    let session = live(&checkout)[0]["id"].clone();
    let mut client = claude(&checkout);
    for arguments in [json!({}), json!({ "agent": "claude-1" })] {
        let started = tool_answer(&client.call("session_start", &arguments));
        assert_eq!((&started["session_id"], &started["status"]), (&session, &json!("resumed")), "{started}");
        assert_eq!((&started["active_sessions"], &started["warning"]), (&json!([]), &Value::Null));
    }
    let invalid = tool_answer(&client.call("session_start", &json!({ "agent": 7 })));
    assert_eq!(invalid["code"], "INVALID_REQUEST", "a live session does not hide it: {invalid}");
    let noted = tool_answer(&client.call("note", &json!({ "text": "Use WAL", "kind": "decision" })));
    assert_eq!((&noted["note"]["session_id"], &noted["note"]["repo"]), (&session, &json!("acme/webshop")));
    let saved = tool_answer(&client.call("workflow_checkpoint_save", &json!({ "context": { "step": 1 } })));
    let handoff = json!({ "action": "create", "handoff": { "summary": "half done" } });
    let created = tool_answer(&client.call("handoff", &handoff));
    assert_eq!(created["session_id"], session, "{created}");
    let show = json!({ "action": "show", "handoff_id": created["handoff_id"] });
    let shown = tool_answer(&client.call("handoff", &show));
    assert_eq!(
        shown["handoff"]["checkpoint_id"], saved["checkpointId"],
        "the checkpoint records the session"
    );
    assert_eq!(tool_answer(&client.call("session_heartbeat", &json!({})))["session_id"], session);
    let ended = tool_answer(&client.call("session_end", &json!({ "handoff": { "summary": "done" } })));
    assert_eq!(ended["session_id"], session, "{ended}");
    assert_eq!(live(&checkout), Vec::<Value>::new(), "there was only one session");
    let error = tool_answer(&client.call("session_heartbeat", &json!({})));
    assert_eq!(error["code"], "SESSION_NOT_FOUND", "{error}");
}

#[test]
fn the_newest_session_of_the_same_program_is_used_and_others_are_not() {
    let checkout = checkout_of_webshop();
    hook(&checkout, "session-start", "chat-1");
    hook(&checkout, "session-start", "chat-2");
    let mut client = claude(&checkout);
    let started = tool_answer(&client.call("session_start", &json!({})));
    assert_eq!(started["session"]["client_session_id"], "chat-2", "{started}");
    let others = started["active_sessions"].as_array().unwrap();
    assert_eq!(others.len(), 1, "another chat of the same program is another session: {others:?}");
    let other = tool_answer(&checkout.home.mcp().call("session_start", &json!({ "agent": "codex-1" })));
    assert_eq!(other["status"], "created", "{other}");
    assert_eq!(other["session"]["client_session_id"], Value::Null);
}

#[test]
fn a_repository_that_differs_from_the_checkout_is_questioned() {
    let checkout = checkout_of_webshop();
    let mut client = claude(&checkout);
    let started = tool_answer(&client.call("session_start", &json!({ "repo": "acme/other" })));
    let warning = started["warning"].as_str().unwrap();
    assert!(warning.contains("acme/other") && warning.contains("acme/webshop"), "{warning}");
    assert!(warning.contains("(baton session update SESSION --repo acme/webshop)"), "{warning}");
    let correct = json!({ "session_id": started["session_id"], "repo": "acme/webshop" });
    tool_answer(&client.call("session_update", &correct));
    let again = tool_answer(&client.call("session_start", &json!({})));
    assert_eq!((&again["session_id"], &again["warning"]), (&started["session_id"], &Value::Null));
}

#[test]
fn the_command_line_uses_the_live_session_of_the_checkout() {
    let checkout = checkout_of_webshop();
    let run = |arguments: &[&str]| {
        let finished = checkout.home.run(&[arguments, &["--format", "json"]].concat());
        assert_eq!(finished.code, 0, "{finished:?}");
        finished.json()["data"].clone()
    };
    assert_eq!(checkout.home.run(&["session", "heartbeat"]).code, 2, "there is no session");
    let alone = run(&["note", "Without a session"]);
    assert_eq!(
        (&alone["note"]["session_id"], &alone["note"]["repo"]),
        (&Value::Null, &json!("acme/webshop"))
    );
    hook(&checkout, "user-prompt-submit", "chat-1");
    let session = live(&checkout)[0]["id"].clone();
    assert_eq!(run(&["note", "Use WAL", "--kind", "decision"])["note"]["session_id"], session);
    assert_eq!(run(&["session", "heartbeat"])["session_id"], session);
    assert_eq!(run(&["session", "update", "--branch", "topic"])["session_id"], session);
    assert_eq!(run(&["turn", "list"])["turns"][0]["prompt"], "Make it fast");
    let saved = checkout.home.run_with_input(&["checkpoint", "save", "--format", "json"], br#"{"step":1}"#);
    let saved = saved.json()["data"]["checkpointId"].clone();
    let created =
        run(&["handoff", "create", "--summary", "half done", "--gotcha", "UTC", "--task", "TASK-1"]);
    let shown = run(&["handoff", "show", created["handoff_id"].as_str().unwrap()])["handoff"].clone();
    assert_eq!((&shown["session_id"], &shown["checkpoint_id"]), (&session, &saved));
    assert_eq!(shown["payload"], json!({ "gotchas": ["UTC"], "references": { "task": "TASK-1" } }));
    let ended = run(&["session", "end"]);
    assert_eq!((&ended["session_id"], &ended["handoff_id"]), (&session, &Value::Null));
    assert_eq!(live(&checkout), Vec::<Value>::new());

    hook(&checkout, "user-prompt-submit", "chat-1");
    let session = live(&checkout)[0]["id"].clone();
    let inside = checkout.home.with("CLAUDECODE", "1");
    let started = inside.run(&["session", "start", "--agent", "claude-1", "--format", "json"]).json();
    assert_eq!(started["data"]["session_id"], session, "{started}");
}
