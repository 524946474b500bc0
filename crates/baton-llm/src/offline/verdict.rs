//! Results of tests, linters and compilers: counts, failures and errors.

use baton_core::starts_with_any;
use baton_qa::{QaFailure, QaRun, read_log};

use super::command::Shown;
use super::facts::is_path;
use super::lines::{error_lines, failure_line};
use super::run::Run;
use super::text::{counted, one_line, unique};

/// Maximum number of bytes at the end of an output that are examined; the counts are at the end.
const MAX_LOG_BYTES: usize = 400_000;
/// Number of errors kept from the start and from the end.
const FIRST_ERRORS: usize = 8;
const LAST_ERRORS: usize = 2;

/// Result of a run.
#[derive(Default)]
pub(super) struct Verdict {
    /// Outcome for a title: `2 of 14 failed`.
    pub(super) outcome: Option<String>,
    /// Sentence for a summary: `pytest: 12 passed, 2 failed.`
    pub(super) sentence: Option<String>,
    /// Failures with test, location and message.
    pub(super) failures: Vec<String>,
    /// Lines that mention errors, except those of failures.
    pub(super) errors: Vec<String>,
    /// Names of passed tests.
    pub(super) passed: Vec<String>,
    /// Whether nothing failed and the output, which includes its end, confirms it.
    pub(super) is_clean: bool,
    pub(super) has_warnings: bool,
    /// Whether the output reports failed tests or packages.
    pub(super) has_failed: bool,
}

impl Verdict {
    /// Reads the output of a command that checks something or that failed.
    pub(super) fn of(run: &Run, shown: Shown) -> Self {
        let start = run.output.ceil_char_boundary(run.output.len().saturating_sub(MAX_LOG_BYTES));
        let log = run.output.get(start..).unwrap_or_default();
        let runs = read_log(log).runs;
        let (packages, failed_packages) = go_packages(log);
        let issues = lint_issues(log);
        let failing = runs.iter().find(|run| !run.is_clean());
        let failure = failure_line(log);
        let is_clean = !run.failed()
            && failing.is_none()
            && failure.is_none()
            && failed_packages == 0
            && issues.unwrap_or(0) == 0;
        let most = runs.iter().max_by_key(|run| run.passed);
        let passed = most.map_or(0, |run| run.passed);
        let warnings = runs.iter().map(|run| run.warnings).max().unwrap_or(0);
        let has_warnings = warnings > 0 || log.lines().any(is_warning);
        let at_least = if shown == Shown::All { "" } else { "at least " };
        let outcome = if let Some(failing) = failing {
            Some(if is_total(failing, shown) {
                count_failures(failing)
            } else {
                format!("at least {}", count_failures(&QaRun { passed: 0, ..failing.clone() }))
            })
        } else if failed_packages > 0 {
            Some(match shown {
                Shown::All => format!("{failed_packages} of {packages} packages failed"),
                _ => format!("at least {} failed", counted(failed_packages, "package")),
            })
        } else if let Some(issues) = issues.filter(|issues| *issues > 0) {
            Some(counted(issues, "issue"))
        } else if !is_clean {
            failure
                .filter(|_| !run.failed())
                .map(|line| if line == "FAIL" { "failed".to_owned() } else { one_line(line, 48) })
        } else if let Some(most) = most.filter(|run| run.passed > 0) {
            let at_least = if is_total(most, shown) { "" } else { "at least " };
            Some(format!("{at_least}{passed} passed"))
        } else if packages > 0 {
            Some(format!("{at_least}{} ok", counted(packages, "package")))
        } else if issues.is_some() {
            Some("no issues".to_owned())
        } else if warnings > 0 {
            Some(format!("{at_least}{}", counted(usize::try_from(warnings).unwrap_or(usize::MAX), "warning")))
        } else if shown != Shown::All {
            None
        } else if runs.iter().any(|run| run.no_tests) {
            Some("no tests ran".to_owned())
        } else {
            runs.first().map(|_| if has_warnings { "warnings, no errors" } else { "clean" }.to_owned())
        };
        let all = || runs.iter().flat_map(|run| &run.failures);
        // A test that failed only because of its subtests is described by them.
        let is_covered_by_subtests = |failure: &QaFailure| {
            failure.message.is_none()
                && all().any(|part| part.name.starts_with(&format!("{}/", failure.name)))
        };
        let failures: Vec<String> =
            all().filter(|failure| !is_covered_by_subtests(failure)).map(format_failure).collect();
        let errors = if is_clean { Vec::new() } else { own_errors(log, &runs) };
        let is_whole = runs.iter().all(|run| is_total(run, shown));
        let limit = if is_whole { "" } else { " These are the counts in the printed part of the output." };
        Self {
            sentence: (passed > 0 || failing.is_some())
                .then(|| runs.iter().map(format_run).collect::<Vec<_>>().join(" ") + limit),
            is_clean: is_clean && outcome.is_some() && shown != Shown::Selected,
            has_warnings,
            has_failed: failing.is_some() || failed_packages > 0,
            passed: if passed > 0 { passed_tests(log) } else { Vec::new() },
            outcome,
            failures,
            errors,
        }
    }

    /// Returns the first errors, which are usually the causes, and the last, which are usually the result.
    pub(super) fn first_and_last_errors(&self) -> Vec<String> {
        let lines = &self.errors;
        let last = lines.len().saturating_sub(LAST_ERRORS).max(FIRST_ERRORS);
        let left_out = last.min(lines.len()).saturating_sub(FIRST_ERRORS);
        let gap = (left_out > 0).then(|| format!("[{} left out]", counted(left_out, "error line")));
        let (first, last) = (lines.iter().take(FIRST_ERRORS), lines.iter().skip(last));
        first.cloned().chain(gap).chain(last.cloned()).collect()
    }
}

/// Whether the counts of a run are complete. The results of tools that print no total, or one per binary, are counted
/// line by line, so a part of their output gives only a part of the counts.
fn is_total(run: &QaRun, shown: Shown) -> bool {
    shown == Shown::All
        || !matches!(run.tool.as_str(), "cargo-test" | "go-test" | "clippy" | "cargo-check" | "tsc")
}

/// Returns true for `warning: unused variable`, `warning[E0001]: …` and `a.c:3: warning: …`.
fn is_warning(line: &str) -> bool {
    starts_with_any(line.trim_start(), "warning: |warning[") || line.contains(": warning: ")
}

fn count_failures(run: &QaRun) -> String {
    let all = run.passed + run.failed;
    match (run.failed, run.errors) {
        (0, _) if let Some(packages) = unbuilt(run) => packages,
        (0, errors) => counted(usize::try_from(errors).unwrap_or(usize::MAX), "error"),
        (failed, _) if run.passed > 0 => format!("{failed} of {all} failed"),
        (failed, _) => format!("{failed} failed"),
    }
}

/// Describes the packages that do not build; `None` if there are other errors too. A test runner counts each of these
/// packages as one error, whatever its number of compiler errors.
fn unbuilt(run: &QaRun) -> Option<String> {
    let is_unbuilt = |failure: &&QaFailure| {
        matches!(failure.message.as_deref(), Some("build failed" | "setup failed")) || failure.name == "build"
    };
    match run.failures.iter().filter(is_unbuilt).count() {
        0 => None,
        number if number as u64 != run.errors => None,
        1 => Some("build failed".to_owned()),
        number => Some(format!("{number} packages do not build")),
    }
}

fn format_run(run: &QaRun) -> String {
    let unbuilt = unbuilt(run);
    let counts: Vec<String> = [
        (run.passed, "passed"),
        (run.failed, "failed"),
        (run.skipped, "skipped"),
        (if unbuilt.is_some() { 0 } else { run.errors }, if run.errors == 1 { "error" } else { "errors" }),
        (run.warnings, if run.warnings == 1 { "warning" } else { "warnings" }),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .chain(unbuilt)
    .collect();
    if counts.is_empty() {
        format!("{}: clean.", run.tool)
    } else {
        format!("{}: {}.", run.tool, counts.join(", "))
    }
}

fn format_failure(failure: &QaFailure) -> String {
    let place = match (&failure.file, failure.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        (Some(file), None) if !failure.name.contains(file.as_str()) => format!(" ({file})"),
        _ => String::new(),
    };
    let message =
        failure.message.as_deref().map(|message| format!(": {}", one_line(message, 240))).unwrap_or_default();
    format!("{}{place}{message}", failure.name)
}

/// Returns the lines that mention errors and do not repeat failures. Assertions come first.
fn own_errors(log: &str, runs: &[QaRun]) -> Vec<String> {
    let names_failure = |line: &str| {
        let is_verdict = starts_with_any(line, "--- FAIL|FAILED ") || line.ends_with("... FAILED");
        line == "FAIL"
            || is_verdict
                && runs.iter().flat_map(|run| &run.failures).any(|failure| line.contains(&failure.name))
    };
    let has_message = |line: &str| {
        runs.iter()
            .flat_map(|run| &run.failures)
            .filter_map(|failure| failure.message.as_deref())
            .any(|message| line.contains(message))
    };
    let asserted = log.lines().map(str::trim).filter(|line| is_assertion(line)).take(20);
    let diagnosed = log.lines().map(str::trim_end).filter(|line| is_diagnostic(line)).take(40);
    let lines = asserted.chain(diagnosed).map(str::to_owned).chain(error_lines(log));
    unique(lines.filter(|line| !names_failure(line) && !has_message(line))).collect()
}

/// Returns true for a message of a compiler or linter: `src/a.go:12:5: declared and not used: x`.
fn is_diagnostic(line: &str) -> bool {
    let mut parts = line.splitn(3, ':');
    let (Some(path), Some(number), Some(message)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    is_path(path)
        && !path.contains(' ')
        && number.parse::<u32>().is_ok()
        && message.split_whitespace().count() > 2
}

/// Returns true for `sum_test.go:12: got 3, want 4`, and for the lines that pytest, Rust and jest print for a failed
/// assertion.
fn is_assertion(line: &str) -> bool {
    let place = line.split(": ").next().unwrap_or_default();
    let go = place
        .split_once("_test.go:")
        .is_some_and(|(file, number)| !file.contains(' ') && number.parse::<u32>().is_ok());
    go || starts_with_any(line, "E   |assertion `|left: |right: |Expected: |Received: ")
}

/// Returns the number of packages that `go test` named, and how many of them failed.
fn go_packages(log: &str) -> (usize, usize) {
    let (mut passed, mut failed) = (0, 0);
    for (verdict, rest) in log.lines().filter_map(|line| line.split_once('\t')) {
        match verdict.trim_end() {
            "ok" if !rest.is_empty() => passed += 1,
            "FAIL" if !rest.is_empty() => failed += 1,
            _ => {}
        }
    }
    (passed + failed, failed)
}

/// Parses `0 issues.` and `12 issues:` of golangci-lint.
fn lint_issues(log: &str) -> Option<usize> {
    log.lines().rev().take(60).find_map(|line| {
        let bare = line.trim();
        let bare =
            bare.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(bare, |(_, rest)| rest);
        let (number, rest) = bare.split_once(' ')?;
        matches!(rest, "issues." | "issues:" | "issue." | "issue:").then(|| number.parse().ok()).flatten()
    })
}

/// Returns the names of passed tests, if the test runner prints them.
fn passed_tests(log: &str) -> Vec<String> {
    let name = |line: &str| -> Option<String> {
        let line = line.trim_end();
        if let Some(rest) = line.strip_prefix("--- PASS: ") {
            return rest.split(' ').next().map(str::to_owned);
        }
        if let Some(rest) = line.strip_prefix("test ") {
            return rest.strip_suffix(" ... ok").map(str::to_owned);
        }
        let (test, _) = line.split_once(" PASSED")?;
        test.contains("::").then(|| test.to_owned())
    };
    log.lines().filter_map(name).take(200).collect()
}
