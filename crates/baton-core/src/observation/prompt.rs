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

/// Version of the prompt template for observations.
pub const COMPRESS_PROMPT_VERSION: &str = "compress-v1";
/// Version of the prompt template for session summaries.
pub const SUMMARIZE_PROMPT_VERSION: &str = "summarize-v1";

const COMPRESS: &str = include_str!("prompts/compress-v1.txt");
const SUMMARIZE: &str = include_str!("prompts/summarize-v1.txt");

const MAX_TOOL_NAME_CHARS: usize = 100;
/// Maximum length of the list of files in characters. It is small, so that the prompt consists mainly of the output.
const MAX_FILES_CHARS: usize = 300;
const MAX_DIGEST_CHARS: usize = 1_300;
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

/// Returns the prompt for the observation of a tool use.
pub fn compress_prompt(tool_use: &ToolUse, delimiter: Delimiter) -> String {
    let rendered = render(tool_use);
    let files: Vec<String> =
        files_of(tool_use).into_iter().map(|file| one_line(file, MAX_FILES_CHARS)).collect();
    let files = if files.is_empty() { "none".to_owned() } else { files.join(", ") };
    fill(
        COMPRESS,
        &[
            ("tool_name", &one_line(&tool_use.tool_name, MAX_TOOL_NAME_CHARS)),
            ("files_touched", first_characters(&files, MAX_FILES_CHARS)),
            ("raw_output", &cut_output(&rendered)),
            ("tag", &delimiter.tag("tool_output")),
        ],
    )
}

/// Returns the prompt for a session summary; `None` if there are no observations.
pub fn summarize_prompt(material: &SessionMaterial, delimiter: Delimiter) -> Option<String> {
    if material.digests.is_empty() {
        return None;
    }
    let previous = material.previous.as_ref().map(previous_line);
    let lines = previous.into_iter().chain(material.digests.iter().map(digest_line));
    let lines = lines.collect::<Vec<_>>().join("\n");
    let tag = delimiter.tag("observations");
    Some(fill(SUMMARIZE, &[("observations", &cut_list(&lines)), ("tag", &tag)]))
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
