//! Sub-agents: their task and their report.

use serde_json::Value;

use super::call::Call;
use super::compressor::Draft;
use super::facts::{names, paths};
use super::lines::informative_lines;
use super::text::{clean, counted, first_line, first_sentence, one_line};
use super::title::title;

/// Describes the use of a sub-agent.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    if !matches!(
        call.tool.to_ascii_lowercase().as_str(),
        "task" | "agent" | "spawn_agent" | "dispatch_agent" | "delegate"
    ) {
        return None;
    }
    let asked = call.input_text(&["description", "task", "message", "prompt"]).unwrap_or("a task");
    let agent = call.input_text(&["subagent_type", "agent_type", "agent"]).unwrap_or("sub-agent");
    let report = match call.response.get("content") {
        Some(content) => text_of(content),
        None => call.output(),
    };
    let report = clean(&report).into_owned();
    let title = title(&format!("Delegate '{}' to {agent}", one_line(asked, 70)), None);
    let number = |name: &str| {
        call.response.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
    };
    let effort: Vec<String> = [
        number("totalToolUseCount").map(|uses| counted(uses, "tool use")),
        number("totalDurationMs").map(|duration| format!("{} s", duration / 1000)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let effort = if effort.is_empty() { String::new() } else { format!(" ({})", effort.join(", ")) };
    let opening = opening(&report);
    let summary = match opening.is_empty() {
        true => format!("{agent} was asked: {}{effort}.", first_sentence(asked, 200)),
        false => format!("{agent} reported{effort}: {}", first_sentence(opening, 280)),
    };
    let (draft, mut detail) = Draft::begin(call, title, summary);
    let whole = detail.reserve(detail.left() * 2 / 3);
    detail.list("Files", paths(&report, call.cwd));
    detail.restore(whole);
    let whole = detail.reserve(detail.left() / 2);
    detail.lines(informative_lines(&report, detail.left()));
    detail.restore(whole);
    detail.names("Names", &names(&report));
    Some(draft.with_detail(detail))
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part.as_str().or_else(|| part.get("text").and_then(Value::as_str)))
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the first line that is not a greeting, a heading, code or an announcement.
fn opening(report: &str) -> &str {
    const GREETINGS: &[&str] = &[
        "Perfect",
        "Great",
        "Excellent",
        "Now ",
        "I have",
        "I now",
        "I've",
        "Let me",
        "#",
        "Based on",
        "Here is",
        "Here's",
        "---",
        "**Source",
    ];
    let mut is_fenced = false;
    for line in report.lines().map(str::trim) {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let says = line.split_whitespace().count() > 5
            && !line.ends_with(':')
            && !GREETINGS.iter().any(|start| line.starts_with(start));
        if says && !is_fenced {
            return line.trim_start_matches(['-', '*', ' ']);
        }
    }
    first_line(report)
}
