//! One use of a tool, as the rest of this module looks at it: what kind of tool it was, what it was asked, what it said,
//! whether it failed, and how many words an observation of it may have.

use baton_core::observation::ToolUse;
use serde_json::{Map, Value};

use super::text::{clean, relative};

/// Outputs above this size are made ten times smaller.
const LARGE_BYTES: usize = 5_000;
/// How much smaller a large output becomes at least, in tenths.
const LARGE_RATIO_TENTHS: usize = 106;
/// How long an observation may be in all, however large the output was.
const MAX_OBSERVATION_BYTES: usize = 2_450;
/// How long the detail of a small output may be.
const SMALL_DETAIL_BYTES: usize = 700;
/// How deep a response is looked into.
const MAX_DEPTH: usize = 32;

/// Members of a response that repeat what was asked or what was there before.
const ECHOES: &[&str] = &["originalFile", "oldTodos", "prompt"];

/// One use of a tool.
pub(super) struct Call<'a> {
    pub(super) tool: &'a str,
    pub(super) input: &'a Value,
    pub(super) response: &'a Value,
    pub(super) cwd: Option<&'a str>,
    raw_bytes: usize,
}

/// Why a tool did not do what it was asked.
pub(super) enum Refusal {
    /// The user did not let it; with what they said, if anything.
    Rejected(Option<String>),
    /// It failed; with what it said.
    Failed(String),
}

impl<'a> Call<'a> {
    pub(super) fn new(tool_use: &'a ToolUse) -> Self {
        Self {
            tool: tool_use.tool_name.trim(),
            input: &tool_use.tool_input,
            response: &tool_use.tool_response,
            cwd: tool_use.cwd.as_deref(),
            raw_bytes: text_bytes(&tool_use.tool_response, 0),
        }
    }

    /// How long the detail may be beside a title and a summary.
    pub(super) fn detail_bytes(&self, title: &str, summary: &str) -> usize {
        self.observation_bytes()
            .map_or(SMALL_DETAIL_BYTES, |all| all.saturating_sub(title.len() + summary.len()))
    }

    /// How long the observation of a large output may be in all.
    pub(super) fn observation_bytes(&self) -> Option<usize> {
        let all = (self.raw_bytes * 10 / LARGE_RATIO_TENTHS).min(MAX_OBSERVATION_BYTES);
        (self.raw_bytes > LARGE_BYTES).then_some(all)
    }

    /// A text that the tool was asked with, under the first of these names that it has.
    pub(super) fn asked(&self, names: &[&str]) -> Option<&'a str> {
        text_of(self.input, names)
    }

    /// A text that the tool said, under the first of these names that it has.
    pub(super) fn said(&self, names: &[&str]) -> Option<&'a str> {
        text_of(self.response, names)
    }

    /// A path as seen from the agent's folder.
    pub(super) fn path(&self, path: &str) -> String {
        relative(&clean(path), self.cwd).to_owned()
    }

    /// All the text of the response, cleaned, without what only repeats the question.
    pub(super) fn output(&self) -> String {
        let mut output = String::new();
        // A shell's channels come in their order, whatever order the members have.
        match self.response.as_object().filter(|response| response.contains_key("stdout")) {
            Some(response) => {
                for channel in ["stdout", "stderr"] {
                    push_text(&mut output, response.get(channel).and_then(Value::as_str).unwrap_or_default());
                }
            }
            None => collect_text(self.response, &mut output, 0),
        }
        clean(&output).into_owned()
    }

    /// Whether the response is marked as that of a tool that failed.
    pub(super) fn is_error(&self) -> bool {
        let failed = |name: &str| self.response.get(name).and_then(Value::as_bool) == Some(true);
        let first = match self.response {
            Value::Array(blocks) => {
                blocks.first().and_then(|block| block.get("text")).unwrap_or(&Value::Null)
            }
            response => response,
        };
        failed("is_error")
            || failed("isError")
            || first.as_str().is_some_and(|text| text.trim_start().starts_with(ERROR_TAG))
    }

    /// Whether and why the tool failed, as far as the response says so.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let text = match self.response {
            Value::String(text) if text.starts_with("Error") || text.contains(REJECTION) => text.clone(),
            _ if self.is_error() => self.output(),
            _ => return None,
        };
        let text = without_error_tags(clean(&text).into_owned());
        let Some((_, after)) = text.split_once(REJECTION) else {
            return Some(Refusal::Failed(text.trim().to_owned()));
        };
        let said = after.split_once("the user said:").map(|(_, said)| said.trim().to_owned());
        Some(Refusal::Rejected(said.filter(|said| !said.is_empty())))
    }
}

/// How Claude Code words it when the user declines.
const REJECTION: &str = "doesn't want to proceed with this tool use";

/// How Claude Code marks what a tool said that failed.
const ERROR_TAG: &str = "<tool_use_error>";

/// Takes those marks off.
pub(super) fn without_error_tags(text: String) -> String {
    if text.contains(ERROR_TAG) { text.replace(ERROR_TAG, "").replace("</tool_use_error>", "") } else { text }
}

fn text_of<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names
        .iter()
        .find_map(|name| value.get(name).and_then(Value::as_str))
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

fn text_bytes(value: &Value, depth: usize) -> usize {
    match value {
        Value::String(text) => text.len() + 1,
        Value::Number(_) => 4,
        Value::Array(elements) if depth < MAX_DEPTH => {
            elements.iter().map(|element| text_bytes(element, depth + 1)).sum()
        }
        Value::Object(members) if depth < MAX_DEPTH => {
            members.values().map(|member| text_bytes(member, depth + 1)).sum()
        }
        _ => 0,
    }
}

fn collect_text(value: &Value, output: &mut String, depth: usize) {
    match value {
        Value::String(text) => push_text(output, text),
        Value::Array(elements) if depth < MAX_DEPTH => {
            elements.iter().for_each(|element| collect_text(element, output, depth + 1));
        }
        Value::Object(members) if depth < MAX_DEPTH => collect_members(members, output, depth),
        _ => {}
    }
}

fn collect_members(members: &Map<String, Value>, output: &mut String, depth: usize) {
    // A part of a message: its type and identity say nothing about what the tool said.
    if let (Some("text"), Some(text)) = (members.get("type").and_then(Value::as_str), members.get("text")) {
        return collect_text(text, output, depth + 1);
    }
    for (name, member) in members {
        if !ECHOES.contains(&name.as_str()) {
            collect_text(member, output, depth + 1);
        }
    }
}

fn push_text(output: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    output.push_str(text);
}
