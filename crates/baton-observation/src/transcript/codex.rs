//! Transcripts of Codex.
//!
//! Every line has a `type` and a `payload`. Lines of type `response_item` hold messages, tool calls and their results.

use serde_json::Value;

use super::{Line, TranscriptParser, text_of};

/// Starts of user messages that the client wrote.
const CLIENT_TEXTS: [&str; 6] = [
    "<environment_context>",
    "<user_instructions>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<hook_",
    "# AGENTS.md instructions",
];

impl TranscriptParser {
    pub(super) fn codex_line(&mut self, line: &Value) -> Line {
        let (Some(kind), payload) = (line["type"].as_str(), &line["payload"]) else { return Line::Foreign };
        if !payload.is_object() {
            return Line::Foreign;
        }
        self.record_time_and_folder(line.get("timestamp"), payload.get("cwd"));
        match kind {
            "session_meta" => self.session_meta(payload),
            "response_item" => return self.response_item(payload),
            "event_msg" if payload["type"] == "turn_aborted" => self.interrupt_turn(),
            "event_msg" | "turn_context" | "compacted" => {}
            _ if line["timestamp"].is_string() => {}
            _ => return Line::Foreign,
        }
        Line::Known
    }

    fn session_meta(&mut self, payload: &Value) {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        // A forked chat repeats the meta line of its origin; the first line counts.
        if self.facts.session_id.is_none() {
            self.facts.session_id = text(&payload["id"]);
            self.facts.branch = text(&payload["git"]["branch"]);
            self.facts.repository_url = text(&payload["git"]["repository_url"]);
            self.is_subagent = payload["source"].get("subagent").is_some();
        }
    }

    fn response_item(&mut self, payload: &Value) -> Line {
        let id = payload["call_id"].as_str().unwrap_or_default();
        match payload["type"].as_str().unwrap_or_default() {
            "message" => return self.message(payload),
            "function_call" | "custom_tool_call" => {
                let name = payload["name"].as_str().unwrap_or_default();
                let input = match payload["arguments"].as_str() {
                    Some(text) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
                    None => serde_json::json!({ "input": payload["input"] }),
                };
                if !id.is_empty() && !name.is_empty() {
                    self.record_call(id, name, input);
                }
            }
            "local_shell_call" => self.record_call(id, "shell", payload["action"].clone()),
            "function_call_output" | "custom_tool_call_output" => {
                let output = &payload["output"];
                // Some versions store the result as JSON text.
                let parsed: Option<Value> = output
                    .as_str()
                    .filter(|text| text.starts_with('{'))
                    .and_then(|text| serde_json::from_str(text).ok());
                let output = parsed.as_ref().unwrap_or(output);
                let is_error = output["success"] == false;
                self.record_result(id, output, is_error);
            }
            _ => {}
        }
        Line::Known
    }

    fn message(&mut self, payload: &Value) -> Line {
        let text = text_of(&payload["content"], &["input_text", "output_text", "text"]);
        let text = text.trim();
        match payload["role"].as_str() {
            Some("assistant") => self.record_agent_text(text),
            Some("user") if !text.is_empty() && !CLIENT_TEXTS.iter().any(|start| text.starts_with(start)) => {
                return self.start_turn(text);
            }
            _ => {}
        }
        Line::Known
    }
}
