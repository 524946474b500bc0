//! Prompts for models. The templates are files with a version in their name: a template in use is never changed; a new
//! one gets the next number.
//!
//! Tool output is untrusted data. It is enclosed in tags with a random suffix, placeholders are replaced only in the
//! template, and the template states that the text between the tags is not an instruction.

use super::cut::{MAX_RAW_CHARS, cut_list, cut_output};
use super::plain::{first_characters, one_line};
use super::render::{files_of, render};
use super::summary::{Digest, SessionMaterial, SessionSummary};
use super::tool_use::ToolUse;

/// Versions of the prompt templates for observations: without and with the turn of the tool use.
const COMPRESS_V1: (&str, &str) = ("compress-v1", include_str!("prompts/compress-v1.txt"));
const COMPRESS_V2: (&str, &str) = ("compress-v2", include_str!("prompts/compress-v2.txt"));
/// Versions of the prompt templates for session summaries: without and with turns or notes.
const SUMMARIZE_V1: (&str, &str) = ("summarize-v1", include_str!("prompts/summarize-v1.txt"));
const SUMMARIZE_V2: (&str, &str) = ("summarize-v2", include_str!("prompts/summarize-v2.txt"));

const MAX_TOOL_NAME_CHARS: usize = 100;
/// Maximum length of the list of files in characters. It is small, so that the prompt consists mainly of the output.
const MAX_FILES_CHARS: usize = 300;
const MAX_DIGEST_CHARS: usize = 1_300;
/// Maximum length of the request and of the closing message of a turn in a prompt for an observation.
const MAX_CONTEXT_CHARS: usize = 1_500;
/// Maximum length of a text of a turn or a note in a prompt for a summary, and of all of them.
const MAX_TURN_CHARS: usize = 1_200;
const MAX_TURNS_CHARS: usize = 12_000;
const MAX_PREVIOUS_CHARS: usize = 6_000;

/// Random suffix of the tags around data, new for every prompt.
#[derive(Debug, Clone, Copy)]
pub struct Delimiter(u64);

impl Delimiter {
    /// Creates a delimiter from random bits, which must be unpredictable for the author of the data.
    pub const fn new(random: u64) -> Self {
        Self(random)
    }

    fn tag(self, name: &str) -> String {
        format!("{name}_{:016x}", self.0)
    }
}

/// A prompt and the version of its template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The prompt.
    pub text: String,
    /// Version of the template, for example `compress-v2`.
    pub version: &'static str,
}

/// Returns the prompt for the observation of a tool use. With its turn, the prompt also has the request of the user and the
/// closing message of the agent.
pub fn compress_prompt(tool_use: &ToolUse, delimiter: Delimiter) -> Prompt {
    let rendered = render(tool_use);
    let files: Vec<String> =
        files_of(tool_use).into_iter().map(|file| one_line(file, MAX_FILES_CHARS)).collect();
    let files = if files.is_empty() { "none".to_owned() } else { files.join(", ") };
    let told =
        |text: &str| if text.is_empty() { "none".to_owned() } else { one_line(text, MAX_CONTEXT_CHARS) };
    let turn = tool_use.turn.as_ref().filter(|turn| !turn.prompt.is_empty() || turn.closing.is_some());
    let (version, template) = if turn.is_some() { COMPRESS_V2 } else { COMPRESS_V1 };
    let text = fill(
        template,
        &[
            ("tool_name", &one_line(&tool_use.tool_name, MAX_TOOL_NAME_CHARS)),
            ("files_touched", first_characters(&files, MAX_FILES_CHARS)),
            ("raw_output", &cut_output(&rendered)),
            ("tag", &delimiter.tag("tool_output")),
            ("context_tag", &delimiter.tag("turn")),
            ("request", &turn.map_or_else(String::new, |turn| told(&turn.prompt))),
            (
                "closing",
                &turn.map_or_else(String::new, |turn| told(turn.closing.as_deref().unwrap_or_default())),
            ),
        ],
    );
    Prompt { text, version }
}

/// Returns the prompt for a session summary; `None` if there are no observations.
pub fn summarize_prompt(material: &SessionMaterial, delimiter: Delimiter) -> Option<Prompt> {
    if material.digests.is_empty() {
        return None;
    }
    let previous = material.previous.as_ref().map(previous_line);
    let lines = previous.into_iter().chain(material.digests.iter().map(digest_line));
    let lines = lines.collect::<Vec<_>>().join("\n");
    let turns = turn_lines(material);
    let (version, template) = if turns.is_empty() { SUMMARIZE_V1 } else { SUMMARIZE_V2 };
    let text = fill(
        template,
        &[
            ("observations", &cut_list(&lines)),
            ("turns", &turns),
            ("tag", &delimiter.tag("observations")),
            ("turns_tag", &delimiter.tag("turns")),
        ],
    );
    Some(Prompt { text, version })
}

/// Formats turns and notes, oldest first. If there are too many, the first turn and the newest ones are kept, with the
/// number of those left out.
fn turn_lines(material: &SessionMaterial) -> String {
    let part = |name: &str, text: &str| format!("- [{name}] {}", one_line(text, MAX_TURN_CHARS));
    let turns = material.turns.iter().filter(|turn| !turn.prompt.is_empty() || turn.closing.is_some());
    let mut lines: Vec<String> = turns
        .flat_map(|turn| {
            let request = (!turn.prompt.is_empty()).then(|| part("request", &turn.prompt));
            request.into_iter().chain(turn.closing.as_deref().map(|closing| part("closing message", closing)))
        })
        .chain(material.notes.iter().map(|note| part("note", &note.line())))
        .collect();
    let length = |lines: &[String]| lines.iter().map(|line| line.chars().count() + 1).sum::<usize>();
    let mut left_out = 0;
    while lines.len() > 2 && length(&lines) > MAX_TURNS_CHARS {
        lines.remove(1);
        left_out += 1;
    }
    if left_out > 0 {
        lines.insert(1, format!("- [{left_out} lines left out]"));
    }
    lines.join("\n")
}

/// Returns the number of observations, from the first on, that fit in one prompt; at least one. The rest is left to the
/// next prompt, which starts with the summary of these.
pub fn digests_in_prompt(material: &SessionMaterial) -> usize {
    let taken_by = |line: String| line.chars().count() + 1;
    let mut taken = material.previous.as_ref().map_or(0, |previous| taken_by(previous_line(previous)));
    let fits = material.digests.iter().take_while(|digest| {
        taken += taken_by(digest_line(digest));
        taken <= MAX_RAW_CHARS
    });
    fits.count().max(1)
}

fn digest_line(digest: &Digest) -> String {
    let line = format!("- [{}] {}: {}", digest.tool_name, digest.title, digest.summary);
    one_line(&line, MAX_DIGEST_CHARS)
}

/// Formats the previous summary as the first line of the observations.
fn previous_line(previous: &SessionSummary) -> String {
    let mut line = format!("- [earlier] {}", previous.summary);
    for (name, entries) in [("Key files", &previous.key_files), ("Key decisions", &previous.key_decisions)] {
        if !entries.is_empty() {
            line.push_str(&format!(" {name}: {}.", entries.join("; ")));
        }
    }
    one_line(&line, MAX_PREVIOUS_CHARS)
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
