//! Selection of output lines to keep: lines that mention errors, and lines with the most facts.

use std::collections::HashSet;
use std::sync::LazyLock;

use baton_core::observation::is_cut_mark;
use regex::Regex;

use super::facts::{MAX_DETAIL_LINE, is_name, is_path};
use super::text::{MAX_LINE_BYTES, head, shorten};

/// Maximum number of different lines that are ranked.
const MAX_LINES: usize = 4_000;
/// Maximum number of error lines.
const MAX_ERRORS: usize = 400;

/// Returns the lines of a text that mention an error, in order and without repetitions.
pub(super) fn error_lines(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for line in text.lines() {
        let line = head(line.trim(), MAX_LINE_BYTES);
        if !mentions_error(line) {
            continue;
        }
        if seen.insert(shape(line)) {
            found.push(line);
        }
        if found.len() >= MAX_ERRORS {
            break;
        }
    }
    found
}

/// Returns true if a line mentions an error.
fn mentions_error(line: &str) -> bool {
    static ERROR_WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            "(?i-u)error|fail|panic|fatal|exception|traceback|can(?:no|')t |undefined|not found|denied|no such file|unable to\
             |conflict|refused|timed out|not used|missing|invalid|unexpected",
        )
        .ok()
    });
    static NO_ERROR_WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            "(?i-u)\\b(?:0|no) (?:error|fail|problem)|(?:failed|failures|errors)[:=] ?0|error\"?[:=] ?null",
        )
        .ok()
    });
    let is_in = |marks: &Option<Regex>| marks.as_ref().is_some_and(|marks| marks.is_match(line));
    line.len() > 3 && is_in(&ERROR_WORDS) && !is_in(&NO_ERROR_WORDS)
}

/// Returns the lines of a text with the most facts for their length, in their order and at most `bytes` long in total.
/// Omits code between fences, and lines that contain only facts of lines with a higher rank.
pub(super) fn informative_lines(text: &str, bytes: usize) -> Vec<String> {
    let mut lines: Vec<(u64, &str)> = Vec::new();
    let mut seen = HashSet::new();
    let mut is_fenced = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && !line.is_empty() && !is_cut_mark(line) && lines.len() < MAX_LINES {
            let line = head(line, MAX_LINE_BYTES);
            if seen.insert(shape(line)) {
                lines.push((score(line), line));
            }
        }
    }
    let mut ranked: Vec<usize> = (0..lines.len()).collect();
    ranked.sort_by_key(|index| std::cmp::Reverse(lines.get(*index).map_or(0, |line| line.0)));
    let mut room = bytes;
    let mut chosen = Vec::new();
    let mut known_facts: HashSet<&str> = HashSet::new();
    for index in ranked.into_iter().take(MAX_LINES / 10) {
        let Some((value, line)) = lines.get(index).copied() else { continue };
        let short = shorten(line, MAX_DETAIL_LINE.min(bytes.max(60)));
        if value == 0 || short.len() + 1 > room {
            continue;
        }
        let facts: Vec<&str> = facts_of(line).map(|(fact, _)| fact).collect();
        if !facts.is_empty() && facts.iter().all(|fact| known_facts.contains(fact)) {
            continue;
        }
        known_facts.extend(facts);
        room -= short.len() + 1;
        chosen.push((index, short));
    }
    chosen.sort_by_key(|(index, _)| *index);
    chosen.into_iter().map(|(_, line)| line).collect()
}

/// Returns a line without its digits, so that messages that differ only in numbers are equal.
fn shape(line: &str) -> String {
    head(line, 160).chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// Returns the paths, names and numbers of a line with their weights.
fn facts_of(line: &str) -> impl Iterator<Item = (&str, u64)> {
    let separates = |letter: char| {
        letter.is_whitespace() || matches!(letter, '`' | '"' | '\'' | '(' | ')' | ',' | '[' | ']')
    };
    line.split(separates).filter_map(|word| {
        let word = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        if is_path(word) {
            Some((word, 3))
        } else if word.split(['.', ':', '/', '=']).any(is_name) || is_count(word) {
            Some((word, 2))
        } else {
            None
        }
    })
}

/// Returns the value of a line for its length. Prose scores higher than a line of code with the same names.
fn score(line: &str) -> u64 {
    let mut facts: u64 = facts_of(line).map(|(_, worth)| worth).sum();
    if line.starts_with('#') || line.starts_with("**") {
        facts += 2;
    }
    if mentions_error(head(line, 300)) {
        facts += 2;
    }
    if line.split_whitespace().take(4).count() < 4 || line.ends_with(['{', ';']) {
        facts = facts.div_ceil(2);
    }
    facts * 1_000 / (line.len() as u64 + 60)
}

fn is_count(word: &str) -> bool {
    word.len() > 1 && word.len() < 12 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_lines_are_kept_once() {
        let text = "ok\nerror: one at 1\nerror: one at 2\n0 errors\npanic: two\n";
        assert_eq!(error_lines(text), ["error: one at 1", "panic: two"]);
    }

    #[test]
    fn lines_that_deny_errors_are_not_errors() {
        for line in ["0 errors", "no failures today", "2 passed, failed: 0", "\"error\": null"] {
            assert!(!mentions_error(line), "{line}");
        }
        for line in
            ["TypeError: x", "cannot open a.txt", "can't open", "10 errors", "fatal: not a repository"]
        {
            assert!(mentions_error(line), "{line}");
        }
    }

    #[test]
    fn lines_with_the_most_facts_keep_their_order() {
        let text = "Nothing to see here at all\nSaved by `save_session` in src/session.rs\n```\nlet save_session = 1;\n```\nRead by `load_session` after 250 ms\n";
        assert_eq!(
            informative_lines(text, 100),
            ["Saved by `save_session` in src/session.rs", "Read by `load_session` after 250 ms"]
        );
    }
}
