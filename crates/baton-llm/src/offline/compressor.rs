//! The offline compressor: chooses the reader for a tool, and enforces the limits of all observations.

use baton_core::observation::{CompressedObservation, MAX_SUMMARY_CHARS, MAX_TITLE_CHARS, SessionMaterial};
use baton_core::shorten;
use baton_observation::ToolUse;

use super::call::{Call, ToolFailure};
use super::draft::Draft;
use super::text::{clean, first_line, one_line, unique};
use super::title::{complete, title};
use super::{delegate, edit, mcp, other, plan, read, search, shell, summary, web};
use crate::compressor::{CompressError, Compression, Compressor, Summarization, TokenUsage};

/// Version of the rules, stored with each observation and summary.
const VERSION: &str = "offline-v2";
/// Maximum numbers of files and functions in an observation.
const MAX_FILES: usize = 50;
const MAX_FUNCTIONS: usize = 50;

/// Compresses without a model. The same input always yields the same observation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offline;

impl Compressor for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn model(&self) -> Option<&str> {
        None
    }

    fn compress(&self, tool_use: &ToolUse) -> Result<Compression, CompressError> {
        let observation = observe(tool_use);
        Ok(Compression { observation, usage: TokenUsage::default(), prompt_version: VERSION })
    }

    fn summarize(&self, material: &SessionMaterial) -> Result<Summarization, CompressError> {
        let summary = summary::summarize(material);
        Ok(Summarization { summary, usage: TokenUsage::default(), prompt_version: VERSION })
    }
}

fn observe(tool_use: &ToolUse) -> CompressedObservation {
    let call = Call::new(tool_use);
    let draft = match call.failure() {
        None | Some(ToolFailure::Failed(_)) if let Some((action, message)) = edit::failed_patch(&call) => {
            failed(&call, &action, &message)
        }
        Some(failure) if let Some(draft) = plan::read_declined(&call, &failure) => draft,
        Some(failure) if !shell::is_shell(&call) || !matches!(failure, ToolFailure::Failed(_)) => {
            describe_failure(&call, &failure)
        }
        _ => apply_readers(&call),
    };
    // Readers may have copied terminal escapes from the input or the output.
    let title = clean(&draft.title).into_owned();
    // The limit is in bytes and is used as a number of characters, because most characters have one byte.
    let room = call.observation_bytes().map_or(MAX_SUMMARY_CHARS, |all| all.saturating_sub(title.len() + 8));
    let summary = match one_line(&clean(&draft.summary), room.min(MAX_SUMMARY_CHARS)) {
        summary if summary.is_empty() => format!("{}.", complete(&title, call.tool)),
        summary => summary,
    };
    CompressedObservation {
        title: shorten(&complete(&title, call.tool), MAX_TITLE_CHARS),
        summary,
        detail: draft.detail.map(|detail| clean(&detail).into_owned()),
        files_touched: unique(draft.files).filter(|file| !file.is_empty()).take(MAX_FILES).collect(),
        functions_changed: draft.functions.into_iter().take(MAX_FUNCTIONS).collect(),
    }
}

fn apply_readers(call: &Call<'_>) -> Draft {
    let readers: [fn(&Call<'_>) -> Option<Draft>; 8] =
        [mcp::read, edit::read, shell::read, read::read, search::read, web::read, delegate::read, plan::read];
    readers.iter().find_map(|read| read(call)).unwrap_or_else(|| other::read(call))
}

/// Describes a tool use that was declined, not started or failed.
fn describe_failure(call: &Call<'_>, failure: &ToolFailure) -> Draft {
    let action = intention(call);
    match failure {
        ToolFailure::Declined(reason) => {
            let mut summary = format!("The user declined to let {} run; nothing was done.", call.tool);
            if let Some(reason) = reason {
                summary.push_str(&format!(" They said: \"{}\"", one_line(reason, 400)));
            }
            proposed(call, title(&action, Some("declined by user")), summary)
        }
        ToolFailure::NotRun => {
            let summary = format!("{} was not run, because another call at the same time failed.", call.tool);
            proposed(call, title(&action, Some("not run")), summary)
        }
        ToolFailure::Failed(message) => failed(call, &action, message),
    }
}

/// Creates a draft with the change or the command that was not executed.
fn proposed(call: &Call<'_>, title: String, summary: String) -> Draft {
    let mut lines = edit::proposed_lines(call);
    if let Some(command) = call.input_text(&["command", "cmd"]) {
        lines.extend(command.lines().map(str::to_owned));
    }
    Draft::filled(call, title, summary, |detail| {
        if !lines.is_empty() {
            detail.line("Proposed:");
            detail.counted_lines(&lines);
        }
    })
}

fn failed(call: &Call<'_>, action: &str, message: &str) -> Draft {
    let reason = first_line(message).trim_start_matches("Error: ");
    let summary = format!("{} failed: {}", call.tool, one_line(message, 500));
    let outcome =
        if reason.is_empty() { "failed".to_owned() } else { format!("failed, {}", one_line(reason, 48)) };
    Draft::filled(call, title(action, Some(&outcome)), summary, |detail| {
        if message.len() > 500 {
            detail.lines(super::lines::error_lines(message));
        }
    })
}

/// Describes what a tool was asked to do.
fn intention(call: &Call<'_>) -> String {
    if let Some(command) = call.input_text(&["command", "cmd"]) {
        return call
            .input_text(&["description"])
            .map_or_else(|| format!("Run `{}`", one_line(command, 60)), str::to_owned);
    }
    let path = call.input_text(&["file_path", "path", "notebook_path", "filePath"]);
    match (call.input_text(&["pattern"]), path) {
        (Some(pattern), Some(path)) => {
            return format!("{} '{}' in {}", call.tool, one_line(pattern, 60), call.path(path));
        }
        (Some(pattern), None) => return format!("{} '{}'", call.tool, one_line(pattern, 70)),
        (None, Some(path)) => return format!("{} {}", call.tool, call.path(path)),
        (None, None) => {}
    }
    if let Some(plan) = call.input_text(&["plan"]) {
        return format!("Propose {}", one_line(first_line(plan).trim_start_matches(['#', ' ']), 80));
    }
    let subject = call.input_text(&["description", "query", "url", "subject", "task_id", "id", "prompt"]);
    subject.map_or_else(
        || format!("Use {} tool", call.tool),
        |subject| format!("{} {}", call.tool, one_line(subject, 70)),
    )
}
