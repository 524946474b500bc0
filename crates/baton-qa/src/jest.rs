//! `jest` and `vitest`.

use baton_core::starts_with_any;
use serde_json::Value;

use super::report::{QaFailure, QaRun, count, count_of};
use super::section::{Section, is_harmless};

/// Reads `Tests:       2 failed, 1 skipped, 10 passed, 13 total`.
pub(super) fn read_jest(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("jest");
    let mut seen = false;
    let (mut suites, mut file, mut is_open) = (0, None, false);
    for line in text.lines() {
        let bare = line.trim_start();
        if let Some(counts) = line.strip_prefix("Tests:").filter(|counts| count(counts, "total").is_some()) {
            seen = true;
            add_counts(counts, &mut run);
        } else if let Some(counts) = line.strip_prefix("Test Suites:") {
            suites += count(counts, "failed").unwrap_or(0);
        } else if let Some(path) = bare.strip_prefix("FAIL ") {
            file = path.split_whitespace().find(|word| word.contains('.')).map(str::to_owned);
        } else if let Some(name) = bare.strip_prefix("● ").filter(|name| !name.starts_with("Console")) {
            run.add_failure(QaFailure { file: file.clone(), ..QaFailure::test(name) });
            is_open = true;
        } else if let Some(failure) = run.failures.last_mut().filter(|_| is_open) {
            is_open = !add_reason(bare, failure);
        }
    }
    // A suite that cannot be loaded has no failed tests.
    if run.failed == 0 {
        run.errors += suites;
    }
    for report in text.lines().filter_map(json) {
        if !seen {
            run.passed += report["numPassedTests"].as_u64().unwrap_or(0);
            run.failed += report["numFailedTests"].as_u64().unwrap_or(0);
        }
        if report["success"] != true && run.is_clean() {
            run.errors = 1;
        }
        seen = true;
    }
    let is_other_failure = |line: &str| {
        const STARTS: &str =
            "No tests found, exiting with code 1|● Unrecognized CLI Parameter|● Validation Error";
        line.starts_with("Jest: ") && line.contains("threshold") && line.contains("not met")
            || starts_with_any(line, STARTS)
    };
    count_other_failures(text, &mut run, is_other_failure);
    let none = text.lines().any(|line| line.starts_with("No tests found, exiting with code 0"));
    (seen || none || run.errors > 0 && !text.contains("Test Files  ")).then(|| run.mark_if_no_tests())
}

/// Adds the content of a line below the name of a failed test: expected and received values, otherwise the
/// error. Returns true at the place of the failure, which ends its description.
fn add_reason(line: &str, failure: &mut QaFailure) -> bool {
    let line = line.trim();
    let is_value = starts_with_any(line, "Expected|Received");
    match &mut failure.message {
        None if !line.is_empty() => failure.message = QaFailure::message(line),
        // The call of `expect` says less than the values below it.
        Some(message) if is_value && message.starts_with("expect(") => {
            failure.message = QaFailure::message(line)
        }
        Some(message) if is_value => failure.message = QaFailure::message(&format!("{message}; {line}")),
        _ => {}
    }
    let place =
        line.strip_prefix("at ").map(|frame| frame.rsplit('(').next().unwrap_or(frame).trim_end_matches(')'));
    let Some((path, number)) = place.and_then(|place| place.rsplit_once(':')?.0.rsplit_once(':')) else {
        return false;
    };
    let is_own = failure.file.as_deref().is_some_and(|file| path.ends_with(file));
    if is_own {
        failure.line = number.parse().ok();
    }
    is_own
}

/// Reads `      Tests  2 failed | 10 passed | 1 skipped (13)`.
pub(super) fn read_vitest(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("vitest");
    let mut seen = false;
    let mut files = 0;
    for line in text.lines() {
        let bare = line.trim();
        if bare.starts_with("Tests  ") && bare.ends_with(')') {
            seen = true;
            add_counts(bare, &mut run);
        } else if bare.starts_with("Test Files  ") && bare.ends_with(')') {
            seen = true;
            files += count(bare, "failed").unwrap_or(0);
        } else if starts_with_any(bare, "Errors  |Type Errors  ") {
            run.errors += count_of(bare, "error").unwrap_or(0);
        }
    }
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(rest) = line.trim_start().strip_prefix("FAIL ") else { continue };
        // A file that does not load is named twice: `src/a.test.ts [ src/a.test.ts ]`.
        let whole = rest.trim().split(" [ ").next().unwrap_or(rest);
        let (file, name) = rest.trim().split_once(" > ").unwrap_or((whole, whole));
        let message = lines.peek().copied().filter(|line| !line.contains("Test Files  ")).unwrap_or_default();
        run.add_failure(QaFailure::at(name, file, None, message));
    }
    // A file that cannot be loaded has no failed tests.
    if run.failed == 0 {
        run.errors += files;
    }
    let is_other_failure = |line: &str| {
        line.contains("does not meet") && line.contains("threshold")
            || line.starts_with("No test files found, exiting with code 1")
    };
    count_other_failures(text, &mut run, is_other_failure);
    (seen || text.lines().any(|line| line.starts_with("No test files found, exiting")))
        .then(|| run.mark_if_no_tests())
}

/// Parses the only line that `jest --json` prints.
fn json(line: &str) -> Option<Value> {
    let line = line.strip_prefix("{\"numFailed").map(|_| line)?;
    serde_json::from_str(line).ok()
}

pub(super) fn clean_json(lines: &[&str]) -> Option<Section> {
    let report = json(lines.first()?)?;
    Section::new("jest", 1).filter(|_| report["success"] == true)
}

/// Matches the lines from the first `PASS file` to the totals and the lines below them.
pub(super) fn clean_jest(lines: &[&str]) -> Option<Section> {
    let first = lines.first()?;
    if first.starts_with("No tests found, exiting with code 0") {
        return Section::new("jest", 1);
    }
    if !(is_passed_suite(first) || first.starts_with("Test Suites:")) {
        return None;
    }
    let mut suites = false;
    for (at, line) in lines.iter().enumerate() {
        if let Some(counts) = line.strip_prefix("Test Suites:") {
            suites = count(counts, "total").is_some() && count(counts, "failed").is_none();
        } else if let Some(counts) = line.strip_prefix("Tests:") {
            let good = suites && count(counts, "total").is_some() && count(counts, "failed").is_none();
            let is_below = |line: &&&str| starts_with_any(line, "Snapshots:|Time:|Ran all test suites");
            let more = lines[at + 1..].iter().take_while(is_below).count();
            return Section::new("jest", at + 1 + more).filter(|_| good);
        } else if !(line.is_empty() || line.starts_with("  ") || is_passed_suite(line) || is_table(line)) {
            return None;
        }
    }
    None
}

fn is_passed_suite(line: &str) -> bool {
    line.strip_prefix("PASS ").is_some_and(|path| path.contains('.'))
}

/// Returns true for a row of a coverage table.
fn is_table(line: &str) -> bool {
    line.matches('|').count() >= 4 || line.len() > 20 && line.bytes().all(|byte| matches!(byte, b'-' | b'|'))
}

/// Matches the lines from ` RUN ` to the totals and the lines below them, or Vite's notice about its configuration before
/// them.
pub(super) fn clean_vitest(lines: &[&str]) -> Option<Section> {
    if lines.first()?.starts_with("(!) ") {
        return Section::new(
            "vitest",
            lines.iter().take_while(|line| !line.is_empty() && is_notice(line)).count(),
        );
    }
    let started = lines.first()?.trim_start().starts_with("RUN ");
    if !(started || totals(lines.first()?, "Test Files").is_some()) {
        return None;
    }
    let mut files = false;
    for (at, line) in lines.iter().enumerate().skip(usize::from(started)) {
        let bare = line.trim_start();
        if bare.starts_with("No test files found, exiting with code 0") {
            return Section::new("vitest", at + 1);
        }
        if let Some(counts) = totals(line, "Test Files") {
            files = !counts.contains("failed");
        } else if let Some(counts) = totals(line, "Tests") {
            const BELOW: &str = "Type Errors  no errors|Start at|Duration|% Coverage report";
            let is_below = |line: &&&str| {
                let bare = line.trim();
                bare.is_empty() || is_table(line) || starts_with_any(bare, BELOW)
            };
            let more = lines[at + 1..].iter().take_while(is_below).count();
            return Section::new("vitest", at + 1 + more).filter(|_| files && !counts.contains("failed"));
        } else if bare.starts_with("RUN ") || !(line.is_empty() || is_test_line(bare) || is_harmless(line)) {
            return None;
        }
    }
    None
}

fn is_notice(line: &str) -> bool {
    starts_with_any(line, "(!) |  - |Set `VITE_")
}

fn totals<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.trim().strip_prefix(name)?.strip_prefix("  ").filter(|counts| counts.ends_with(')'))
}

/// Returns true for a line with the mark of a passed or skipped test, which may contain any word.
fn is_test_line(line: &str) -> bool {
    line.starts_with(['✓', '↓', '·', '-'])
}

/// Counts lines with a reason for which a run fails although every test passed.
fn count_other_failures(text: &str, run: &mut QaRun, is_other_failure: impl Fn(&str) -> bool) {
    for line in text.lines().map(str::trim).filter(|line| is_other_failure(line)) {
        run.add_error("run", line);
    }
}

fn add_counts(counts: &str, run: &mut QaRun) {
    run.passed += count(counts, "passed").unwrap_or(0);
    run.failed += count(counts, "failed").unwrap_or(0);
    run.skipped += count(counts, "skipped").unwrap_or(0) + count(counts, "todo").unwrap_or(0);
}
