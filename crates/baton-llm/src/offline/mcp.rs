//! Tools of MCP servers: `mcp__server__tool` names the server and the tool.

use baton_core::{ends_with_any, starts_with_any};
use serde_json::Value;

use super::call::Call;
use super::draft::Draft;
use super::lines::informative_lines;
use super::prose::{self, PROSE_BYTES};
use super::structure;
use super::text::{clean, one_line};
use super::title::title;

/// Input members that identify the subject of a call.
const SUBJECTS: &str = "id|issueId|issue_number|pull_number|number|identifier|key|title|name|query|q|path|\
    file_path|url|sql|command|repo|selector|library|topic|uri|task_id|operation|action";

/// Maximum length of a text of the input in the summary.
const INPUT_CHARACTERS: usize = 120;

/// Reads the use of a tool of an MCP server.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    let (server, tool) = call.tool.strip_prefix("mcp__")?.split_once("__")?;
    let action = sentence_case(&tool.replace(['_', '-'], " "));
    Some(describe(call, &action, Some(server)))
}

/// Describes a tool use from its name, input and answer alone.
pub(super) fn describe(call: &Call<'_>, action: &str, server: Option<&str>) -> Draft {
    let text = call.output();
    let values = structure::of_response(call.response, &text);
    let only = match values.as_slice() {
        [only @ Value::Object(_)] => only,
        _ => &Value::Null,
    };
    let subject = subject(call, only);
    let found = ["title", "name", "message", "status", "error"].iter().find_map(|name| only[name].as_str());
    let through =
        server.filter(|_| found.is_none()).map(|server| format!(" via {server}")).unwrap_or_default();
    let mut about = subject.as_ref().map(|subject| format!(" {subject}")).unwrap_or_default();
    if starts_with_any(action, "Update |Edit |Set |Save ") {
        about.push_str(&changed_members(call));
    }
    let outcome = found.map(|found| one_line(&clean(found), 40));
    let title = title(&format!("{action}{about}{through}"), outcome.as_deref());
    let asked = inputs(call);
    let asked = if asked.is_empty() { String::new() } else { format!(" with {asked}") };
    let gist = match (found, values.is_empty()) {
        (Some(found), _) => format!(" Answer: {}.", one_line(found, 160).trim_end_matches('.')),
        (None, true) if !text.trim().is_empty() => format!(" Answer: {}", one_line(&text, 200)),
        (None, false) if values.len() > 1 => format!(" Answer: {} entries.", values.len()),
        _ => String::new(),
    };
    let summary = format!("Used {}{asked}.{gist}", one_line(call.tool, 80));
    match values.as_slice() {
        [] => Draft::filled(call, title, summary, |detail| {
            if text.len() <= detail.left() {
                detail.lines(text.lines().map(str::trim_end));
            } else if text.contains("\n\n") {
                prose::fill(&text, call.cwd, detail);
            } else {
                detail.lines(informative_lines(&text, detail.left()));
            }
        }),
        [Value::Object(only)] if only.is_empty() => with_inputs(call, title, summary),
        values => structure::draft(call, title, summary, values),
    }
}

/// Describes a call by its input alone, because the response has no content.
fn with_inputs(call: &Call<'_>, title: String, summary: String) -> Draft {
    let texts = ["body", "description", "content", "text", "message", "comment"];
    let Some(text) = call.input_text(&texts).filter(|text| text.len() > INPUT_CHARACTERS) else {
        return Draft { title, summary, ..Draft::default() };
    };
    Draft::written(call, title, summary, text, PROSE_BYTES)
}

/// Returns the subject of the input. The answer may name it better than a long id or a title.
fn subject(call: &Call<'_>, answer: &Value) -> Option<String> {
    let named = answer["identifier"].as_str();
    let given = SUBJECTS.split('|').find_map(|name| {
        let value = call.input.get(name)?;
        value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
    });
    let is_long_id = |text: &str| text.len() >= 32 && !text.contains([' ', '/']);
    let is_repeated = |text: &str| answer["title"] == text;
    let is_better = |given: &String| named.is_none() || !is_long_id(given) && !is_repeated(given);
    let text = given.filter(is_better).or(named.map(str::to_owned))?;
    let text = one_line(&clean(&text), 60);
    (!text.is_empty()).then(|| if text.contains(' ') { format!("'{text}'") } else { text })
}

/// Formats the members that a call changes: ` (state Done, priority)`.
fn changed_members(call: &Call<'_>) -> String {
    let Some(members) = call.input.as_object() else { return String::new() };
    let is_subject = |name: &str| name == "id" || ends_with_any(name, "Id|_id|number");
    let parts: Vec<String> = members
        .iter()
        .filter(|(name, _)| !is_subject(name))
        .map(|(name, value)| match value {
            Value::String(text) if text.len() <= 24 => format!("{name} {text}"),
            Value::Number(number) => format!("{name} {number}"),
            _ => name.clone(),
        })
        .collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", one_line(&clean(&parts.join(", ")), 50)) }
}

/// Formats the short members of the input.
fn inputs(call: &Call<'_>) -> String {
    let Some(members) = call.input.as_object() else { return String::new() };
    let parts: Vec<String> = members
        .iter()
        .filter_map(|(name, value)| match value {
            Value::String(text) => Some(format!("{name} \"{}\"", one_line(&clean(text), INPUT_CHARACTERS))),
            Value::Number(number) => Some(format!("{name} {number}")),
            Value::Bool(true) => Some(name.clone()),
            _ => None,
        })
        .take(6)
        .collect();
    one_line(&parts.join(", "), 400)
}

/// Returns `Get issue` for `get issue`.
fn sentence_case(words: &str) -> String {
    let mut letters = words.trim().chars();
    letters
        .next()
        .map_or_else(|| "Use".into(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}
