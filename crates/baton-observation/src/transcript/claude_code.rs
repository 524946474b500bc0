//! Transcripts of Claude Code.
//!
//! Lines of type `user` hold requests and tool results, lines of type `assistant` hold texts and tool calls. Lines of a
//! sub-agent are marked with `isSidechain`; its tool uses are captured, its messages are not.

use serde_json::Value;

use super::{Line, TranscriptParser, text_of, without_blocks};

/// Types of lines that hold no message.
const OTHER_TYPES: [&str; 10] = [
    "summary",
    "system",
    "attachment",
    "progress",
    "file-history-snapshot",
    "queue-operation",
    "last-prompt",
    "custom-title",
    "ai-title",
    "permission-mode",
];
/// Starts of user messages that the client wrote: output of commands, notices and continued summaries.
const CLIENT_TEXTS: [&str; 9] = [
    "<command-",
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<bash-input>",
    "<task-notification>",
    "<teammate-message",
    "Caveat: The messages below",
    "This session is being continued from a previous conversation",
];
const INTERRUPTED: &str = "[Request interrupted by user";

impl TranscriptParser {
    pub(super) fn claude_code_line(&mut self, line: &Value) -> Line {
        let Some(kind) = line["type"].as_str() else { return Line::Foreign };
        let is_message = matches!(kind, "user" | "assistant") && line["message"].is_object();
        if !is_message {
            // New versions add types; a line with the fields of every line belongs to the format.
            let is_known = OTHER_TYPES.contains(&kind) || line["sessionId"].is_string();
            return if is_known { Line::Known } else { Line::Foreign };
        }
        self.record_time_and_folder(line.get("timestamp"), line.get("cwd"));
        for (fact, name) in [(&mut self.facts.session_id, "sessionId"), (&mut self.facts.branch, "gitBranch")]
        {
            let value = line[name].as_str().filter(|text| !text.is_empty());
            *fact = fact.take().or_else(|| value.map(str::to_owned));
        }
        self.is_subagent = line["isSidechain"] == true;
        let content = &line["message"]["content"];
        if kind == "assistant" { self.assistant(content) } else { self.user(line, content) }
    }

    fn assistant(&mut self, content: &Value) -> Line {
        self.record_agent_text(&text_of(content, &["text"]));
        for part in content.as_array().into_iter().flatten().filter(|part| part["type"] == "tool_use") {
            if let (Some(id), Some(name)) = (part["id"].as_str(), part["name"].as_str()) {
                self.record_call(id, name, part["input"].clone());
            }
        }
        Line::Known
    }

    fn user(&mut self, line: &Value, content: &Value) -> Line {
        let results = content.as_array().into_iter().flatten().filter(|part| part["type"] == "tool_result");
        let results: Vec<&Value> = results.collect();
        for part in &results {
            let Some(id) = part["tool_use_id"].as_str() else { continue };
            let is_error = part["is_error"] == true;
            // The structured result belongs to the line, so it is used only if the line has one result.
            let structured = &line["toolUseResult"];
            let has_structure =
                results.len() == 1 && !is_error && (structured.is_object() || structured.is_array());
            let text = text_of(&part["content"], &["text"]);
            let response = if has_structure { structured.clone() } else { Value::String(text) };
            self.record_result(id, &response, is_error);
        }
        if !results.is_empty() || line["isMeta"] == true || line["isCompactSummary"] == true {
            return Line::Known;
        }
        let text = without_blocks(&text_of(content, &["text"]), "<system-reminder>", "</system-reminder>");
        let text = text.trim();
        if text.starts_with(INTERRUPTED) {
            self.interrupt_turn();
            return Line::Known;
        }
        if text.is_empty() || CLIENT_TEXTS.iter().any(|start| text.starts_with(start)) {
            return Line::Known;
        }
        self.start_turn(text)
    }
}
