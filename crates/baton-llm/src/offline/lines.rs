//! Selection of output lines to keep: lines that mention errors, and lines with the most facts.

use std::collections::HashSet;
use std::sync::LazyLock;

use baton_core::{shorten, starts_with_any};
use baton_observation::is_truncation_marker;
use regex::Regex;

use super::facts::{MAX_DETAIL_LINE, is_name, is_path};
use super::text::{MAX_LINE_BYTES, head, split_digits};

/// Maximum number of different lines that are ranked.
const MAX_LINES: usize = 4_000;
/// Maximum number of error lines.
const MAX_ERRORS: usize = 400;

/// Returns the lines of a text that mention an error, in order and without duplicates. A location on a
/// separate line is added. Of a Python traceback, only the exception is kept.
pub(super) fn error_lines(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    let mut traceback = Traceback::default();
    // Index and line number of the last error, whose location may follow.
    let mut open: Option<(usize, usize)> = None;
    for (number, line) in text.lines().enumerate() {
        let is_inside = traceback.read(line);
        let line = head(line.trim(), MAX_LINE_BYTES);
        if let Some(at) = place_of(line)
            && let Some((index, since)) = open
            && number - since <= MAX_FRAMES
        {
            if let Some(error) = found.get_mut(index).filter(|error| !error.contains(at)) {
                error.push_str(&format!(" ({at})"));
            }
            open = None;
        }
        if is_inside || !(mentions_error(line) || traceback.has_ended) || !seen.insert(shape(line)) {
            continue;
        }
        let mut error = line.to_owned();
        match traceback.place.take().filter(|_| is_exception(line)) {
            Some(place) => error.push_str(&format!(" ({place})")),
            None => open = Some((found.len(), number)),
        }
        found.push(error);
        if found.len() >= MAX_ERRORS {
            break;
        }
    }
    found
}

/// Returns the first line that states a failure of any program.
pub(super) fn failure_line(text: &str) -> Option<&str> {
    const STARTS: &str = "error: |error[E|fatal: |panic: |Traceback (most recent call last)|CONFLICT (|\
        make: *** |npm ERR! |npm error |--- FAIL: |FAIL\t|FAILED |! [rejected]|! [remote rejected]";
    text.lines().map(str::trim).find(|line| {
        starts_with_any(line, STARTS) || *line == "FAIL" || line.ends_with(": command not found")
    })
}

/// Maximum number of lines between an error and its location.
const MAX_FRAMES: usize = 6;

/// Returns the location in `--> src/a.rs:3:5` below a Rust error, or in `at load (/app/src/a.js:3:5)` below a
/// JavaScript error.
fn place_of(line: &str) -> Option<&str> {
    let place = match line.strip_prefix("--> ") {
        Some(place) => place,
        None => {
            let frame = line.strip_prefix("at ")?;
            frame.rsplit_once('(').map_or(frame, |(_, place)| place).trim_end_matches(')')
        }
    };
    let is_place = place.contains(':') && place.ends_with(|letter: char| letter.is_ascii_digit());
    (is_place && !place.contains("node:") && !place.contains("node_modules")).then_some(place)
}

/// Returns true if a line is the last one of a traceback: `ValueError: bad`, `app.errors.NotFound`.
fn is_exception(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'))
        && name
            .rsplit('.')
            .next()
            .is_some_and(|last| last.starts_with(|letter: char| letter.is_ascii_uppercase()))
}

/// Follows a traceback of Python: its frames are indented, the exception after them is not.
#[derive(Default)]
struct Traceback {
    is_open: bool,
    /// Whether the line that was read last is the exception.
    has_ended: bool,
    place: Option<String>,
}

impl Traceback {
    /// Reads a line. Returns true if the line belongs to the frames.
    fn read(&mut self, line: &str) -> bool {
        self.has_ended = false;
        if line.trim_start().starts_with("Traceback (most recent call last)") {
            self.is_open = true;
            return true;
        }
        if let Some(frame) = line.trim_start().strip_prefix("File \"") {
            let file = frame.split(['"', ',']).next().unwrap_or_default().trim();
            let (number, _) = split_digits(frame.split("line ").nth(1).unwrap_or_default());
            self.place = Some(format!("{file}:{number}"));
            return true;
        }
        if self.is_open && (line.starts_with(' ') || line.trim().is_empty()) {
            return true;
        }
        self.has_ended = std::mem::take(&mut self.is_open);
        false
    }
}

/// Returns true if a line mentions an error. A line that denies errors, such as `0 errors`, does not.
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
    let matches = |words: &Option<Regex>| words.as_ref().is_some_and(|words| words.is_match(line));
    // Compilers quote source lines below their messages.
    let is_quoted = line.starts_with('|') || line.starts_with('^');
    line.len() > 3 && !is_quoted && matches(&ERROR_WORDS) && !matches(&NO_ERROR_WORDS)
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
        } else if !is_fenced && !line.is_empty() && !is_truncation_marker(line) && lines.len() < MAX_LINES {
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
    fn the_exception_of_a_traceback_is_kept_with_its_place() {
        let python = "Traceback (most recent call last):\n  File \"/app/main.py\", line 3, in <module>\n    run()\n  File \"/app/load.py\", line 12, in run\n    raise KeyError(name)\nKeyError: 'name'\n";
        assert_eq!(error_lines(python), ["KeyError: 'name' (/app/load.py:12)"]);
        let syntax = "  File \"a.py\", line 2\n    def f(\n         ^\nSyntaxError: '(' was never closed\n";
        assert_eq!(error_lines(syntax), ["SyntaxError: '(' was never closed (a.py:2)"]);
    }

    #[test]
    fn the_place_below_an_error_is_added() {
        let rust = "error[E0425]: cannot find value `x` in this scope\n --> src/a.rs:3:5\n  |\n3 |     x\n";
        assert_eq!(error_lines(rust), ["error[E0425]: cannot find value `x` in this scope (src/a.rs:3:5)"]);
        let node =
            "TypeError: x is not a function\n    at node:internal/a:1:2\n    at load (/app/src/a.js:3:5)\n";
        assert_eq!(error_lines(node), ["TypeError: x is not a function (/app/src/a.js:3:5)"]);
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
