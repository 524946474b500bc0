//! What a model is asked. The wordings are files with a version in their name: a wording that is in use is never
//! changed, a new one gets the next number.
//!
//! What a tool said is data. It stands between tags that nobody can guess who wrote it, placeholders are looked for in
//! the wording alone, and the wording says that nothing in between is an instruction.

use super::cut::{MAX_RAW_CHARS, cut_list, cut_output};
use super::plain::{first_characters, one_line};
use super::render::{files_of, render};
use super::summary::{Digest, SessionMaterial, SessionSummary};
use super::tool_use::ToolUse;

/// The version of the wording that asks for an observation.
pub const COMPRESS_PROMPT_VERSION: &str = "compress-v1";
/// The version of the wording that asks for the summary of a session.
pub const SUMMARIZE_PROMPT_VERSION: &str = "summarize-v1";

const COMPRESS: &str = include_str!("prompts/compress-v1.txt");
const SUMMARIZE: &str = include_str!("prompts/summarize-v1.txt");

const MAX_TOOL_NAME_CHARS: usize = 100;
/// How many characters the list of files may have: little, so that the wording stays small beside the output.
const MAX_FILES_CHARS: usize = 300;
const MAX_DIGEST_CHARS: usize = 1_300;
const MAX_PREVIOUS_CHARS: usize = 6_000;

/// What makes the tags around data unlike anything in it. Drawn anew for every prompt.
#[derive(Debug, Clone, Copy)]
pub struct Delimiter(u64);

impl Delimiter {
    /// Makes one from random bits, which whoever wrote the data must not be able to foresee.
    pub const fn new(random: u64) -> Self {
        Self(random)
    }

    fn tag(self, name: &str) -> String {
        format!("{name}_{:016x}", self.0)
    }
}

/// Writes the prompt that asks for an observation of one use of a tool.
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

/// Writes the prompt that asks for the summary of a session; none when there is nothing to summarize.
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

/// Tells how many observations of a session, from the first on, one prompt has room for: one at least. What is beyond is
/// for the next prompt, which then begins with the summary of these.
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

/// The summary of what came before, as the first of the observations.
fn previous_line(previous: &SessionSummary) -> String {
    let mut line = format!("- [earlier] {}", previous.summary);
    for (name, entries) in [("Key files", &previous.key_files), ("Key decisions", &previous.key_decisions)] {
        if !entries.is_empty() {
            line.push_str(&format!(" {name}: {}.", entries.join("; ")));
        }
    }
    one_line(&line, MAX_PREVIOUS_CHARS)
}

/// Puts values in the places of a wording, in one pass: what a value holds is never taken for a place.
fn fill(wording: &str, values: &[(&str, &str)]) -> String {
    let size: usize = values.iter().map(|(_, value)| value.len()).sum();
    let mut filled = String::with_capacity(wording.len() + size + 64);
    let mut rest = wording;
    while let Some(brace) = rest.find('{') {
        let (before, from) = rest.split_at(brace);
        filled.push_str(before);
        let place = values.iter().find_map(|(name, value)| {
            let after = from.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?;
            Some((value, after))
        });
        rest = match place {
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
