//! Renders a tool use as text: the command and its output, the content of a file that was read, or a change.
//!
//! The kind of tool is derived from the structure of its input and response, because every agent has its own tool
//! names. Owns the layout; does not truncate.

use baton_core::{first_characters, one_line, strip_control};
use serde_json::{Map, Value};

use super::superseded::is_todo_update;
use super::tool_use::ToolUse;

/// Maximum length of a generic tool input in characters.
const MAX_INPUT_CHARS: usize = 1_000;

/// Input members that contain a file path.
const FILE_MEMBERS: [&str; 4] = ["file_path", "filePath", "notebook_path", "path"];

/// Response members that contain text, other than content blocks.
const TEXT_MEMBERS: [&str; 5] = ["content", "output", "result", "text", "message"];

/// Input members that contain a patch.
const PATCH_MEMBERS: [&str; 3] = ["patch", "input", "diff"];

/// Renders a tool use as plain text.
pub fn render(tool_use: &ToolUse) -> String {
    let ToolUse { tool_input: input, tool_response: response, .. } = tool_use;
    let text = if let Some(command) = command_of(input) {
        join([format!("$ {command}"), text_of(response)])
    } else if let Some(change) = change_of(input, response) {
        change
    } else {
        join([input_line(input), text_of(response)])
    };
    strip_control(&text)
}

impl ToolUse {
    /// Returns true if a model could add nothing: for updates of to-dos, and for tools that returned nothing and changed
    /// nothing.
    pub fn is_trivial(&self) -> bool {
        is_todo_update(&self.tool_name) || !has_content(self)
    }
}

/// Returns true if the tool returned text or changed a file.
fn has_content(tool_use: &ToolUse) -> bool {
    let ToolUse { tool_input: input, tool_response: response, .. } = tool_use;
    let is_empty = match response {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) if members.contains_key("stdout") => command_output(members).trim().is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => text_of(response).trim().is_empty(),
    };
    !is_empty || change_of(input, response).is_some()
}

/// Returns the files named in the tool input.
pub fn input_files(tool_use: &ToolUse) -> Vec<&str> {
    FILE_MEMBERS.iter().filter_map(|name| tool_use.tool_input.get(name)?.as_str()).collect()
}

/// Joins non-empty parts with newlines.
fn join(parts: impl IntoIterator<Item = String>) -> String {
    let mut joined = String::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !joined.is_empty() && !joined.ends_with('\n') {
            joined.push('\n');
        }
        joined.push_str(&part);
    }
    joined
}

/// Returns the command line of a shell tool.
fn command_of(input: &Value) -> Option<String> {
    let command = input.get("command").or_else(|| input.get("cmd"))?;
    match command {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            words.iter().map(Value::as_str).collect::<Option<Vec<_>>>().map(|w| w.join(" "))
        }
        _ => None,
    }
}

/// Returns the output of a command, with its exit code if reported.
fn command_output(members: &Map<String, Value>) -> String {
    let stream = |name| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let errors = match stream("stderr") {
        "" => String::new(),
        errors => format!("[stderr]\n{errors}"),
    };
    let code = ["exit_code", "exitCode", "code"].iter().find_map(|name| members.get(*name)?.as_i64());
    let code = code.map_or_else(String::new, |code| format!("[exit code {code}]"));
    let interrupted = members.get("interrupted") == Some(&Value::Bool(true));
    let interrupted = if interrupted { "[interrupted]" } else { "" };
    join([stream("stdout").to_owned(), errors, code, interrupted.to_owned()])
}

/// Returns the change of a tool that edits files.
fn change_of(input: &Value, response: &Value) -> Option<String> {
    let header = file_of_input(input).map_or_else(String::new, |file| format!("--- {file}"));
    if let Some(hunks) = response.get("structuredPatch").and_then(Value::as_array)
        && !hunks.is_empty()
    {
        return Some(join(std::iter::once(header).chain(hunks.iter().map(hunk))));
    }
    let message = || match response {
        Value::String(_) | Value::Array(_) => text_of(response),
        Value::Object(members) if is_error(members) => text_of(response),
        _ => String::new(),
    };
    if let Some(edits) = input.get("edits").and_then(Value::as_array) {
        let edits = edits.iter().filter_map(replacement);
        return Some(join(std::iter::once(header).chain(edits).chain([message()])));
    }
    if let Some(edit) = replacement(input) {
        return Some(join([header, edit, message()]));
    }
    let patch = PATCH_MEMBERS.iter().filter_map(|name| input.get(name)?.as_str()).find(|text| is_patch(text));
    if let Some(patch) = patch {
        return Some(join([patch.to_owned(), text_of(response)]));
    }
    let content = input.get("content").or_else(|| input.get("new_source"))?.as_str()?;
    let file = file_of_input(input)?;
    Some(join([format!("+++ {file}"), content.to_owned(), message()]))
}

fn is_error(members: &Map<String, Value>) -> bool {
    ["is_error", "isError"].iter().any(|name| members.get(*name) == Some(&Value::Bool(true)))
}

fn file_of_input(input: &Value) -> Option<&str> {
    FILE_MEMBERS.iter().find_map(|name| input.get(name)?.as_str())
}

fn is_patch(text: &str) -> bool {
    let text = text.trim_start();
    ["*** Begin Patch", "diff --git ", "--- "].iter().any(|start| text.starts_with(start))
}

fn hunk(hunk: &Value) -> String {
    let number = |name| hunk.get(name).and_then(Value::as_u64).unwrap_or_default();
    let place = format!(
        "@@ -{},{} +{},{} @@",
        number("oldStart"),
        number("oldLines"),
        number("newStart"),
        number("newLines")
    );
    let lines = hunk.get("lines").and_then(Value::as_array).into_iter().flatten();
    join(std::iter::once(place).chain(lines.filter_map(Value::as_str).map(|line| format!("{line}\n"))))
}

/// Renders an edit as removed and added lines.
fn replacement(edit: &Value) -> Option<String> {
    let text = |names: [&str; 2]| names.iter().find_map(|name| edit.get(name)?.as_str());
    let new = text(["new_string", "newString"])?;
    let old = text(["old_string", "oldString"]).unwrap_or_default();
    let removed = old.lines().map(|line| format!("-{line}\n"));
    let added = new.lines().map(|line| format!("+{line}\n"));
    Some(removed.chain(added).collect())
}

/// Renders a generic input as one line; empty if it contains only a file path and range, because the prompt names the
/// file separately.
fn input_line(input: &Value) -> String {
    match input {
        Value::Null => String::new(),
        Value::Object(members) if members.keys().all(|name| is_file_or_range(name)) => String::new(),
        _ => format!("[asked] {}", one_line(&input.to_string(), MAX_INPUT_CHARS)),
    }
}

fn is_file_or_range(name: &str) -> bool {
    FILE_MEMBERS.contains(&name) || matches!(name, "offset" | "limit")
}

fn text_of(response: &Value) -> String {
    match response {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks_text(blocks).unwrap_or_else(|| pretty(response)),
        Value::Object(members) => object_text(members).unwrap_or_else(|| pretty(response)),
        Value::Bool(_) | Value::Number(_) => response.to_string(),
    }
}

/// Returns the text of an object with a known structure.
fn object_text(members: &Map<String, Value>) -> Option<String> {
    if members.contains_key("stdout") || members.contains_key("stderr") {
        return Some(command_output(members));
    }
    if let Some(content) = members.get("file").and_then(|file| file.get("content")).and_then(Value::as_str) {
        return Some(content.to_owned());
    }
    if let Some(text) =
        members.get("content").and_then(Value::as_array).and_then(|blocks| blocks_text(blocks))
    {
        return Some(text);
    }
    if is_error(members)
        && let Some(text) = members.get("content").and_then(Value::as_str)
        && members.len() == 2
    {
        return Some(join(["[failed]".to_owned(), text.to_owned()]));
    }
    let name = TEXT_MEMBERS.into_iter().find(|name| members.get(*name).is_some_and(Value::is_string))?;
    let text = members.get(name)?.as_str()?.to_owned();
    let rest: Map<String, Value> =
        members.iter().filter(|(other, _)| *other != name).map(|(n, v)| (n.clone(), v.clone())).collect();
    let rest = if rest.is_empty() { String::new() } else { Value::Object(rest).to_string() };
    Some(join([text, rest]))
}

/// Returns the text of content blocks, with the type in place of other blocks; `None` if these are not content blocks.
fn blocks_text(blocks: &[Value]) -> Option<String> {
    let texts: Option<Vec<String>> = blocks
        .iter()
        .map(|block| match block.get("type")?.as_str()? {
            "text" => Some(block.get("text")?.as_str()?.to_owned()),
            kind => Some(format!("[{}]", first_characters(kind, 40))),
        })
        .collect();
    texts.filter(|texts| !texts.is_empty()).map(join)
}

fn pretty(value: &Value) -> String {
    // Serializing a value does not fail; the fallback is compact JSON.
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
