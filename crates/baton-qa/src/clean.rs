//! Decides whether every line of a log belongs to the output of a passing run.

use super::report::quoted_line;
use super::section::Section;
use super::{
    black, cargo, clippy, eslint, go, jest, mocha, mypy, nextest, npm, prettier, pytest, ruff, tap, tsc,
    unittest,
};

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

/// Returns the first line that is not part of the output of a passing run; `None` if every line is.
pub(super) fn first_unexplained(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut rest: &[&str] = &lines;
    // Command of a script header. The next section must be its output.
    let mut command: Option<&str> = None;
    while let Some(first) = rest.first() {
        if first.is_empty() {
            rest = &rest[1..];
            continue;
        }
        if let Some(header) = npm::header(rest) {
            if let Some(earlier) = command.filter(|_| header.command.is_some()) {
                return Some(quoted_line(earlier));
            }
            command = header.command.or(command);
            rest = rest.get(header.lines..).unwrap_or_default();
            continue;
        }
        let Some(section) = MATCHERS.iter().find_map(|matches| matches(rest)) else {
            return Some(quoted_line(first));
        };
        if let Some(command) = command.take().filter(|command| !command.contains(section.tool)) {
            return Some(quoted_line(command));
        }
        rest = rest.get(section.lines..).unwrap_or_default();
    }
    command.map(quoted_line)
}
