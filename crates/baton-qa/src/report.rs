//! Results of quality checks, common to all tools.

use std::collections::BTreeSet;

use baton_core::shorten;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of failures stored per run; the counts are always complete.
const MAX_FAILURES: usize = 50;

/// Maximum length of a stored message, in characters.
const MAX_MESSAGE: usize = 300;

/// Maximum length of a quoted log line, in characters.
const MAX_QUOTED_LINE: usize = 120;

/// Result of quality checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum QaStatus {
    /// No result was recorded yet.
    #[default]
    Pending,
    /// Every command exited with 0, or the complete log is the output of passing runs.
    Passed,
    /// A command exited with a nonzero code, or the log reports a failure.
    Failed,
    /// The log does not prove a pass: part of it cannot be parsed, or no tests ran.
    Unknown,
}

/// Result of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaRun {
    /// Tool, for example `cargo-test` or `pytest`.
    pub tool: String,
    /// Number of passed tests.
    pub passed: u64,
    /// Number of failed tests.
    pub failed: u64,
    /// Number of skipped tests.
    pub skipped: u64,
    /// Number of errors.
    pub errors: u64,
    /// Number of warnings.
    pub warnings: u64,
    /// The first 50 failures.
    pub failures: Vec<QaFailure>,
    /// True if a test runner ran no tests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_tests: bool,
}

/// One failed test or reported problem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaFailure {
    /// Name of the test or rule.
    pub name: String,
    /// Path of the file.
    pub file: Option<String>,
    /// Line in the file.
    pub line: Option<u64>,
    /// Message of the tool.
    pub message: Option<String>,
}

impl QaRun {
    pub(super) fn of(tool: &str) -> Self {
        Self { tool: tool.into(), ..Self::default() }
    }

    /// Returns true if no failure and no error was reported.
    pub fn is_clean(&self) -> bool {
        self.failed == 0 && self.errors == 0
    }

    /// Marks the run of a test runner that ran no tests.
    pub(super) fn mark_if_no_tests(mut self) -> Self {
        self.no_tests = self.passed == 0 && self.is_clean();
        self
    }

    /// Counts and lists an error that belongs to no file.
    pub(super) fn add_error(&mut self, name: &str, message: &str) {
        self.errors += 1;
        self.add_failure(QaFailure { message: QaFailure::message(message), ..QaFailure::test(name) });
    }

    /// Adds the result of another run of the same tool.
    pub fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.no_tests &= other.no_tests;
        for failure in other.failures {
            self.add_failure(failure);
        }
    }

    /// Returns true if there may be more failures than the listed ones.
    pub fn may_omit_failures(&self) -> bool {
        self.failures.len() >= MAX_FAILURES
    }

    /// Lists a failure. The caller counts it.
    pub(super) fn add_failure(&mut self, failure: QaFailure) {
        if self.failures.len() < MAX_FAILURES && !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }
}

impl QaFailure {
    pub(super) fn test(name: &str) -> Self {
        Self { name: name.trim().to_owned(), ..Self::default() }
    }

    pub(super) fn at(name: &str, file: &str, line: Option<u64>, message: &str) -> Self {
        Self {
            name: name.trim().to_owned(),
            file: Some(file.trim().to_owned()),
            line,
            message: Self::message(message),
        }
    }

    /// Like [`at`](Self::at), for a place such as `src/a.py:3:8` or only a file.
    pub(super) fn at_place(name: &str, at: &str, message: &str) -> Self {
        match file_and_line(at) {
            Some((file, line)) => Self::at(name, file, Some(line), message),
            None => Self::at(name, at, None, message),
        }
    }

    /// Returns a shortened message; `None` if it is empty.
    pub(super) fn message(message: &str) -> Option<String> {
        let message = message.trim();
        (!message.is_empty()).then(|| shorten(message, MAX_MESSAGE))
    }

    fn key(&self) -> (&str, Option<&str>) {
        (&self.name, self.file.as_deref())
    }
}

/// Result of a whole log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QaReport {
    /// Result of the log: `passed`, `failed` or `unknown`.
    pub status: QaStatus,
    /// Results of each tool.
    pub runs: Vec<QaRun>,
    /// Reason for the status `unknown`.
    pub reason: Option<String>,
}

impl QaReport {
    /// Decides the status of a log. `unexplained` is the first line that belongs to no passing run.
    pub(super) fn new(runs: Vec<QaRun>, unexplained: Option<String>) -> Self {
        if !runs.iter().all(QaRun::is_clean) {
            return Self { status: QaStatus::Failed, runs, reason: None };
        }
        let reason = match (no_tests(&runs), unexplained) {
            (_, Some(line)) => Some(format!("cannot parse the line `{line}`")),
            (Some(tool), None) => Some(format!("{tool} ran no tests")),
            // Every line of a log without a tool is unexplained, so this one has no lines.
            (None, None) if runs.is_empty() => Some("the log is empty".to_owned()),
            (None, None) => None,
        };
        let status = if reason.is_some() { QaStatus::Unknown } else { QaStatus::Passed };
        Self { status, runs, reason }
    }
}

/// Returns the first tool that ran no tests.
fn no_tests(runs: &[QaRun]) -> Option<&str> {
    runs.iter().find(|run| run.no_tests).map(|run| run.tool.as_str())
}

/// Decides the status by the exit code of the command that wrote the log. The log can only turn a pass into
/// `unknown`, when a test runner ran no tests. Returns the status and a warning, if any.
pub fn status_by_exit_code(exit_code: i32, runs: &[QaRun]) -> (QaStatus, Option<String>) {
    if exit_code != 0 {
        return (QaStatus::Failed, None);
    }
    if let Some(tool) = no_tests(runs) {
        return (QaStatus::Unknown, Some(format!("{tool} ran no tests")));
    }
    let failed: Vec<&str> = runs.iter().filter(|run| !run.is_clean()).map(|run| run.tool.as_str()).collect();
    let warning = (!failed.is_empty()).then(|| {
        format!("the exit code is 0, but the log reports failures of {}; check that no pipe or `|| true` hides the exit code", failed.join(", "))
    });
    (QaStatus::Passed, warning)
}

/// Differences between two results of the same checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaComparison {
    /// Failures that are not in the earlier result.
    pub new_failures: Vec<String>,
    /// Failures that are only in the earlier result.
    pub fixed: Vec<String>,
    /// Tools that are only in the earlier result.
    #[serde(default)]
    pub missing_tools: Vec<String>,
}

/// Compares the failures of two results. All failures of a tool that did not run before are new. A tool that did not run
/// again is listed as missing, and its failures are not called fixed. A failure that an incomplete list may omit is
/// neither new nor fixed.
pub fn compare_runs(before: &[QaRun], after: &[QaRun]) -> QaComparison {
    let mut comparison = QaComparison::default();
    for now in after {
        let then = before.iter().find(|run| same_tool(run, now));
        let (old, new): (BTreeSet<_>, BTreeSet<_>) = (
            then.into_iter().flat_map(|then| &then.failures).map(QaFailure::key).collect(),
            now.failures.iter().map(QaFailure::key).collect(),
        );
        let name = |(name, file): &(&str, Option<&str>)| {
            file.map_or_else(
                || format!("{}: {name}", now.tool),
                |file| format!("{}: {name} in {file}", now.tool),
            )
        };
        if !then.is_some_and(QaRun::may_omit_failures) {
            comparison.new_failures.extend(new.difference(&old).map(name));
        }
        if !now.may_omit_failures() {
            comparison.fixed.extend(old.difference(&new).map(name));
        }
    }
    let is_missing = |run: &&QaRun| run.tool != "shell" && !after.iter().any(|now| same_tool(run, now));
    comparison.missing_tools = before.iter().filter(is_missing).map(|run| run.tool.clone()).collect();
    comparison
}

/// Returns true if two runs are of the same tool. `cargo check` counts as `cargo clippy`, because both print the same
/// when everything is up to date.
fn same_tool(one: &QaRun, other: &QaRun) -> bool {
    let name = |run: &QaRun| if run.tool == "cargo-check" { "clippy".to_owned() } else { run.tool.clone() };
    name(one) == name(other)
}

/// Shortens a log line that a message quotes.
pub(super) fn quoted_line(line: &str) -> String {
    shorten(line.trim(), MAX_QUOTED_LINE)
}

/// Reads the number before a word in a list of counts: `2 failed, 3 passed`.
pub(super) fn count(text: &str, word: &str) -> Option<u64> {
    let mut before = None;
    for token in text
        .split(|letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | '(' | ')' | '|' | '='))
    {
        if token.trim_end_matches([':', '.']) == word {
            return before;
        }
        if !token.is_empty() {
            before = token.parse().ok();
        }
    }
    None
}

/// Reads the number before a noun in the singular or plural: `1 error`, `2 errors`.
pub(super) fn count_of(text: &str, noun: &str) -> Option<u64> {
    count(text, noun).or_else(|| count(text, &format!("{noun}s")))
}

/// Splits `file:12:3` or `file:12` into file and line.
pub(super) fn file_and_line(text: &str) -> Option<(&str, u64)> {
    let (before, last) = text.rsplit_once(':')?;
    let last: u64 = last.parse().ok()?;
    match before.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        // `file:12:3`: line and column.
        Some((file, Ok(line))) => Some((file, line)),
        // `12:3` has no file.
        None if before.parse::<u64>().is_ok() => None,
        _ => Some((before, last)),
    }
}
