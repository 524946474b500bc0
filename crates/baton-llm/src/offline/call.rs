//! One tool use: tool name, input, output, failure, and the size limits of its observation.

use baton_core::starts_with_any;
use baton_observation::ToolUse;
use serde_json::{Map, Value};

use super::text::{clean, one_line, relative, size_in_words};

/// Observations of outputs above this size are at least ten times smaller than the output.
pub(super) const LARGE_BYTES: usize = 5_000;
/// Minimum ratio of output to observation for large outputs, in tenths.
const LARGE_RATIO_TENTHS: usize = 106;
/// Maximum size of an observation for any size of the output.
const MAX_OBSERVATION_BYTES: usize = 2_450;
/// Maximum size of the detail of a small output.
const SMALL_DETAIL_BYTES: usize = 1_200;
/// Maximum depth at which texts of a response are read.
const MAX_DEPTH: usize = 32;

/// Members of a response that repeat the input or the previous state.
const ECHOED_MEMBERS: &[&str] = &["originalFile", "oldString", "newString", "oldTodos", "prompt"];

/// One use of a tool.
pub(super) struct Call<'a> {
    pub(super) tool: &'a str,
    pub(super) input: &'a Value,
    pub(super) response: &'a Value,
    pub(super) cwd: Option<&'a str>,
    raw_bytes: usize,
}

/// Why a tool was not executed or failed.
pub(super) enum ToolFailure {
    /// The user declined, with this reason if one was given.
    Declined(Option<String>),
    /// The tool failed with this error message.
    Failed(String),
    /// The tool was not started, because another call of the same message failed.
    NotRun,
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

    /// Returns the untrimmed text of the first of these members that the input has, even if it is empty.
    pub(super) fn whole_input(&self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.input[name].as_str())
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
        // Standard output comes before standard error, regardless of the order of the members.
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
        let failed = |name: &str| self.response[name] == true;
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
    pub(super) fn failure(&self) -> Option<ToolFailure> {
        let text = match self.response {
            Value::String(text) if text.starts_with("Error") || text.contains(REJECTION) => text.clone(),
            _ if self.is_error() => self.output(),
            _ => return None,
        };
        let text = without_error_tags(clean(&text).into_owned());
        if starts_with_any(text.trim_start(), CANCELLATIONS) {
            return Some(ToolFailure::NotRun);
        }
        let Some((_, after)) = text.split_once(REJECTION) else {
            return Some(ToolFailure::Failed(text.trim().to_owned()));
        };
        let reason = after.split_once("the user said:").map(|(_, reason)| reason.trim().to_owned());
        Some(ToolFailure::Declined(reason.filter(|reason| !reason.is_empty())))
    }
}

/// Text that Claude Code sends if the user declines.
const REJECTION: &str = "doesn't want to proceed with this tool use";

/// Starts of the texts that Claude Code sends if another call of the same message failed.
const CANCELLATIONS: &str = "Sibling tool call errored|Cancelled: parallel tool call";

/// Tag that Claude Code puts around the error message of a tool.
const ERROR_TAG: &str = "<tool_use_error>";

/// Removes the tags around error messages.
pub(super) fn without_error_tags(text: String) -> String {
    if text.contains(ERROR_TAG) { text.replace(ERROR_TAG, "").replace("</tool_use_error>", "") } else { text }
}

fn text_of<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value[name].as_str()).map(str::trim).filter(|text| !text.is_empty())
}

/// Returns the number of bytes of all texts of a response, without members that repeat the input.
fn text_bytes(value: &Value, depth: usize) -> usize {
    match value {
        Value::String(text) => text.len() + 1,
        Value::Number(_) => 4,
        Value::Array(elements) if depth < MAX_DEPTH => {
            elements.iter().map(|element| text_bytes(element, depth + 1)).sum()
        }
        Value::Object(members) if depth < MAX_DEPTH => members
            .iter()
            .filter(|(name, _)| !ECHOED_MEMBERS.contains(&name.as_str()))
            .map(|(_, member)| text_bytes(member, depth + 1))
            .sum(),
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
    // The type and the id of a message part are not output of the tool.
    if let (Some("text"), Some(text)) = (members.get("type").and_then(Value::as_str), members.get("text")) {
        return collect_text(text, output, depth + 1);
    }
    // An image or a sound has its data and its media type in two members.
    let data = members.get("data").or_else(|| members.get("base64")).and_then(Value::as_str);
    let kind = ["mimeType", "media_type", "mime_type"].iter().find_map(|name| members.get(*name)?.as_str());
    if let (Some(data), Some(kind)) = (data, kind) {
        return push_text(output, &data_in_words(kind, data.len()));
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
    match encoded_data(text) {
        Some(words) => output.push_str(&words),
        None => output.push_str(text),
    }
}

/// Minimum length of a text without spaces that counts as encoded data.
const ENCODED_BYTES: usize = 400;

/// Describes a text that consists of base64 data, with or without the prefix of a `data:` URL.
pub(super) fn encoded_data(text: &str) -> Option<String> {
    let text = text.trim();
    let (kind, data) = match text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((kind, data)) => (kind, data),
        None => (kind_of(text), text),
    };
    let is_encoded =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_' | b'\n');
    let is_mixed = || {
        let start = data.as_bytes().get(..ENCODED_BYTES).unwrap_or_default();
        start.iter().any(u8::is_ascii_uppercase) && start.iter().any(u8::is_ascii_digit)
    };
    let is_data = data.len() >= ENCODED_BYTES && data.bytes().all(is_encoded) && is_mixed();
    is_data.then(|| data_in_words(kind, data.len()))
}

/// Returns the type of base64 data by its first characters.
fn kind_of(data: &str) -> &'static str {
    const STARTS: &[(&str, &str)] = &[
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
        ("JVBERi", "application/pdf"),
        ("UEsDB", "application/zip"),
    ];
    STARTS.iter().find(|(start, _)| data.starts_with(start)).map_or("base64 data", |(_, kind)| kind)
}

fn data_in_words(kind: &str, encoded_bytes: usize) -> String {
    format!("[{}, {}]", one_line(kind, 40), size_in_words(encoded_bytes / 4 * 3))
}
