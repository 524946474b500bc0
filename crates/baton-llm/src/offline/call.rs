//! One tool use: tool name, input, output, failure, and the size limits of its observation.

use baton_core::observation::ToolUse;
use serde_json::{Map, Value};

use super::text::{clean, relative};

/// Observations of outputs above this size are at least ten times smaller than the output.
const LARGE_BYTES: usize = 5_000;
/// Minimum ratio of output to observation for large outputs, in tenths.
const LARGE_RATIO_TENTHS: usize = 106;
/// Maximum size of an observation, whatever the size of the output.
const MAX_OBSERVATION_BYTES: usize = 2_450;
/// Maximum size of the detail for small outputs.
const SMALL_DETAIL_BYTES: usize = 700;
/// Maximum nesting depth that is examined in a response.
const MAX_DEPTH: usize = 32;

/// Members of a response that repeat the input or the previous state.
const ECHOED_MEMBERS: &[&str] = &["originalFile", "oldTodos", "prompt"];

/// One use of a tool.
pub(super) struct Call<'a> {
    pub(super) tool: &'a str,
    pub(super) input: &'a Value,
    pub(super) response: &'a Value,
    pub(super) cwd: Option<&'a str>,
    raw_bytes: usize,
}

/// Why a tool was not executed or failed.
pub(super) enum Refusal {
    /// The user declined; with the reason, if one was given.
    Rejected(Option<String>),
    /// The tool failed; with its error message.
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

    /// Returns the maximum size of the detail, given title and summary.
    pub(super) fn detail_bytes(&self, title: &str, summary: &str) -> usize {
        self.observation_bytes()
            .map_or(SMALL_DETAIL_BYTES, |all| all.saturating_sub(title.len() + summary.len()))
    }

    /// Returns the maximum size of the whole observation; `None` for a small output.
    pub(super) fn observation_bytes(&self) -> Option<usize> {
        let all = (self.raw_bytes * 10 / LARGE_RATIO_TENTHS).min(MAX_OBSERVATION_BYTES);
        (self.raw_bytes > LARGE_BYTES).then_some(all)
    }

    /// Returns the text of the first of these members that the input has.
    pub(super) fn input_text(&self, names: &[&str]) -> Option<&'a str> {
        text_of(self.input, names)
    }

    /// Returns the text of the first of these members that the response has.
    pub(super) fn response_text(&self, names: &[&str]) -> Option<&'a str> {
        text_of(self.response, names)
    }

    /// Returns a path relative to the agent's folder.
    pub(super) fn path(&self, path: &str) -> String {
        relative(&clean(path), self.cwd).to_owned()
    }

    /// Returns all text of the response, cleaned and without members that repeat the input.
    pub(super) fn output(&self) -> String {
        let mut output = String::new();
        // Standard output comes before standard error, whatever the order of the members.
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

    /// Returns true if the response is marked as an error.
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

    /// Returns why the tool was not executed or failed, if the response says so.
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

/// Text that Claude Code sends if the user declines.
const REJECTION: &str = "doesn't want to proceed with this tool use";

/// Tag that Claude Code puts around the error message of a tool.
const ERROR_TAG: &str = "<tool_use_error>";

/// Removes those tags.
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
    // A message part: its type and id are not output of the tool.
    if let (Some("text"), Some(text)) = (members.get("type").and_then(Value::as_str), members.get("text")) {
        return collect_text(text, output, depth + 1);
    }
    for (name, member) in members {
        if !ECHOED_MEMBERS.contains(&name.as_str()) {
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
