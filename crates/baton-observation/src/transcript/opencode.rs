//! Chats of OpenCode.
//!
//! The first record is `{"session": {…}}` with `id`, `directory`, `created` and `is_subagent`. Each further record is
//! `{"message": {…}, "parts": […]}`: a message with its texts and tool uses, as OpenCode stores them.

use serde_json::{Value, json};

use super::{Line, TranscriptParser};

impl TranscriptParser {
    pub(super) fn opencode_record(&mut self, record: &Value) -> Line {
        let session = &record["session"];
        if session.is_object() {
            self.record_time_and_folder(session.get("created"), session.get("directory"));
            self.facts.session_id = session["id"].as_str().map(str::to_owned);
            self.is_subagent = session["is_subagent"] == true;
            return Line::Known;
        }
        let (message, Some(parts)) = (&record["message"], record["parts"].as_array()) else {
            return Line::Foreign;
        };
        self.record_time_and_folder(message["time"].get("created"), message["path"].get("cwd"));
        match message["role"].as_str() {
            Some("user") => return self.opencode_request(parts),
            Some("assistant") => self.opencode_answer(message, parts),
            _ => return Line::Foreign,
        }
        Line::Known
    }

    fn opencode_request(&mut self, parts: &[Value]) -> Line {
        let texts: Vec<&str> = parts.iter().filter_map(text_not_added_by_opencode).collect();
        let text = texts.join("\n");
        if text.trim().is_empty() { Line::Known } else { self.start_turn(text.trim()) }
    }

    fn opencode_answer(&mut self, message: &Value, parts: &[Value]) {
        for part in parts {
            match part["type"].as_str() {
                // The summary of a compaction does not answer a request.
                Some("text") if message["summary"] != true => {
                    self.record_time_and_folder(part["time"].get("end"), None);
                    self.record_agent_text(text_not_added_by_opencode(part).unwrap_or_default());
                }
                Some("tool") => self.opencode_tool(part),
                _ => {}
            }
        }
        if message["error"]["name"] == "MessageAbortedError" {
            self.interrupt_turn();
        }
    }

    fn opencode_tool(&mut self, part: &Value) {
        let (Some(id), Some(tool), state) = (part["callID"].as_str(), part["tool"].as_str(), &part["state"])
        else {
            return;
        };
        self.record_time_and_folder(state["time"].get("end"), None);
        self.record_call(id, tool, state["input"].clone());
        match state["status"].as_str() {
            Some("completed") if tool == "bash" => {
                let (output, exit) = (&state["output"], &state["metadata"]["exit"]);
                self.record_result(id, &json!({ "stdout": output, "stderr": "", "exit_code": exit }), false);
            }
            Some("completed") => self.record_result(id, &state["output"], false),
            Some("error") => self.record_result(id, &state["error"], true),
            _ => {}
        }
    }
}

/// Returns the text of a part, unless OpenCode added it.
fn text_not_added_by_opencode(part: &Value) -> Option<&str> {
    let is_added = part["synthetic"] == true || part["ignored"] == true;
    part["text"].as_str().filter(|_| part["type"] == "text" && !is_added)
}
