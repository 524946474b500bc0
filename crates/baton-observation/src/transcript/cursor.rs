//! Chats of Cursor.
//!
//! The first record is `{"composer": {…}, "folder": …}`: the chat, and the folder of its window. Each further record is
//! `{"bubble": {…}}`: a request (type 1), or a text or tool use of the agent (type 2), as Cursor stores them. Bubbles of
//! older versions have no time; they follow the bubble before them by a millisecond.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{Line, TranscriptParser, parsed};
use baton_core::Timestamp;

const REQUEST: i64 = 1;
const ANSWER: i64 = 2;
/// Names of the field with the file of a tool.
const FILE_FIELDS: [&str; 3] = ["targetFile", "target_file", "relativeWorkspacePath"];

impl TranscriptParser {
    pub(super) fn cursor_record(&mut self, record: &Value) -> Line {
        let (composer, bubble) = (&record["composer"], &record["bubble"]);
        if composer["composerId"].is_string() {
            self.record_time_and_folder(composer.get("createdAt"), record.get("folder"));
            self.facts.session_id = composer["composerId"].as_str().map(str::to_owned);
            self.facts.branch = composer["createdOnBranch"].as_str().map(str::to_owned);
            return Line::Known;
        }
        let kind = bubble["type"].as_i64();
        if !matches!(kind, Some(REQUEST | ANSWER)) {
            return Line::Foreign;
        }
        self.cursor_time_and_folder(bubble);
        let text = bubble["text"].as_str().unwrap_or_default().trim();
        if kind == Some(REQUEST) && !text.is_empty() {
            return self.start_turn(text);
        }
        if kind == Some(ANSWER) {
            self.record_agent_text(text);
            self.cursor_tool(bubble);
        }
        Line::Known
    }

    fn cursor_time_and_folder(&mut self, bubble: &Value) {
        let next = self.at.map(|at| Timestamp::from_millis(at.as_millis() + 1).to_string().into());
        let at = bubble.get("createdAt").filter(|at| !at.is_null()).or(next.as_ref());
        let folder = bubble["workspaceUris"][0].as_str().and_then(folder_of_uri).map(Value::from);
        self.record_time_and_folder(at, folder.as_ref().filter(|_| self.facts.cwd.is_none()));
    }

    fn cursor_tool(&mut self, bubble: &Value) {
        let tool = &bubble["toolFormerData"];
        let Some(name) = tool["name"].as_str().filter(|name| !name.is_empty()) else { return };
        let id = tool["toolCallId"].as_str().or_else(|| bubble["bubbleId"].as_str()).unwrap_or_default();
        let input = ["rawArgs", "params"].into_iter().map(|field| parsed(&tool[field]));
        let mut input = input.into_iter().find(Value::is_object).unwrap_or_default();
        if let Some(file) = FILE_FIELDS.iter().find_map(|field| input.get(field)).cloned() {
            input["file_path"] = file;
        }
        self.record_call(id, name, input);
        match tool["status"].as_str() {
            Some("completed") => self.record_result(id, &parsed(&tool["result"]), false),
            Some("error" | "cancelled") => {
                let error = ["error", "result"].into_iter().map(|field| parsed(&tool[field]));
                let error = error.into_iter().find(|error| !error.is_null());
                self.record_result(id, &error.unwrap_or_else(|| tool["status"].clone()), true);
            }
            _ => {}
        }
    }
}

/// Returns the path of a `file:` URI.
pub fn folder_of_uri(uri: &str) -> Option<String> {
    let encoded = uri.strip_prefix("file://")?;
    let path = percent_decode_str(encoded).decode_utf8().ok()?;
    path.starts_with('/').then(|| path.into_owned())
}
