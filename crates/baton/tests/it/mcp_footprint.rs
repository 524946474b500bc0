//! Size of what `baton mcp` adds to every chat, and the sets of tools.

use baton_testkit::binary::{Home, tool_answer};
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};
use crate::mcp_http::ask;
use crate::served::Served;

/// Limits of the default set.
const MAX_TOOLS: usize = 12;
const MAX_TOKENS: usize = 3_000;
/// Limit of server instructions in clients.
const MAX_INSTRUCTIONS_BYTES: usize = 2_048;

fn tools(home: &Home, arguments: &[&str]) -> Vec<Value> {
    let list = home.mcp_with(arguments).request("tools/list", &json!({}));
    list["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Counts the tokens of a definition as clients send it to a model: name, description and input schema.
fn tokens(tool: &Value) -> usize {
    let sent = json!({
        "name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"],
    });
    tiktoken_rs::o200k_base_singleton().encode_ordinary(&sent.to_string()).len()
}

#[test]
fn default_tools_are_few_and_small_in_a_checkout() {
    let checkout = Checkout::new();
    let tools = tools(&checkout.home, &[]);
    let sizes: Vec<(&str, usize)> =
        tools.iter().map(|tool| (tool["name"].as_str().unwrap(), tokens(tool))).collect();
    let total: usize = sizes.iter().map(|(_, tokens)| tokens).sum();
    assert!(total <= MAX_TOKENS, "{total} tokens: {sizes:?}");
    assert!(tools.len() <= MAX_TOOLS, "{:?}", names(&tools));
    for required in [
        "session_start",
        "session_end",
        "workflow_checkpoint_save",
        "workflow_checkpoint_load",
        "workflow_checkpoint_list",
        "workflow_mark_critical",
        "handoff",
        "task",
    ] {
        assert!(names(&tools).contains(&required), "{required} is missing");
    }
    let shown = |tool: &Value| json!({ "name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"] });
    let shown: Vec<Value> = tools.iter().map(shown).collect();
    insta::assert_json_snapshot!("mcp_default_tools", json!({ "tokens": total, "tools": shown }));
}

#[test]
fn input_schemas_have_no_patterns_titles_or_nulls() {
    fn check(tool: &Value, schema: &Value) {
        match schema {
            Value::Object(members) => {
                for (keyword, value) in members.iter().filter(|(name, _)| *name != "properties") {
                    assert!(
                        !["title", "pattern", "default"].contains(&keyword.as_str()),
                        "{tool}: {keyword}"
                    );
                    check(tool, value);
                }
                members.get("properties").and_then(Value::as_object).into_iter().flatten().for_each(
                    |(_, property)| {
                        check(tool, property);
                    },
                );
            }
            Value::Array(items) => items.iter().for_each(|item| check(tool, item)),
            Value::String(text) => assert_ne!(text, "null", "{tool}"),
            Value::Null => panic!("{tool}: null"),
            Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let checkout = Checkout::new();
    for arguments in [&[][..], &["--tools", "all"]] {
        tools(&checkout.home, arguments).iter().for_each(|tool| check(&tool["name"], &tool["inputSchema"]));
    }
}

#[test]
fn instructions_fit_the_limit_of_clients_and_respect_sessions_of_hooks() {
    let mut client = Home::new(env!("CARGO_BIN_EXE_baton")).mcp_before_handshake();
    let instructions = client.initialize("2025-11-25")["instructions"].as_str().unwrap().to_owned();
    assert!(instructions.len() <= MAX_INSTRUCTIONS_BYTES, "{} bytes", instructions.len());
    assert!(instructions.contains("do not call session_start"), "{instructions}");
}

#[test]
fn sets_of_tools_can_be_selected() {
    let checkout = Checkout::new();
    let all = tools(&checkout.home, &["--tools", "all"]);
    for name in [
        "active_sessions",
        "handoff_latest",
        "workflow_list",
        "task_init_context",
        "observation_show",
        "handoff",
    ] {
        assert!(names(&all).contains(&name), "{name} is missing");
    }
    let checkpoints = tools(&checkout.home, &["--tools", "checkpoints"]);
    assert!(
        names(&checkpoints).iter().all(|name| name.starts_with("workflow_")),
        "{:?}",
        names(&checkpoints)
    );
    let both = tools(&checkout.home, &["--tools", "default,tasks"]);
    assert!(names(&both).contains(&"session_start") && names(&both).contains(&"task_run_qa"));
    let refused = checkout.home.run(&["mcp", "--tools", "everything"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("use default, all, sessions, checkpoints, tasks or memory"),
        "{refused:?}"
    );

    let served = Served::sqlite();
    let list = ask(&served, &[], "tools/list", &json!({}));
    assert!(list["result"]["tools"].as_array().unwrap().len() <= MAX_TOOLS);
}

#[test]
fn a_server_lists_the_tools_that_the_address_selects() {
    let served = Served::sqlite();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let get = |query: &str| served.send("POST", &format!("/mcp{query}"), &headers, list.as_bytes()).json();
    let listed = get("?tools=sessions%2Ccheckpoints");
    let listed = listed["result"]["tools"].as_array().unwrap();
    assert!(names(listed).contains(&"handoff_list") && names(listed).contains(&"workflow_list"));
    assert_eq!(get("?tools=nothing")["error"]["code"], -32602);
}

#[test]
fn grouped_tools_run_the_tool_of_their_action() {
    let checkout = Checkout::new();
    let mut client = checkout.home.mcp();
    let session = tool_answer(&client.call("session_start", &json!({ "agent": "a" })))["session_id"].clone();
    let handoff = json!({ "summary": "half done", "next_actions": ["finish"] });
    let created = tool_answer(
        &client.call("handoff", &json!({ "action": "create", "session_id": session, "handoff": handoff })),
    );
    let id = created["handoff_id"].clone();
    let shown = tool_answer(&client.call("handoff", &json!({ "action": "show", "handoff_id": id })));
    assert_eq!(shown["handoff"]["summary"], "half done", "{shown}");
    let by_name = tool_answer(&client.call("handoff_show", &json!({ "handoff_id": id })));
    assert_eq!(by_name, shown, "tools that are not listed can be called by name");
    let listed = tool_answer(&client.call("handoff", &json!({ "action": "list", "limit": "1" })));
    assert_eq!(listed["handoffs"][0]["id"], id, "a number may be sent as text: {listed}");
    let acknowledged = tool_answer(&client.call("handoff", &json!({ "action": "ack", "handoff_id": id })));
    assert_eq!(acknowledged["acknowledged_by"], "baton-testkit", "{acknowledged}");

    let begun = tool_answer(&client.call("task", &json!({ "action": "init_context", "task_id": TASK })));
    assert_eq!(begun["task_id"], TASK, "{begun}");
    let by_action =
        [(json!({}), "add action, for example"), (json!({ "action": "remove" }), "set action to")];
    for (arguments, suggestion) in by_action {
        let error = tool_answer(&client.call("task", &arguments));
        assert!(error["message"].as_str().unwrap().starts_with("action: must be one of list, "), "{error}");
        assert!(error["suggestion"].as_str().unwrap().starts_with(suggestion), "{error}");
    }
    let error = tool_answer(&client.call("task", &json!({ "action": "get_context" })));
    assert_eq!(error["message"], "task_id: is missing", "{error}");
}

#[test]
fn workflows_are_named_by_session_id_or_workflow_id() {
    let checkout = Checkout::new();
    let mut client = checkout.home.mcp();
    let saved = client
        .call("workflow_checkpoint_save", &json!({ "workflowId": "plan", "context": { "goal": "ship" } }));
    assert_eq!(tool_answer(&saved)["sessionId"], "plan");
    for (tool, more) in [
        ("workflow_checkpoint_load", json!({})),
        ("workflow_checkpoint_list", json!({ "limit": "5" })),
        ("workflow_mark_critical", json!({ "contextKey": "goal" })),
        ("workflow_explain", json!({})),
    ] {
        let mut arguments = more.as_object().unwrap().clone();
        arguments.insert("workflowId".into(), "plan".into());
        let result = client.call(tool, &Value::Object(arguments));
        assert_ne!(result["isError"], json!(true), "{tool}: {result}");
    }
    let both = json!({ "workflowId": "plan", "sessionId": "plan" });
    assert_eq!(client.call("workflow_checkpoint_load", &both)["isError"], json!(true));
}
