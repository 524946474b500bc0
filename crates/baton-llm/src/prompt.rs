//! Prompts for models. The templates are files with a version in their name. A template in use is never
//! changed; a new template gets the next number.
//!
//! Tool output is untrusted data. It is enclosed in tags with a random suffix, placeholders are replaced only in the
//! template, and the template states that the text between the tags is not an instruction.

use baton_core::observation::{Digest, SessionMaterial, TurnText};
use baton_core::{first_characters, one_line};
use baton_observation::{ToolUse, input_files, render, truncate_list, truncate_output};

/// Version and template of the prompt for an observation without the turn of the tool use.
const COMPRESS_V1: (&str, &str) = ("compress-v1", include_str!("prompts/compress-v1.txt"));
/// Version and template of the prompt for an observation with the turn of the tool use.
const COMPRESS_V2: (&str, &str) = ("compress-v2", include_str!("prompts/compress-v2.txt"));
/// Version and template of the prompt for a session summary without turns and notes.
const SUMMARIZE_V1: (&str, &str) = ("summarize-v1", include_str!("prompts/summarize-v1.txt"));
/// Version and template of the prompt for a session summary with turns or notes.
const SUMMARIZE_V2: (&str, &str) = ("summarize-v2", include_str!("prompts/summarize-v2.txt"));

const MAX_TOOL_NAME_CHARS: usize = 100;
/// Maximum length of the list of files in characters. It is small, so that the prompt consists mainly of the output.
const MAX_FILES_CHARS: usize = 300;
const MAX_DIGEST_CHARS: usize = 1_300;
/// Maximum length of the request and of the closing message of a turn in a prompt for an observation.
const MAX_CONTEXT_CHARS: usize = 1_500;
/// Maximum length of a request, a closing message or a note in a prompt for a summary.
const MAX_TURN_CHARS: usize = 1_200;
/// Maximum length of the request and of the closing message of the last turn.
const MAX_LAST_TURN_CHARS: usize = 4_000;
/// Maximum length of all turns in a prompt for a summary.
const MAX_TURNS_CHARS: usize = 12_000;
/// Maximum length of all notes in a prompt for a summary.
const MAX_NOTES_CHARS: usize = 6_000;

/// Random suffix of the tags around data, new for every prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delimiter(u64);

impl Delimiter {
    /// Creates a delimiter from random bits, which must be unpredictable for the author of the data.
    pub(crate) const fn new(random: u64) -> Self {
        Self(random)
    }

    fn tag(self, name: &str) -> String {
        format!("{name}_{:016x}", self.0)
    }
}

/// A prompt and the version of its template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    /// Version of the template, for example `compress-v2`.
    pub(crate) version: &'static str,
}

/// Returns the prompt for the observation of a tool use. With its turn, the prompt also has the request of the user and the
/// closing message of the agent.
pub(crate) fn compress_prompt(tool_use: &ToolUse, delimiter: Delimiter) -> Prompt {
    let rendered = render(tool_use);
    let files: Vec<String> =
        input_files(tool_use).into_iter().map(|file| one_line(file, MAX_FILES_CHARS)).collect();
    let files = if files.is_empty() { "none".to_owned() } else { files.join(", ") };
    let or_none =
        |text: &str| if text.is_empty() { "none".to_owned() } else { one_line(text, MAX_CONTEXT_CHARS) };
    let turn = tool_use.turn.as_ref().filter(|turn| !turn.prompt.is_empty() || turn.closing.is_some());
    let (request, closing) = turn.map_or_else(Default::default, |turn| {
        (or_none(&turn.prompt), or_none(turn.closing.as_deref().unwrap_or_default()))
    });
    let (version, template) = if turn.is_some() { COMPRESS_V2 } else { COMPRESS_V1 };
    let text = fill(
        template,
        &[
            ("tool_name", &one_line(&tool_use.tool_name, MAX_TOOL_NAME_CHARS)),
            ("files_touched", first_characters(&files, MAX_FILES_CHARS)),
            ("raw_output", &truncate_output(&rendered)),
            ("tag", &delimiter.tag("tool_output")),
            ("context_tag", &delimiter.tag("turn")),
            ("request", &request),
            ("closing", &closing),
        ],
    );
    Prompt { text, version }
}

/// Returns the prompt for a session summary; `None` if there is nothing to summarize. A long session loses its middle,
/// never its end.
pub(crate) fn summarize_prompt(material: &SessionMaterial, delimiter: Delimiter) -> Option<Prompt> {
    if material.is_empty() {
        return None;
    }
    let observations = match material.digests.as_slice() {
        [] => "none".to_owned(),
        digests => digests.iter().map(digest_line).collect::<Vec<_>>().join("\n"),
    };
    let notes = material.notes.iter().map(|note| labelled("note", &note.line(), MAX_TURN_CHARS)).collect();
    let turns: Vec<String> =
        [within(turn_lines(&material.turns), MAX_TURNS_CHARS), within(notes, MAX_NOTES_CHARS)].concat();
    let (version, template) = if turns.is_empty() { SUMMARIZE_V1 } else { SUMMARIZE_V2 };
    let text = fill(
        template,
        &[
            ("observations", &truncate_list(&observations)),
            ("turns", &turns.join("\n")),
            ("tag", &delimiter.tag("observations")),
            ("turns_tag", &delimiter.tag("turns")),
        ],
    );
    Some(Prompt { text, version })
}

/// Formats the texts of turns, oldest first. The last turn has more room, because it has the outcome.
fn turn_lines(turns: &[TurnText]) -> Vec<String> {
    let has_text = |turn: &TurnText| !turn.prompt.is_empty() || turn.closing.is_some();
    let last = turns.iter().rposition(has_text);
    let mut lines = Vec::new();
    for (position, turn) in turns.iter().enumerate() {
        let max = if Some(position) == last { MAX_LAST_TURN_CHARS } else { MAX_TURN_CHARS };
        if !turn.prompt.is_empty() {
            lines.push(labelled("request", &turn.prompt, max));
        }
        lines.extend(turn.closing.as_deref().map(|closing| labelled("closing message", closing, max)));
    }
    lines
}

fn labelled(name: &str, text: &str, max: usize) -> String {
    format!("- [{name}] {}", one_line(text, max))
}

/// Keeps the first line and the newest ones within a number of characters, with the number of lines left out.
fn within(mut lines: Vec<String>, max: usize) -> Vec<String> {
    let mut length: usize = lines.iter().map(|line| line.chars().count() + 1).sum();
    let mut left_out = 0;
    while lines.len() - left_out > 2 && length > max {
        left_out += 1;
        length -= lines[left_out].chars().count() + 1;
    }
    if left_out > 0 {
        lines.splice(1..=left_out, [format!("- [{left_out} lines left out]")]);
    }
    lines
}

fn digest_line(digest: &Digest) -> String {
    let line = format!("- [{}] {}: {}", digest.tool_name, digest.title, digest.summary);
    one_line(&line, MAX_DIGEST_CHARS)
}

/// Replaces the placeholders of a template in one pass, so that placeholders in values are not replaced.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let size: usize = values.iter().map(|(_, value)| value.len()).sum();
    let mut filled = String::with_capacity(template.len() + size + 64);
    let mut rest = template;
    while let Some(brace) = rest.find('{') {
        let (before, from) = rest.split_at(brace);
        filled.push_str(before);
        let placeholder = values.iter().find_map(|(name, value)| {
            let after = from.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?;
            Some((value, after))
        });
        rest = match placeholder {
            Some((value, after)) => {
                filled.push_str(value);
                after
            }
            None => {
                filled.push('{');
                &from[1..]
            }
        };
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
