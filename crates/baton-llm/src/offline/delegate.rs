//! Sub-agents: their task and their report.

use baton_observation::SUBAGENT;
use serde_json::Value;

use super::call::Call;
use super::draft::Draft;
use super::prose::{self, PROSE_BYTES};
use super::text::{clean, counted, first_sentence, one_line};
use super::title::title;

/// How the text begins that Claude Code returns instead of a report if its model could not be called.
const FAILURE: &str = "API Error: ";

/// Describes the use of a sub-agent.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    if !matches!(
        call.tool.to_ascii_lowercase().as_str(),
        "task" | "agent" | "spawn_agent" | "dispatch_agent" | "delegate" | "subagent"
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
    let done = match call.tool {
        // The closing message of a sub-agent comes without its task.
        SUBAGENT => format!("Read the report of {agent}: {}", first_sentence(&report, 60)),
        _ => format!("Delegate '{}' to {agent}", one_line(asked, 70)),
    };
    let number = |name: &str| call.response[name].as_u64().and_then(|number| usize::try_from(number).ok());
    let effort: Vec<String> = [
        number("totalToolUseCount").map(|uses| counted(uses, "tool use")),
        number("totalDurationMs").map(|duration| format!("{} s", duration / 1000)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let effort = if effort.is_empty() { String::new() } else { format!(" ({})", effort.join(", ")) };
    if report.trim().is_empty() {
        let status = call.response_text(&["status"]).unwrap_or("no report").replace('_', " ");
        let title = title(&done, Some(&status));
        let summary =
            format!("{agent} was asked: {}. No report came back: {status}.", first_sentence(asked, 300));
        return Some(Draft { title, summary, ..Draft::default() });
    }
    if report.starts_with(FAILURE) {
        let error: Vec<&str> = report.split_whitespace().take(3).collect();
        let title = title(&done, Some(&format!("failed, {}", error.join(" "))));
        let summary = format!("{agent} failed{effort}: {}", one_line(&report, 500));
        return Some(Draft { title, summary, ..Draft::default() });
    }
    let summary = format!("{agent} reported{effort}: {}", prose::gist(&report, 500));
    Some(Draft::written(call, title(&done, None), summary, &report, PROSE_BYTES))
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> =
                parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str())).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
