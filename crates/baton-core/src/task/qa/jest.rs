//! `jest` and `vitest`.

use super::report::{QaFailure, QaRun, count};

pub(super) fn read(text: &str) -> Option<QaRun> {
    jest(text).or_else(|| vitest(text))
}

/// `Tests:       2 failed, 1 skipped, 10 passed, 13 total`
fn jest(text: &str) -> Option<QaRun> {
    let counts = text.lines().rev().find_map(|line| line.strip_prefix("Tests:"))?;
    let mut run = QaRun::of("jest");
    read_counts(counts, &mut run);
    let suites = text.lines().rev().find_map(|line| line.strip_prefix("Test Suites:")).unwrap_or_default();
    let mut file = None;
    for line in text.lines() {
        let bare = line.trim_start();
        if let Some(path) = bare.strip_prefix("FAIL ") {
            file = path.split_whitespace().find(|word| word.contains('.')).map(str::to_owned);
        } else if let Some(name) = bare.strip_prefix("● ") {
            if name.starts_with("Console") {
                continue;
            }
            run.fail(QaFailure { file: file.clone(), ..QaFailure::test(name) });
        }
    }
    // A suite that does not even load has no failed tests.
    if run.failed == 0 {
        run.errors = count(suites, "failed").unwrap_or(0);
    }
    Some(run)
}

/// `      Tests  2 failed | 10 passed | 1 skipped (13)`
fn vitest(text: &str) -> Option<QaRun> {
    let is_total = |line: &&str| line.trim_start().starts_with("Tests  ") && line.trim_end().ends_with(')');
    let counts = text.lines().rfind(is_total)?;
    let mut run = QaRun::of("vitest");
    read_counts(counts, &mut run);
    run.errors = text
        .lines()
        .rev()
        .find_map(|line| line.trim_start().strip_prefix("Errors  "))
        .and_then(|line| count(line, "error").or_else(|| count(line, "errors")))
        .unwrap_or(0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(rest) = line.trim_start().strip_prefix("FAIL ") else { continue };
        let (file, name) = rest.trim().split_once(" > ").unwrap_or((rest.trim(), rest.trim()));
        let message = lines.peek().copied().unwrap_or_default();
        run.fail(QaFailure::at(name, file, None, message));
    }
    Some(run)
}

fn read_counts(counts: &str, run: &mut QaRun) {
    run.passed = count(counts, "passed").unwrap_or(0);
    run.failed = count(counts, "failed").unwrap_or(0);
    run.skipped = count(counts, "skipped").unwrap_or(0) + count(counts, "todo").unwrap_or(0);
}
