//! Answers for coding agents: a model that calls tools in a fixed order and then closes its turn.
//!
//! The number of tool results in a request determines the step, so the server needs no state. Implements the streaming
//! APIs that the agents use: Anthropic Messages, OpenAI Responses and chat completions, and Gemini.

use serde_json::{Value, json};

use super::http::{Request, Response};

/// What the model does in each turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentScript {
    /// Tool calls, one for each request.
    pub calls: Vec<AgentCall>,
    /// Closing message.
    pub closing: String,
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentCall {
    /// Runs a command with the shell tool of the agent.
    Shell(String),
    /// Calls the tool whose name ends with this text, with JSON arguments.
    Tool(String, String),
}

/// Names of the shell tool in different agents.
const SHELL_TOOLS: [&str; 5] = ["Bash", "bash", "exec_command", "shell_command", "run_shell_command"];

/// What the model does in one request: calls a tool with arguments, or closes its turn.
enum Step {
    Call(String, Value),
    Close,
}

/// Answers a request of a coding agent.
pub(super) fn answer_agent(script: &AgentScript, request: &Request) -> Response {
    let path = request.path.split('?').next().unwrap_or_default();
    let body = request.json();
    if path.ends_with("/v1/messages") {
        let results = count(&body["messages"], |block| block["type"] == "tool_result");
        messages(&script.step(results, &names(&body["tools"], "name")), script, &body)
    } else if path.ends_with("/responses") {
        let is_result =
            |item: &Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
        let results = body["input"].as_array().into_iter().flatten().filter(|item| is_result(item)).count();
        responses(&script.step(results, &response_tools(&body["tools"])), script, &body)
    } else if path.ends_with("/chat/completions") {
        let results = body["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|message| message["role"] == "tool")
            .count();
        let tools: Vec<Value> =
            body["tools"].as_array().into_iter().flatten().map(|tool| tool["function"].clone()).collect();
        completions(&script.step(results, &names(&tools.into(), "name")), script, results)
    } else if path.ends_with("GenerateContent") || path.ends_with(":generateContent") {
        let results = count(&body["contents"], |part| part.get("functionResponse").is_some());
        let tools = body["tools"].as_array().into_iter().flatten();
        let tools: Vec<Value> = tools
            .flat_map(|tool| tool["functionDeclarations"].as_array().cloned().unwrap_or_default())
            .collect();
        gemini(&script.step(results, &names(&tools.into(), "name")), script, path.contains("stream"))
    } else {
        // Agents list models and count tokens; empty lists and small numbers satisfy them.
        json_response(&json!({ "data": [], "models": [], "input_tokens": 1, "totalTokens": 1 }))
    }
}

impl AgentScript {
    /// Returns the step after a number of tool results. A request that does not offer the tool, for example one for a
    /// title, gets the closing message.
    fn step(&self, results: usize, tools: &[String]) -> Step {
        let call = match self.calls.get(results) {
            Some(AgentCall::Shell(command)) => {
                tools.iter().find(|tool| SHELL_TOOLS.contains(&tool.as_str())).map(|tool| {
                    (
                        tool.clone(),
                        json!({ "command": command, "cmd": command, "description": "Run a command." }),
                    )
                })
            }
            Some(AgentCall::Tool(ending, arguments)) => tools
                .iter()
                .find(|tool| tool.ends_with(ending))
                .map(|tool| (tool.clone(), serde_json::from_str(arguments).unwrap_or_default())),
            None => None,
        };
        call.map_or(Step::Close, |(tool, arguments)| {
            // Agents reject arguments that the tool does not have.
            let unknown = if tool == "exec_command" { "command" } else { "cmd" };
            let mut arguments = arguments;
            if let Some(arguments) = arguments.as_object_mut() {
                arguments.remove(unknown);
                if tool == "exec_command" {
                    arguments.remove("description");
                }
            }
            Step::Call(tool, arguments)
        })
    }
}

/// Counts the blocks of all messages for which a condition holds.
fn count(messages: &Value, condition: impl Fn(&Value) -> bool) -> usize {
    let messages = messages.as_array().into_iter().flatten();
    let blocks = messages.flat_map(|message| {
        let blocks = message.get("content").or_else(|| message.get("parts")).and_then(Value::as_array);
        blocks.into_iter().flatten()
    });
    blocks.filter(|block| condition(block)).count()
}

fn names(tools: &Value, member: &str) -> Vec<String> {
    let tools = tools.as_array().into_iter().flatten();
    tools.filter_map(|tool| tool[member].as_str().map(str::to_owned)).collect()
}

/// Returns the names of tools of the Responses API, including those in namespaces.
fn response_tools(tools: &Value) -> Vec<String> {
    let mut found = names(tools, "name");
    for space in tools.as_array().into_iter().flatten().filter(|tool| tool["type"] == "namespace") {
        found.extend(names(&space["tools"], "name"));
    }
    found
}

fn messages(step: &Step, script: &AgentScript, request: &Value) -> Response {
    let (block, delta, reason) = match step {
        Step::Call(tool, arguments) => (
            json!({ "type": "tool_use", "id": format!("toolu_{}", call_number(arguments)), "name": tool, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
            "tool_use",
        ),
        Step::Close => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": script.closing }),
            "end_turn",
        ),
    };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 },
    });
    if request["stream"] != true {
        let mut message = message;
        message["content"] = json!([{ "type": "text", "text": script.closing }]);
        message["stop_reason"] = "end_turn".into();
        return json_response(&message);
    }
    stream(&[
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
                "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ])
}

fn responses(step: &Step, script: &AgentScript, request: &Value) -> Response {
    let item = match step {
        Step::Call(tool, arguments) => {
            let id = call_number(arguments);
            let mut call = json!({
                "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": tool,
                "arguments": arguments.to_string(),
            });
            let spaces =
                request["tools"].as_array().into_iter().flatten().filter(|tool| tool["type"] == "namespace");
            if let Some(space) =
                spaces.into_iter().find(|space| names(&space["tools"], "name").contains(tool))
            {
                call["namespace"] = space["name"].clone();
            }
            call
        }
        Step::Close => json!({
            "type": "message", "id": "m_1", "role": "assistant",
            "content": [{ "type": "output_text", "text": script.closing }],
        }),
    };
    let usage = json!({
        "input_tokens": 1, "input_tokens_details": null, "output_tokens": 1, "output_tokens_details": null,
        "total_tokens": 2,
    });
    stream(&[
        json!({ "type": "response.created", "response": { "id": "resp_1" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": "resp_1", "usage": usage } }),
    ])
}

fn completions(step: &Step, script: &AgentScript, results: usize) -> Response {
    let (delta, reason) = match step {
        Step::Call(tool, arguments) => {
            let function = json!({ "name": tool, "arguments": arguments.to_string() });
            let call = json!({ "index": 0, "id": format!("call_{results}"), "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
        Step::Close => (json!({ "role": "assistant", "content": script.closing }), "stop"),
    };
    let chunk = |delta: Value, reason: Value| {
        json!({ "id": "c_1", "object": "chat.completion.chunk", "created": 1, "model": "fake",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
    };
    let events = [chunk(delta, Value::Null), chunk(json!({}), reason.into())];
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Response::stream(text + "data: [DONE]\n\n")
}

fn gemini(step: &Step, script: &AgentScript, is_stream: bool) -> Response {
    let part = match step {
        Step::Call(tool, arguments) => json!({ "functionCall": { "name": tool, "args": arguments } }),
        Step::Close => json!({ "text": script.closing }),
    };
    let answer = json!({
        "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 },
    });
    if is_stream { Response::stream(format!("data: {answer}\r\n\r\n")) } else { json_response(&answer) }
}

/// Returns a number for the id of a call. The same arguments have the same number.
fn call_number(arguments: &Value) -> usize {
    arguments
        .to_string()
        .bytes()
        .fold(7, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)) % 1_000_003)
}

fn stream(events: &[Value]) -> Response {
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    Response::stream(events.iter().map(event).collect())
}

fn json_response(body: &Value) -> Response {
    Response { status: 200, headers: Vec::new(), body: body.to_string() }
}
