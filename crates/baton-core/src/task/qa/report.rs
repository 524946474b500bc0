//! What a run came to, whichever tool it was.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::scope::shorten;

/// How many failures of one run are kept; the counts are always whole.
const MAX_FAILURES: usize = 50;

/// How long a kept message is, in characters.
const MAX_MESSAGE: usize = 300;

/// What quality checks came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QaStatus {
    /// Nobody recorded any yet.
    #[default]
    Pending,
    /// Everything passed.
    Passed,
    /// Something failed.
    Failed,
    /// No tool was recognised in the log.
    Unknown,
}

/// What one tool said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaRun {
    /// The tool: `cargo-test`, `pytest`.
    pub tool: String,
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were not run.
    pub skipped: u64,
    /// Problems that are errors.
    pub errors: u64,
    /// Problems that are warnings.
    pub warnings: u64,
    /// What failed, the first fifty.
    pub failures: Vec<QaFailure>,
}

/// One thing that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaFailure {
    /// The test or the rule.
    pub name: String,
    /// The file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u64>,
    /// What was said.
    pub message: Option<String>,
}

impl QaRun {
    pub(super) fn of(tool: &str) -> Self {
        Self { tool: tool.into(), ..Self::default() }
    }

    /// Tells whether nothing failed.
    pub fn is_clean(&self) -> bool {
        self.failed == 0 && self.errors == 0
    }

    pub(super) fn fail(&mut self, failure: QaFailure) {
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
            message: Self::say(message),
        }
    }

    pub(super) fn say(message: &str) -> Option<String> {
        let message = message.trim();
        (!message.is_empty()).then(|| shorten(message, MAX_MESSAGE))
    }

    fn key(&self) -> (&str, Option<&str>) {
        (&self.name, self.file.as_deref())
    }
}

/// What a whole log says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QaReport {
    /// What it comes to.
    pub status: QaStatus,
    /// What each tool said.
    pub runs: Vec<QaRun>,
}

impl QaReport {
    pub(super) fn of(runs: Vec<QaRun>) -> Self {
        let status = if runs.is_empty() {
            QaStatus::Unknown
        } else if runs.iter().all(QaRun::is_clean) {
            QaStatus::Passed
        } else {
            QaStatus::Failed
        };
        Self { status, runs }
    }
}

/// What differs between two records of the same checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QaComparison {
    /// What fails now and did not before.
    pub new_failures: Vec<String>,
    /// What failed before and does not now.
    pub fixed: Vec<String>,
}

/// Compares what failed. What a tool finds that did not run before is new; one that does not run now says nothing.
pub fn compare_runs(before: &[QaRun], after: &[QaRun]) -> QaComparison {
    let mut comparison = QaComparison::default();
    for now in after {
        let then = before.iter().find(|run| run.tool == now.tool);
        let (was, is): (BTreeSet<_>, BTreeSet<_>) = (
            then.into_iter().flat_map(|then| &then.failures).map(QaFailure::key).collect(),
            now.failures.iter().map(QaFailure::key).collect(),
        );
        let name = |(name, file): &(&str, Option<&str>)| {
            file.map_or_else(
                || format!("{}: {name}", now.tool),
                |file| format!("{}: {name} in {file}", now.tool),
            )
        };
        comparison.new_failures.extend(is.difference(&was).map(name));
        comparison.fixed.extend(was.difference(&is).map(name));
    }
    comparison
}

/// Takes out terminal colours; a carriage return becomes a line end.
pub fn without_colours(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.next_if_eq(&'[').is_some() => {
                while letters.next_if(|next| !next.is_ascii_alphabetic()).is_some() {}
                letters.next();
            }
            '\r' if letters.peek() == Some(&'\n') => {}
            '\r' => clean.push('\n'),
            _ => clean.push(letter),
        }
    }
    clean
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

/// Splits `file:12:3` into file and line.
pub(super) fn place(text: &str) -> Option<(&str, u64)> {
    let mut parts = text.rsplitn(3, ':');
    let (last, middle, first) = (parts.next()?, parts.next()?, parts.next());
    match (first, middle.parse(), last.parse::<u64>()) {
        (Some(file), Ok(line), Ok(_)) => Some((file, line)),
        (None, Err(_), Ok(line)) => Some((middle, line)),
        (Some(first), Err(_), Ok(line)) => {
            text.get(..first.len() + 1 + middle.len()).map(|file| (file, line))
        }
        _ => None,
    }
}
