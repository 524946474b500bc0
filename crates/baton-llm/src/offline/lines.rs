//! Lines of an output that are worth keeping as they are: those that tell of errors, and those with the most facts.

use std::collections::HashSet;
use std::sync::LazyLock;

use baton_core::observation::is_cut_mark;
use regex::Regex;

use super::facts::{MAX_DETAIL_LINE, is_name, is_path};
use super::text::{MAX_LINE_BYTES, head, shorten};

/// How many different lines of an output are ranked.
const MAX_LINES: usize = 4_000;
/// How many lines that tell of errors are found.
const MAX_ERRORS: usize = 400;

/// Lines of a text that tell of an error, in their order, without repetitions.
pub(super) fn error_lines(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for line in text.lines() {
        let line = head(line.trim(), MAX_LINE_BYTES);
        if !tells_of_an_error(line) {
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

/// Tells whether a line speaks of something that went wrong.
fn tells_of_an_error(line: &str) -> bool {
    static MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            "(?i-u)error|fail|panic|fatal|exception|traceback|can(?:no|')t |undefined|not found|denied|no such file|unable to\
             |conflict|refused|timed out|not used|missing|invalid|unexpected",
        )
        .ok()
    });
    static CALM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            "(?i-u)\\b(?:0|no) (?:error|fail|problem)|(?:failed|failures|errors)[:=] ?0|error\"?[:=] ?null",
        )
        .ok()
    });
    let is_in = |marks: &Option<Regex>| marks.as_ref().is_some_and(|marks| marks.is_match(line));
    line.len() > 3 && is_in(&MARKS) && !is_in(&CALM)
}

/// The lines of a text that hold the most facts for their length, in their order, together at most `bytes` long. A line
/// that has only facts of lines before it in rank is left out, and so is code between fences.
pub(super) fn telling_lines(text: &str, bytes: usize) -> Vec<String> {
    let mut lines: Vec<(u64, &str)> = Vec::new();
    let mut seen = HashSet::new();
    let mut is_fenced = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && !line.is_empty() && !is_cut_mark(line) && lines.len() < MAX_LINES {
            let line = head(line, MAX_LINE_BYTES);
            if seen.insert(shape(line)) {
                lines.push((telling(line), line));
            }
        }
    }
    let mut ranked: Vec<usize> = (0..lines.len()).collect();
    ranked.sort_by_key(|index| std::cmp::Reverse(lines.get(*index).map_or(0, |line| line.0)));
    let mut room = bytes;
    let mut chosen = Vec::new();
    let mut told: HashSet<&str> = HashSet::new();
    for index in ranked.into_iter().take(MAX_LINES / 10) {
        let Some((value, line)) = lines.get(index).copied() else { continue };
        let short = shorten(line, MAX_DETAIL_LINE.min(bytes.max(60)));
        if value == 0 || short.len() + 1 > room {
            continue;
        }
        let facts: Vec<&str> = facts_of(line).map(|(fact, _)| fact).collect();
        if !facts.is_empty() && facts.iter().all(|fact| told.contains(fact)) {
            continue;
        }
        told.extend(facts);
        room -= short.len() + 1;
        chosen.push((index, short));
    }
    chosen.sort_by_key(|(index, _)| *index);
    chosen.into_iter().map(|(_, line)| line).collect()
}

/// A line without its numbers: the same message about another number has the same shape.
fn shape(line: &str) -> String {
    head(line, 160).chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// The paths, names and numbers of a line, and what each is worth.
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

/// How much a line tells for its length. Prose tells more than a line of code with the same names.
fn telling(line: &str) -> u64 {
    let mut facts: u64 = facts_of(line).map(|(_, worth)| worth).sum();
    if line.starts_with('#') || line.starts_with("**") {
        facts += 2;
    }
    if tells_of_an_error(head(line, 300)) {
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
    fn calm_lines_are_no_errors() {
        for line in ["0 errors", "no failures today", "2 passed, failed: 0", "\"error\": null"] {
            assert!(!tells_of_an_error(line), "{line}");
        }
        for line in
            ["TypeError: x", "cannot open a.txt", "can't open", "10 errors", "fatal: not a repository"]
        {
            assert!(tells_of_an_error(line), "{line}");
        }
    }

    #[test]
    fn the_lines_with_the_most_facts_stay_in_their_order() {
        let text = "Nothing to see here at all\nSaved by `save_session` in src/session.rs\n```\nlet save_session = 1;\n```\nRead by `load_session` after 250 ms\n";
        assert_eq!(
            telling_lines(text, 100),
            ["Saved by `save_session` in src/session.rs", "Read by `load_session` after 250 ms"]
        );
    }
}
