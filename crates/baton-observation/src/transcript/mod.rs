//! Transcripts of coding agents: converts their lines to hook reports.
//!
//! A report has the fields that the agent's hook would have sent, with the original time. Owns the formats, one file
//! each; reading files and databases and storing reports happen elsewhere.

mod claude_code;
mod codex;
mod cursor;
mod gemini;
mod hook_report;
mod opencode;

use std::collections::{HashMap, HashSet};

use baton_core::Timestamp;
use serde_json::{Map, Value, json};

use crate::client_kind;

pub use cursor::folder_of_uri;

/// Maximum number of tool calls that wait for their result. Older calls never got one.
const MAX_PENDING_CALLS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptFormat {
    /// Claude Code: `~/.claude/projects/**/*.jsonl`.
    ClaudeCode,
    /// Codex: `~/.codex/sessions/**/rollout-*.jsonl`.
    Codex,
    /// Gemini CLI: `~/.gemini/tmp/*/chats/session-*.jsonl`.
    Gemini,
    /// OpenCode: `~/.local/share/opencode/opencode.db`, and JSON files in `storage` of older versions.
    OpenCode,
    /// Cursor: `User/globalStorage/state.vscdb`.
    Cursor,
}

impl TranscriptFormat {
    /// Returns the name of the client program.
    pub const fn client(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::Cursor => "cursor",
        }
    }
}

/// Result of parsing one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The line starts a turn. Everything before it is complete.
    StartsTurn,
    /// The line belongs to the format.
    Known,
    /// The line does not belong to the format.
    Foreign,
}

/// Facts about the chat of a transcript, known after its first lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatFacts {
    /// Chat id assigned by the client.
    pub session_id: Option<String>,
    /// Working directory at the start.
    pub cwd: Option<String>,
    /// Branch at the start.
    pub branch: Option<String>,
    /// URL of the repository's remote.
    pub repository_url: Option<String>,
    /// Time of the first line that has one.
    pub started_at: Option<Timestamp>,
}

/// Converts the lines of one transcript to hook reports.
#[derive(Debug)]
pub struct TranscriptParser {
    format: TranscriptFormat,
    facts: ChatFacts,
    reports: Vec<Value>,
    pending: HashMap<String, PendingCall>,
    turn: OpenTurn,
    /// Ids of messages and tool calls that a transcript can repeat.
    seen: HashSet<String>,
    cwd: Option<String>,
    at: Option<Timestamp>,
    /// True in the transcript of a sub-agent, whose messages are not turns of the user.
    is_subagent: bool,
}

/// A tool call without a result yet.
#[derive(Debug)]
struct PendingCall {
    tool_name: String,
    tool_input: Value,
}

/// State of the latest turn.
#[derive(Debug, Default)]
struct OpenTurn {
    is_open: bool,
    /// Latest text of the agent, and its time.
    closing: Option<(String, Option<Timestamp>)>,
    /// True if a tool was called after the latest text, so that the text does not close the turn.
    is_working: bool,
}

impl TranscriptParser {
    /// Creates a parser for the start of a transcript, or for a line that starts a turn.
    pub fn new(format: TranscriptFormat) -> Self {
        Self {
            format,
            facts: ChatFacts::default(),
            reports: Vec::new(),
            pending: HashMap::new(),
            turn: OpenTurn::default(),
            seen: HashSet::new(),
            cwd: None,
            at: None,
            is_subagent: false,
        }
    }

    /// Continues at a later line that starts a turn. The facts of the chat are kept, reports so far are dropped.
    pub fn restart(&mut self) {
        self.reports.clear();
        self.pending.clear();
        self.turn = OpenTurn::default();
        self.seen.clear();
    }

    /// Returns the facts that are known so far.
    pub const fn facts(&self) -> &ChatFacts {
        &self.facts
    }

    /// Returns true if no tool call waits for its result.
    pub fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns true for the transcript of a sub-agent.
    pub const fn is_subagent(&self) -> bool {
        self.is_subagent
    }

    /// Parses one line.
    pub fn line(&mut self, line: &Value) -> Line {
        if line.get("hook_event_name").is_some() {
            return self.hook_report(line);
        }
        match self.format {
            TranscriptFormat::ClaudeCode => self.claude_code_line(line),
            TranscriptFormat::Codex => self.codex_line(line),
            TranscriptFormat::Gemini => self.gemini_record(line),
            TranscriptFormat::OpenCode => self.opencode_record(line),
            TranscriptFormat::Cursor => self.cursor_record(line),
        }
    }

    /// Ends the transcript: closes the latest turn if the agent finished it.
    pub fn finish(&mut self) {
        if !self.turn.is_working && self.pending.is_empty() {
            self.close_turn();
        }
    }

    /// Returns the reports since the last call, in order.
    pub fn take_reports(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.reports)
    }

    /// Records the time and the working directory of a line. A time is a text, or a number of milliseconds.
    fn record_time_and_folder(&mut self, at: Option<&Value>, cwd: Option<&Value>) {
        let at = at.and_then(|at| match at {
            Value::String(text) => text.parse().ok(),
            Value::Number(millis) => millis.as_i64().map(Timestamp::from_millis),
            _ => None,
        });
        if let Some(at) = at {
            self.at = Some(at);
            self.facts.started_at.get_or_insert(at);
        }
        if let Some(cwd) = cwd.and_then(Value::as_str).filter(|cwd| !cwd.is_empty()) {
            self.cwd = Some(cwd.to_owned());
            self.facts.cwd.get_or_insert_with(|| cwd.to_owned());
        }
    }

    fn add_report(&mut self, event: &str, fields: Value) {
        let mut report = Map::new();
        report.insert("event".into(), event.into());
        if let Some(cwd) = &self.cwd {
            report.insert("cwd".into(), cwd.as_str().into());
        }
        if let Some(at) = self.at {
            report.insert("reported_at".into(), at.to_string().into());
        }
        if let Value::Object(fields) = fields {
            report.extend(fields);
        }
        self.reports.push(Value::Object(report));
    }

    /// Starts a turn with a request of the user.
    fn start_turn(&mut self, prompt: &str) -> Line {
        if self.is_subagent {
            return Line::Known;
        }
        self.close_turn();
        self.add_report("user-prompt-submit", json!({ "prompt": prompt }));
        self.turn = OpenTurn { is_open: true, ..OpenTurn::default() };
        Line::StartsTurn
    }

    fn record_agent_text(&mut self, text: &str) {
        if !self.is_subagent && !text.trim().is_empty() {
            self.turn.closing = Some((text.to_owned(), self.at));
            self.turn.is_working = false;
        }
    }

    /// Records that the user interrupted the agent.
    fn interrupt_turn(&mut self) {
        if !self.is_subagent && std::mem::take(&mut self.turn).is_open {
            self.add_report("stop", json!({ "hook_event_name": "Interrupt" }));
        }
    }

    /// Reports the closing message of the latest turn, if it has one.
    fn close_turn(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        if let Some((text, at)) = turn.closing {
            let at = at.map(|at| at.to_string());
            let mut fields = json!({ "last_assistant_message": text });
            if let Some(at) = at {
                fields["reported_at"] = at.into();
            }
            self.add_report("stop", fields);
        }
    }

    fn record_call(&mut self, id: &str, tool_name: &str, tool_input: Value) {
        if self.pending.len() >= MAX_PENDING_CALLS {
            self.pending.clear();
        }
        self.turn.is_working |= !self.is_subagent;
        self.pending.insert(id.to_owned(), PendingCall { tool_name: tool_name.to_owned(), tool_input });
    }

    /// Records the result of a tool call. A result without a call is ignored.
    fn record_result(&mut self, id: &str, response: &Value, is_error: bool) {
        let Some(PendingCall { tool_name, tool_input }) = self.pending.remove(id) else { return };
        let tool_name = client_kind::tool_name(&tool_name);
        let mut fields = json!({ "tool_name": tool_name, "tool_input": tool_input, "tool_use_id": id });
        if is_error {
            let text = response.as_str().map_or_else(|| response.to_string(), str::to_owned);
            fields["error"] = text.into();
        } else {
            fields["tool_response"] = response.clone();
        }
        self.add_report("post-tool-use", fields);
    }
}

/// Joins the texts of a message: a string, or a list of parts of the given types.
fn text_of(content: &Value, types: &[&str]) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let is_text = |part: &&Value| part["type"].as_str().is_some_and(|kind| types.contains(&kind));
            let texts = parts.iter().filter(is_text).filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Removes the blocks between two tags. The client adds them to requests; they include the context that hooks injected.
fn without_blocks(text: &str, start: &str, end: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(start) {
        kept.push_str(before);
        rest = after.split_once(end).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

/// Parses a JSON text that is stored in a field; a text that is not JSON stays a text.
fn parsed(field: &Value) -> Value {
    let value = field.as_str().and_then(|text| serde_json::from_str(text).ok());
    value.unwrap_or_else(|| field.clone())
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
