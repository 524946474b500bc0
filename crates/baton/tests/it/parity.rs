//! Parity of the interfaces: the same calls through HTTP, MCP over stdio, MCP over HTTP and `--format json` return the
//! same outputs and error codes.

mod interfaces;
mod steps;

use std::collections::BTreeSet;

use baton_app::{routes, tools};
use baton_testkit::binary::Home;
use serde_json::{Value, json};

use interfaces::{Cli, Http, Interface, Mcp, McpOverHttp, Outcome, Step, masked};
use steps::*;

fn run_note_calls(script: &mut Script<'_>) {
    let mut call = |step: Step| script.call(&step);
    let started = call(start(json!({ "agent": "n", "venture": "noted", "repo": "o/n" }))).unwrap();
    let session_id = started["session_id"].as_str().unwrap().to_owned();
    let decision = json!({
        "session_id": session_id, "text": "Cookies ☕: the proxy drops headers", "kind": "decision", "file": "./src/a.rs",
    });
    let made = call(note(decision)).unwrap();
    assert_eq!((&made["note"]["file"], &made["note"]["agent"]), (&"src/a.rs".into(), &"n".into()));
    let id = made["note"]["id"].as_str().unwrap().to_owned();
    call(note(json!({ "text": "without a session", "repo": "o/n", "venture": "noted" }))).unwrap();
    let secret = format!("the key is AKIA{}", "A1B2C3D4E5F6G7H8");
    let redacted = call(note(json!({ "session_id": session_id, "text": secret }))).unwrap();
    assert_eq!(redacted["note"]["text"], "the key is [redacted:aws-access-key]");
    call(note(json!({ "session_id": session_id, "text": " " }))).unwrap_err();
    call(note(json!({ "session_id": UNKNOWN_SESSION, "text": "x" }))).unwrap_err();
    let all = call(notes(json!({ "venture": "noted" }))).unwrap();
    assert_eq!(all["notes"].as_array().unwrap().len(), 3);
    call(notes(json!({ "venture": "noted", "kind": "decision", "repo": "o/n", "limit": 1 }))).unwrap();
    call(edit_note(json!({ "note_id": id, "text": "Tokens after all", "kind": "rejected" }))).unwrap();
    let shown = call(show_note(&id)).unwrap();
    assert_eq!(
        (&shown["note"]["text"], &shown["note"]["kind"]),
        (&"Tokens after all".into(), &"rejected".into())
    );
    call(delete_note(&id)).unwrap();
    call(delete_note(&id)).unwrap_err();
    call(show_note(&id)).unwrap_err();
}

fn run_memory_calls(script: &mut Script<'_>) {
    let mut call = |step: Step| script.call(&step);
    let [old, new] = ["old", "new"].map(|text| {
        let made = call(note(json!({ "text": text, "repo": "o/n", "venture": "corrected" }))).unwrap();
        made["note"]["id"].as_str().unwrap().to_owned()
    });
    call(supersede(&old, &old)).unwrap_err();
    call(supersede(&old, "note_01HQXV3NK8ZZZZZZZZZZZZZZZZ")).unwrap_err();
    let marked = call(supersede(&old, &new)).unwrap();
    assert_eq!(marked["mark"]["kind"], "superseded");
    let left = call(notes(json!({ "venture": "corrected" }))).unwrap();
    assert_eq!(left["notes"].as_array().unwrap().len(), 1);
    call(reject(&new)).unwrap();
    call(reject("turn_999999")).unwrap_err();
}

const UNKNOWN_SESSION: &str = "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ";
const UNKNOWN_HANDOFF: &str = "ho_01HQXV3NK8ZZZZZZZZZZZZZZZZ";

/// Calls an interface and records the masked results.
struct Script<'a> {
    interface: &'a mut dyn Interface,
    outcomes: Vec<Outcome>,
}

impl Script<'_> {
    fn call(&mut self, step: &Step) -> Outcome {
        let outcome = self.interface.call(step);
        self.outcomes.push(outcome.as_ref().map(masked).map_err(Clone::clone));
        outcome
    }
}

/// Runs three scenarios with successes and errors on an interface and returns the results.
fn run_scenarios(interface: &mut dyn Interface) -> Vec<Outcome> {
    let mut script = Script { interface, outcomes: Vec::new() };
    run_session_calls(&mut script);
    run_handoff_calls(&mut script);
    run_checkpoint_calls(&mut script);
    run_recall_calls(&mut script);
    run_note_calls(&mut script);
    run_memory_calls(&mut script);
    script.outcomes
}

const UNKNOWN_CHECKPOINT: &str = "ckpt_01HQXV3NK8ZZZZZZZZZZZZZZZZ";

fn run_checkpoint_calls(script: &mut Script<'_>) {
    let mut call = |step: Step| script.call(&step);
    let long: String = (0..400).map(|number| format!("finding {number}; ")).collect();
    let context =
        json!({ "goal": "relay ☕", "notes": long, "plan": { "steps": [1, 2.5, null] }, "_contextSize": 1 });
    let first = call(save(json!({
        "sessionId": "w", "context": context, "metadata": { "name": "ü first", "tags": ["a", "b"] }, "repo": "o/r",
        "venture": "checks",
    })))
    .unwrap();
    let first = first["checkpointId"].as_str().unwrap().to_owned();
    let here = |more: Value| {
        let mut params = json!({ "sessionId": "w", "venture": "checks" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let other = json!({ "goal": "relay ☕", "notes": "short" });
    let second = call(save(here(json!({ "context": other })))).unwrap();
    let second = second["checkpointId"].as_str().unwrap().to_owned();
    assert_eq!(call(save(here(json!({ "context": other })))).unwrap()["status"], "SKIPPED_UNCHANGED");
    call(save(here(json!({ "context": other, "force": true })))).unwrap();
    let derived = json!({ "context": { "workflowId": "auth" }, "repo": "o/r", "venture": "checks" });
    call(save(derived)).unwrap();
    call(save(json!({ "sessionId": "default", "context": {} }))).unwrap();
    call(save(json!({ "sessionId": "../x", "context": {} }))).unwrap_err();
    call(save(json!({ "sessionId": "w", "context": [1] }))).unwrap_err();
    call(save(json!({ "sessionId": "w", "context": { "n": 9_007_199_254_740_993_u64 } }))).unwrap_err();
    call(save(json!({ "sessionId": "w", "context": {}, "agentSessionId": UNKNOWN_SESSION }))).unwrap_err();
    let aws = format!("AKIA{}", "A1B2C3D4E5F6G7H8");
    call(save(json!({ "sessionId": "w", "context": { "key": aws } }))).unwrap_err();
    let redacted = json!({ "sessionId": "redacted", "context": { "key": aws }, "redactSecrets": true });
    call(save(redacted)).unwrap();
    let shown = call(load(json!({ "sessionId": "redacted" }))).unwrap();
    assert!(shown["context"]["key"].as_str().unwrap().starts_with("[redacted:"), "{shown}");
    assert_eq!(call(load(json!({ "checkpointId": first }))).unwrap()["context"]["notes"], long);
    call(load_by_path(&first)).unwrap();
    call(load(here(json!({})))).unwrap();
    call(load(json!({ "checkpointId": first, "maxBytes": 1_000 }))).unwrap();
    call(load(json!({ "checkpointId": first, "maxTokens": 300, "level": "aggressive" }))).unwrap();
    call(load(json!({ "checkpointId": first, "maxBytes": 0 }))).unwrap_err();
    call(load(json!({ "checkpointId": first, "maxBytes": 9, "maxTokens": 9 }))).unwrap_err();
    call(load(json!({ "checkpointId": first, "sessionId": "w" }))).unwrap_err();
    call(load(json!({}))).unwrap_err();
    call(load(json!({ "checkpointId": UNKNOWN_CHECKPOINT }))).unwrap_err();
    call(load(json!({ "sessionId": "unknown" }))).unwrap_err();
    call(load_by_path("../x")).unwrap_err();
    call(list_checkpoints(here(json!({ "limit": 2, "offset": 1 })))).unwrap();
    call(list_checkpoints(here(json!({ "limit": 0 })))).unwrap_err();
    call(list_checkpoints(json!({ "sessionId": "w" }))).unwrap_err();
    assert_eq!(call(mark("default", "goal")).unwrap()["status"], "KEY_NOT_FOUND");
    call(save(json!({ "sessionId": "default", "context": { "goal": 1, "zebra": long } }))).unwrap();
    assert_eq!(call(mark("default", "zebra")).unwrap()["status"], "SUCCESS");
    call(mark("unknown", "zebra")).unwrap_err();
    call(mark("default", "")).unwrap_err();
    call(load(json!({ "sessionId": "default", "maxBytes": 100 }))).unwrap();
    call(explain(json!({ "sessionId": "default" }))).unwrap();
    call(explain(json!({ "checkpointId": first, "contextKey": "plan" }))).unwrap();
    call(explain(json!({ "checkpointId": first, "contextKey": "absent" }))).unwrap_err();
    call(diff(json!({ "from": first, "to": second }))).unwrap();
    call(diff(here(json!({})))).unwrap();
    call(diff(json!({ "from": first }))).unwrap_err();
    call(diff(json!({ "from": first, "to": UNKNOWN_CHECKPOINT }))).unwrap_err();
    call(workflows(json!({ "venture": "checks" }))).unwrap();
    call(workflows(json!({ "venture": "checks", "repo": "o/r", "name": "auth", "limit": 1, "offset": 0 })))
        .unwrap();
    call(workflows(json!({ "limit": 101 }))).unwrap_err();
    call(delete(&second)).unwrap();
    call(delete(&second)).unwrap_err();
    call(load_by_path(&second)).unwrap_err();
    call(delete("..")).unwrap_err();
    call(list_checkpoints(here(json!({})))).unwrap();
}

fn run_handoff_calls(script: &mut Script<'_>) {
    let mut call = |step: Step| script.call(&step);
    let venture = json!({ "venture": "relay" });
    assert_eq!(call(latest(venture.clone())).unwrap(), json!({ "handoff": null }));
    let started =
        call(start(json!({ "agent": "a", "venture": "relay", "repo": "o/r", "track": 2 }))).unwrap();
    let session_id = started["session_id"].as_str().unwrap().to_owned();
    let news = json!({ "session_id": session_id, "branch": "ü 🎈", "issue_number": 9, "meta": { "a": { "b": [1.5, null] } } });
    call(update(news)).unwrap();
    call(update(json!({ "session_id": session_id, "meta": { "a": { "b": null }, "c": "d" } }))).unwrap();
    call(update(json!({ "session_id": UNKNOWN_SESSION, "branch": "x" }))).unwrap_err();
    call(update(json!({ "session_id": session_id, "issue_number": -1 }))).unwrap_err();
    let shown = call(show(&session_id)).unwrap();
    assert_eq!(shown["session"]["meta"], json!({ "a": {}, "c": "d" }));
    call(show(UNKNOWN_SESSION)).unwrap_err();
    call(show("nonsense")).unwrap_err();
    let payload =
        json!({ "work_completed": [], "blockers": ["no key"], "next_actions": [], "extra": { "n": 1 } });
    let document = |summary: &str| {
        let mut handoff = json!({ "summary": summary, "to_agent": "qa", "status_label": "blocked" });
        handoff.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
        json!({ "session_id": session_id, "handoff": handoff })
    };
    let mut leaked = document(&format!("use AKIA{}", "A1B2C3D4E5F6G7H8"));
    call(create(leaked.clone())).unwrap_err();
    leaked["redact_secrets"] = true.into();
    call(create(leaked)).unwrap();
    let redacted = call(latest(venture.clone())).unwrap();
    assert_eq!(redacted["handoff"]["summary"], "use [redacted:aws-access-key]", "{redacted}");
    let left = call(create(document("first\nline ☕"))).unwrap();
    let handoff_id = left["handoff_id"].as_str().unwrap().to_owned();
    call(create(document("second"))).unwrap();
    call(create(document(""))).unwrap_err();
    call(create(json!({ "session_id": UNKNOWN_SESSION, "handoff": { "summary": "x" } }))).unwrap_err();
    call(latest(venture.clone())).unwrap();
    call(latest(
        json!({ "venture": "relay", "repo": "o/r", "track": 2, "issue_number": 9, "to_agent": "qa" }),
    ))
    .unwrap();
    call(latest(json!({ "venture": "relay", "track": 3 }))).unwrap();
    call(latest(json!({ "venture": "re lay" }))).unwrap_err();
    let page = call(handoffs(json!({ "venture": "relay", "limit": 1, "from_agent": "a" }))).unwrap();
    let cursor = page["pagination"]["next_cursor"].clone();
    let rest = call(handoffs(json!({ "venture": "relay", "limit": 1, "cursor": cursor }))).unwrap();
    assert_eq!(rest["handoffs"][0]["id"], handoff_id.as_str());
    call(handoffs(json!({ "venture": "relay", "limit": 201 }))).unwrap_err();
    call(handoffs(json!({ "venture": "relay", "cursor": "bad" }))).unwrap_err();
    call(ack(&handoff_id, "qa")).unwrap();
    call(ack(&handoff_id, "qa")).unwrap();
    call(ack(&handoff_id, "qa-2")).unwrap_err();
    call(ack(&handoff_id, "q a")).unwrap_err();
    call(ack(UNKNOWN_HANDOFF, "qa")).unwrap_err();
    call(show_handoff(&handoff_id)).unwrap();
    call(withdraw(&handoff_id)).unwrap();
    call(withdraw(&handoff_id)).unwrap();
    call(withdraw(UNKNOWN_HANDOFF)).unwrap_err();
    call(show_handoff(&handoff_id)).unwrap();
    call(handoffs(json!({ "venture": "relay" }))).unwrap();
    call(update(json!({ "session_id": session_id, "repo": "o/corrected" }))).unwrap();
    call(latest(json!({ "venture": "relay", "repo": "o/corrected" }))).unwrap();
    call(update(json!({ "session_id": session_id, "repo": "no-owner" }))).unwrap_err();
    call(end(json!({ "session_id": session_id }))).unwrap();
    call(show_handoff(UNKNOWN_HANDOFF)).unwrap_err();
    call(show_handoff("nonsense")).unwrap_err();
}

/// Searches what the other scenarios stored.
fn run_recall_calls(script: &mut Script<'_>) {
    let mut call = |step: Step| script.call(&step);
    let found = call(search(json!({ "q": "first checkpoint ü", "venture": "checks" }))).unwrap();
    let id = found["results"][0]["id"].as_str().unwrap().to_owned();
    call(search(json!({ "q": "done mostly", "kind": "handoff", "since": "7d", "limit": 3 }))).unwrap();
    call(search(json!({ "q": "\"what\" is the ☕ AND OR" }))).unwrap();
    call(search(json!({ "q": "first", "limit": 0 }))).unwrap_err();
    call(search(json!({ "q": "first", "kind": "other" }))).unwrap_err();
    call(search(json!({ "q": "first", "until": "never" }))).unwrap_err();
    call(timeline(json!({ "id": id, "limit": 2 }))).unwrap();
    call(timeline(json!({ "id": UNKNOWN_HANDOFF }))).unwrap_err();
    call(get_items(&id)).unwrap();
    call(get_items(UNKNOWN_HANDOFF)).unwrap_err();
}

fn run_session_calls(script: &mut Script<'_>) {
    let mut call = |step: Step| script.call(&step);
    let who = json!({
        "agent": "a-1", "venture": "v", "repo": "o/r", "track": 0, "issue_number": 7, "branch": "feature/ü 🎈",
        "commit_sha": "abc123", "client": "c", "client_version": "1", "client_session_id": "chat-1", "host": "h",
    });
    let started = call(start(who.clone())).unwrap();
    let id = started["session_id"].as_str().unwrap().to_owned();
    let resumed = call(start(who)).unwrap();
    assert_eq!(resumed["session_id"], started["session_id"]);
    call(start(json!({ "agent": "a-2", "venture": "v", "repo": "o/r" }))).unwrap();
    call(start(json!({ "agent": "a b", "venture": "v", "repo": "o/r" }))).unwrap_err();
    call(start(json!({ "agent": "a", "venture": "v", "repo": "no-owner" }))).unwrap_err();
    call(start(json!({ "agent": "a", "venture": "v", "repo": "o/r", "track": -1 }))).unwrap_err();
    call(heartbeat(&id)).unwrap();
    call(heartbeat("nonsense")).unwrap_err();
    call(heartbeat("sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ")).unwrap_err();
    call(list(json!({ "venture": "v", "repo": "o/r" }))).unwrap();
    call(list(json!({ "venture": "v", "limit": 1 }))).unwrap();
    call(list(json!({ "venture": "v", "track": "none" }))).unwrap();
    call(list(json!({ "venture": "v", "track": 0 }))).unwrap();
    call(list(json!({ "venture": "v", "limit": 0 }))).unwrap_err();
    call(list(json!({ "venture": "v", "cursor": "bad" }))).unwrap_err();
    let handoff = json!({
        "session_id": id, "summary": "done\nmostly", "status_label": "ready", "to_agent": "qa",
        "payload": { "work_completed": ["a"], "blockers": [], "next_actions": ["b"], "n": 1.5 },
    });
    let mut kept_open = handoff.clone();
    kept_open["keep_session_open"] = true.into();
    let left = call(end(kept_open)).unwrap();
    assert_eq!(left["ended_at"], Value::Null);
    call(heartbeat(&id)).unwrap();
    let aws = format!("AKIA{}", "A1B2C3D4E5F6G7H8");
    let leaked = json!({ "session_id": id, "summary": format!("use {aws}"), "keep_session_open": true });
    call(end(leaked.clone())).unwrap_err();
    let mut redacted = leaked;
    redacted["redact_secrets"] = true.into();
    call(end(redacted)).unwrap();
    call(end(handoff.clone())).unwrap();
    call(end(handoff)).unwrap();
    call(end(json!({ "session_id": id, "summary": "other" }))).unwrap_err();
    call(heartbeat(&id)).unwrap_err();
    call(end(json!({ "session_id": id, "summary": aws }))).unwrap_err();
    call(start(json!({ "agent": "a-3", "venture": "v", "repo": "o/r", "track": 0 }))).unwrap();
}

#[test]
fn every_interface_returns_the_same_results() {
    let binary = env!("CARGO_BIN_EXE_baton");
    let [http_home, mcp_home, mcp_http_home, cli_home] = [(); 4].map(|()| Home::new(binary));
    let over_http = run_scenarios(&mut Http(http_home.serve(), 0));
    let over_mcp = run_scenarios(&mut Mcp(mcp_home.mcp()));
    let over_mcp_http = run_scenarios(&mut McpOverHttp(mcp_http_home.serve()));
    assert_eq!(over_mcp, over_mcp_http);
    let on_cli = run_scenarios(&mut Cli(cli_home));
    for (number, ((http, mcp), cli)) in over_http.iter().zip(&over_mcp).zip(&on_cli).enumerate() {
        assert_eq!(http, mcp, "step {number} over MCP");
        assert_eq!(http, cli, "step {number} on the command line");
    }
    assert_eq!((over_http.len(), over_mcp.len()), (on_cli.len(), on_cli.len()));
}

/// Operations for hooks, workers and users that are not offered as tools.
const NO_TOOL: [&str; 19] = [
    "handoff.leave",
    "agent.list",
    "task.show",
    "hook.report",
    "transcript.import",
    "observation.import",
    "queue.stats",
    "queue.list",
    "queue.retry",
    "queue.purge",
    "worker.health",
    "context.read",
    "task.record",
    "request.list",
    "id.find",
    "memory.pin",
    "memory.restore",
    "memory.list",
    "memory.forget",
];

/// Verbs whose name differs from their operation.
const OTHER_VERBS: [(&str, &[&str]); 12] = [
    ("agent.list", &["doctor"]),
    ("task.show", &["task", "get-context"]),
    ("context.read", &["context"]),
    ("hook.report", &["hook"]),
    ("transcript.import", &["import", "claude-code"]),
    ("observation.import", &["import", "observations"]),
    ("session.summarize", &["summarize"]),
    ("worker.health", &["worker", "status"]),
    ("request.list", &["requests"]),
    ("recall.search", &["search"]),
    ("recall.timeline", &["timeline"]),
    ("recall.get", &["get"]),
];

/// Every operation with an HTTP route also has a tool and a verb. Tokens and maintenance are available only locally.
#[test]
fn every_operation_has_a_route_a_tool_and_a_verb() {
    let over_http: BTreeSet<&str> = routes().iter().map(|route| route.operation.name).collect();
    let over_mcp: BTreeSet<&str> = tools().iter().map(|tool| tool.operation.name).collect();
    let no_tool = BTreeSet::from(NO_TOOL);
    assert_eq!(over_http.difference(&no_tool).copied().collect::<BTreeSet<_>>(), over_mcp);
    assert!(no_tool.is_subset(&over_http));
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    // The task verbs call `task.record`; every verb with an id calls `id.find`.
    for name in over_http.into_iter().filter(|name| !["task.record", "id.find"].contains(name)) {
        let (noun, verb) = name.split_once('.').unwrap();
        let verb = verb.replace('_', "-");
        let own = OTHER_VERBS.iter().find(|(operation, _)| *operation == name);
        let words = own.map_or_else(|| vec![noun, verb.as_str()], |(_, words)| words.to_vec());
        let help = home.run(&[words.as_slice(), &["--help"]].concat());
        assert_eq!(help.code, 0, "baton {words:?}: {}", help.stderr);
    }
}
