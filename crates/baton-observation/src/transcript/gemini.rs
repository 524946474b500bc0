//! Transcripts of Gemini CLI.
//!
//! The first record describes the chat. Messages of type `user` hold requests, messages of type `gemini` hold texts and
//! tool calls with their results. A message is written again when its tool calls end, and a `$set` record can repeat all
//! messages; a message or tool call counts once. Older versions write one JSON document with the same messages.

use serde_json::{Value, json};

use super::{Line, TranscriptParser, without_blocks};

/// Starts of user messages that the client wrote, or that are commands to it.
const CLIENT_TEXTS: [&str; 3] = ["<session_context>", "/", "?"];

impl TranscriptParser {
    pub(super) fn gemini_record(&mut self, record: &Value) -> Line {
        if record["sessionId"].is_string() && record["projectHash"].is_string() {
            self.gemini_chat(record);
            return Line::Known;
        }
        if let Some(messages) = record["$set"]["messages"].as_array() {
            let lines: Vec<Line> = messages.iter().map(|message| self.gemini_message(message)).collect();
            let starts_turn = lines.contains(&Line::StartsTurn);
            return if starts_turn { Line::StartsTurn } else { Line::Known };
        }
        if record["id"].is_string() && record["type"].is_string() {
            return self.gemini_message(record);
        }
        let is_known = record["$set"].is_object() || record["$rewindTo"].is_string();
        if is_known { Line::Known } else { Line::Foreign }
    }

    fn gemini_chat(&mut self, record: &Value) {
        self.record_time_and_folder(record.get("startTime"), record["directories"].get(0));
        let id = record["sessionId"].as_str().map(str::to_owned);
        self.facts.session_id = self.facts.session_id.take().or(id);
        self.is_subagent = record["kind"] == "subagent";
    }

    fn gemini_message(&mut self, message: &Value) -> Line {
        self.record_time_and_folder(message.get("timestamp"), None);
        match message["type"].as_str() {
            Some("user") => return self.gemini_request(message),
            Some("gemini") => {
                self.record_agent_text(&text_of_parts(&message["content"]));
                for call in message["toolCalls"].as_array().into_iter().flatten() {
                    self.gemini_call(call);
                }
            }
            _ => {}
        }
        Line::Known
    }

    fn gemini_request(&mut self, message: &Value) -> Line {
        let text = text_of_parts(&message["content"]);
        let text = text.trim();
        if text.starts_with("<session_context>") {
            let folder = workspace_folder(text).map(Value::from);
            self.record_time_and_folder(None, folder.as_ref());
        }
        let text = without_blocks(text, "<hook_context>", "</hook_context>");
        let text = text.trim();
        let is_request = !text.is_empty() && !CLIENT_TEXTS.iter().any(|start| text.starts_with(start));
        let is_new = is_request && self.seen.insert(message["id"].to_string());
        if is_new { self.start_turn(text) } else { Line::Known }
    }

    fn gemini_call(&mut self, call: &Value) {
        self.turn.is_working |= !self.is_subagent;
        let (Some(id), Some(name)) = (call["id"].as_str(), call["name"].as_str()) else { return };
        let status = call["status"].as_str().unwrap_or_default();
        let has_ended = matches!(status, "success" | "error" | "cancelled");
        if !has_ended || !self.seen.insert(id.to_owned()) {
            return;
        }
        self.record_time_and_folder(call.get("timestamp"), None);
        self.record_call(id, name, call["args"].clone());
        let response = &call["result"][0]["functionResponse"]["response"];
        if status == "success" {
            let output = response.get("output").unwrap_or(response);
            let response = json!({ "llmContent": output, "returnDisplay": call["resultDisplay"] });
            self.record_result(id, &response, false);
        } else {
            let texts = [&response["error"], &response["output"], &call["resultDisplay"]];
            let text =
                texts.into_iter().find(|text| text.is_string()).cloned().unwrap_or_else(|| status.into());
            self.record_result(id, &text, true);
        }
    }
}

/// Joins the texts of a message: a text, or a list of parts.
fn text_of_parts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the folder that the first message of the client names.
fn workspace_folder(context: &str) -> Option<&str> {
    if let Some((_, after)) = context.split_once("working in the directory: ") {
        return after.lines().next().map(str::trim);
    }
    let (_, after) = context.split_once("Workspace Directories:**")?;
    after.lines().find_map(|line| line.trim().strip_prefix("- ")).map(str::trim)
}
