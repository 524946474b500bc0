//! `jest` and `vitest`.

use super::report::{QaFailure, QaRun, count};

/// `Tests:       2 failed, 1 skipped, 10 passed, 13 total`
pub(super) fn jest(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("jest");
    let mut seen = false;
    let (mut suites, mut file) = (0, None);
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
            run.fail(QaFailure { file: file.clone(), ..QaFailure::test(name) });
        }
    }
    // A suite that does not even load has no failed tests.
    if run.failed == 0 {
        run.errors += suites;
    }
    let other = |line: &str| {
        line.starts_with("Jest: ") && line.contains("threshold") && line.contains("not met")
            || line.starts_with("No tests found, exiting with code")
    };
    refuse(text, &mut run, other);
    (seen || run.errors > 0 && !text.contains("Test Files  ")).then_some(run)
}

/// `      Tests  2 failed | 10 passed | 1 skipped (13)`
pub(super) fn vitest(text: &str) -> Option<QaRun> {
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
        } else if bare.starts_with("Errors  ") || bare.starts_with("Type Errors  ") {
            run.errors += count(bare, "error").or_else(|| count(bare, "errors")).unwrap_or(0);
        }
    }
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(rest) = line.trim_start().strip_prefix("FAIL ") else { continue };
        // A file that does not load is named twice: `src/a.test.ts [ src/a.test.ts ]`.
        let whole = rest.trim().split(" [ ").next().unwrap_or(rest);
        let (file, name) = rest.trim().split_once(" > ").unwrap_or((whole, whole));
        let message = lines.peek().copied().filter(|line| !line.contains("Test Files  ")).unwrap_or_default();
        run.fail(QaFailure::at(name, file, None, message));
    }
    // A file that does not even load has no failed tests.
    if run.failed == 0 {
        run.errors += files;
    }
    let other = |line: &str| {
        line.contains("does not meet") && line.contains("threshold")
            || line.starts_with("No test files found, exiting with code")
    };
    refuse(text, &mut run, other);
    (seen || text.lines().any(|line| line.starts_with("No test files found, exiting"))).then_some(run)
}

/// Counts what makes a run fail in which every test passed.
fn refuse(text: &str, run: &mut QaRun, is_problem: impl Fn(&str) -> bool) {
    for line in text.lines().map(str::trim).filter(|line| is_problem(line)) {
        run.errors += 1;
        run.fail(QaFailure { message: QaFailure::say(line), ..QaFailure::test("run") });
    }
}

fn add_counts(counts: &str, run: &mut QaRun) {
    run.passed += count(counts, "passed").unwrap_or(0);
    run.failed += count(counts, "failed").unwrap_or(0);
    run.skipped += count(counts, "skipped").unwrap_or(0) + count(counts, "todo").unwrap_or(0);
}
