//! One operation, every face: the same fixture through HTTP, MCP over stdio and `--format json` gives the same output
//! and the same error code.

use baton_testkit::binary::{Home, McpClient, ServerProcess};
use serde_json::{Value, json};

/// What a face answered: the output, or the error code.
type Outcome = Result<Value, String>;

trait Face {
    fn call(&mut self, step: &Step) -> Outcome;
}

/// One call of a scenario, spelled for each face.
struct Step {
    http: (&'static str, &'static str),
    tool: &'static str,
    verb: &'static [&'static str],
    params: Value,
    /// The parameters that a verb takes by position.
    positional: &'static [&'static str],
}

struct Http(ServerProcess);
struct Mcp(McpClient);
struct Cli(Home);

impl Face for Http {
    fn call(&mut self, step: &Step) -> Outcome {
        let (method, path) = step.http;
        let answer = if method == "GET" {
            let pairs: Vec<String> = step
                .params
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    format!("{name}={}", text.replace('/', "%2F").replace(' ', "%20"))
                })
                .collect();
            self.0.get(&format!("{path}?{}", pairs.join("&")))
        } else {
            self.0.post(path, &step.params)
        };
        let body = answer.json();
        if answer.status == 200 { Ok(body) } else { Err(body["error"].as_str().unwrap().to_owned()) }
    }
}

impl Face for Mcp {
    fn call(&mut self, step: &Step) -> Outcome {
        let result = self.0.call(step.tool, &step.params);
        let body = result["structuredContent"].clone();
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, body, "text and structured content say the same");
        if result["isError"] == true { Err(body["code"].as_str().unwrap().to_owned()) } else { Ok(body) }
    }
}

impl Face for Cli {
    fn call(&mut self, step: &Step) -> Outcome {
        let mut arguments: Vec<String> = step.verb.iter().map(|&word| word.to_owned()).collect();
        arguments.extend(["--format".into(), "json".into()]);
        for (name, value) in step.params.as_object().unwrap() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if !step.positional.contains(&name.as_str()) {
                arguments.push(format!("--{}={text}", flag(name)));
            }
        }
        for name in step.positional {
            arguments.push(step.params[*name].as_str().unwrap().to_owned());
        }
        let finished = self.0.run(&arguments);
        let body = finished.json();
        assert_eq!(body["success"] == true, finished.code == 0, "{body}");
        if finished.code == 0 {
            Ok(body["data"].clone())
        } else {
            Err(body["error"]["code"].as_str().unwrap().into())
        }
    }
}

fn flag(param: &str) -> String {
    match param {
        "issue_number" => "issue".into(),
        "commit_sha" => "commit".into(),
        "status_label" => "status".into(),
        other => other.replace('_', "-"),
    }
}

/// Replaces what differs between two runs of the same thing: ids, times and drawn intervals.
fn masked(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| {
                let varies = name.ends_with("_at")
                    || name.ends_with("_id")
                    || ["id", "heartbeat_interval_seconds", "next_cursor"].contains(&name.as_str());
                let value = if varies && !value.is_null() { json!("<varies>") } else { masked(value) };
                (name.clone(), value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(masked).collect(),
        other => other.clone(),
    }
}

fn start(params: Value) -> Step {
    Step {
        http: ("POST", "/sod"),
        tool: "session_start",
        verb: &["session", "start"],
        params,
        positional: &[],
    }
}

fn heartbeat(session_id: &str) -> Step {
    Step {
        http: ("POST", "/heartbeat"),
        tool: "session_heartbeat",
        verb: &["session", "heartbeat"],
        params: json!({ "session_id": session_id }),
        positional: &["session_id"],
    }
}

fn end(params: Value) -> Step {
    Step {
        http: ("POST", "/eod"),
        tool: "session_end",
        verb: &["session", "end"],
        params,
        positional: &["session_id"],
    }
}

fn list(params: Value) -> Step {
    Step {
        http: ("GET", "/active"),
        tool: "active_sessions",
        verb: &["session", "list"],
        params,
        positional: &[],
    }
}

/// A scenario with its happy path and its errors, as the outcomes that a face gave.
fn play(face: &mut dyn Face) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut call = |step: Step| {
        let outcome = face.call(&step);
        outcomes.push(outcome.as_ref().map(masked).map_err(Clone::clone));
        outcome
    };
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
    call(list(json!({ "venture": "v", "limit": 0 }))).unwrap_err();
    call(list(json!({ "venture": "v", "cursor": "bad" }))).unwrap_err();
    let handoff = json!({
        "session_id": id, "summary": "done\nmostly", "status_label": "ready", "to_agent": "qa",
        "payload": { "work_completed": ["a"], "blockers": [], "next_actions": ["b"], "n": 1.5 },
    });
    call(end(handoff.clone())).unwrap();
    call(end(handoff)).unwrap();
    call(end(json!({ "session_id": id, "summary": "other" }))).unwrap_err();
    call(heartbeat(&id)).unwrap_err();
    let aws = format!("AKIA{}", "A1B2C3D4E5F6G7H8");
    call(end(json!({ "session_id": id, "summary": aws }))).unwrap_err();
    call(start(json!({ "agent": "a-3", "venture": "v", "repo": "o/r", "track": 0 }))).unwrap();
    outcomes
}

#[test]
fn every_face_answers_the_same() {
    let binary = env!("CARGO_BIN_EXE_baton");
    let (http_home, mcp_home, cli_home) = (Home::new(binary), Home::new(binary), Home::new(binary));
    let over_http = play(&mut Http(http_home.serve()));
    let over_mcp = play(&mut Mcp(mcp_home.mcp()));
    let on_cli = play(&mut Cli(cli_home));
    for (number, ((http, mcp), cli)) in over_http.iter().zip(&over_mcp).zip(&on_cli).enumerate() {
        assert_eq!(http, mcp, "step {number} over MCP");
        // Another credential stands behind each face's session.
        assert_eq!(http, cli, "step {number} on the command line");
    }
    assert_eq!((over_http.len(), over_mcp.len()), (on_cli.len(), on_cli.len()));
}
