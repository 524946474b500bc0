//! Decides whether every line of a log belongs to the output of a passing run.

use baton_core::contains_any;

use super::report::shorten_line;
use super::{
    black, cargo, clippy, eslint, go, jest, mocha, mypy, nextest, npm, prettier, pytest, ruff, tap, tsc,
    unittest,
};

/// A complete output of a passing run at the start of some lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    /// Number of lines.
    pub(super) lines: usize,
    /// Word by which a command line names the tool.
    pub(super) tool: &'static str,
}

impl Section {
    pub(super) fn new(tool: &'static str, lines: usize) -> Option<Self> {
        (lines > 0).then_some(Self { lines, tool })
    }
}

type Matcher = fn(&[&str]) -> Option<Section>;

/// Mocha comes last: its output has no line that marks its beginning.
const MATCHERS: [Matcher; 19] = [
    cargo::clean,
    nextest::clean,
    clippy::clean_json,
    pytest::clean,
    unittest::clean,
    jest::clean_jest,
    jest::clean_vitest,
    jest::clean_json,
    tap::clean_tap,
    tap::clean_spec,
    go::clean,
    go::clean_json,
    eslint::clean,
    prettier::clean,
    tsc::clean,
    ruff::clean,
    black::clean,
    mypy::clean,
    mocha::clean,
];

/// Words that do not appear in harmless output. A line with one of them is never skipped as free text.
const ALARMS: &str = "error|fail|panic|not found|exception|traceback|fatal|abort|killed|cannot|denied|no such|\
    segmentation|exit code|exit status|timed out|timeout|unrecogni|usage:|not ok|would reformat|warn|✖|✕";

/// Returns true if output of a test may contain this line without casting doubt on the result.
pub(super) fn is_harmless(line: &str) -> bool {
    !contains_any(&line.to_lowercase(), ALARMS)
}

/// Finds the first line that is not part of the output of a passing run; none if the whole log is.
pub(super) fn first_unexplained(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut rest: &[&str] = &lines;
    // The command of a script header, which the next section must belong to.
    let mut command: Option<&str> = None;
    while let Some(first) = rest.first() {
        if first.is_empty() {
            rest = &rest[1..];
            continue;
        }
        if let Some(header) = npm::header(rest) {
            if let Some(earlier) = command.filter(|_| header.command.is_some()) {
                return Some(shorten_line(earlier));
            }
            command = header.command.or(command);
            rest = rest.get(header.lines..).unwrap_or_default();
            continue;
        }
        let Some(section) = MATCHERS.iter().find_map(|matches| matches(rest)) else {
            return Some(shorten_line(first));
        };
        if let Some(command) = command.take().filter(|command| !command.contains(section.tool)) {
            return Some(shorten_line(command));
        }
        rest = rest.get(section.lines..).unwrap_or_default();
    }
    command.map(shorten_line)
}
