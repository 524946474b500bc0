//! `cargo nextest run`.

use baton_core::starts_with_any;

use super::panics::add_panics;
use super::report::{QaFailure, QaRun, count};
use super::section::{Section, is_harmless};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("cargo-nextest");
    let mut seen = false;
    for summary in text.lines().filter_map(summary) {
        seen = true;
        run.passed += summary.passed;
        run.failed += summary.failed;
        run.skipped += summary.skipped;
        if let Some(all) = summary.not_all_of {
            run.add_error("run", &format!("not all of {all} tests were run"));
        }
    }
    if !seen {
        return None;
    }
    if run.is_clean()
        && let Some(error) = text.lines().find(|line| line.starts_with("error: "))
    {
        run.add_error("run", error);
    }
    for line in text.lines() {
        let bare = line.trim_start();
        let failed = starts_with_any(bare, "FAIL [|TIMEOUT [|SIGABRT [|SIGSEGV [");
        if let Some(name) = bare.split(']').nth(1).filter(|_| failed) {
            // The position of the test in the run may precede its name: `(12/40) crate module::name`.
            let name = name.trim_start();
            let name =
                name.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(name, |(_, rest)| rest);
            run.add_failure(QaFailure::test(name));
        }
    }
    add_panics(text, &mut run);
    Some(run.mark_if_no_tests())
}

struct Summary<'a> {
    /// Number of tests that were run.
    run: u64,
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Number of all tests, if not all of them were run.
    not_all_of: Option<&'a str>,
}

/// Parses `Summary [   1.234s] 10 tests run: 8 passed (1 slow), 2 failed, 3 skipped`.
fn summary(line: &str) -> Option<Summary<'_>> {
    let (before, counts) = line.trim_start().strip_prefix("Summary [")?.split_once("run:")?;
    let tests = before.split(']').nth(1)?.split_whitespace().next()?;
    let (run, all) = tests.split_once('/').unwrap_or((tests, tests));
    let number = |word| count(counts, word).unwrap_or(0);
    Some(Summary {
        run: run.parse().ok()?,
        passed: number("passed"),
        failed: number("failed") + number("timed") + number("exec"),
        skipped: number("skipped"),
        not_all_of: (run != all).then_some(all),
    })
}

/// Matches the lines from `Starting` to a summary in which every test passed.
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let is_start = |line: &str| line.trim_start().starts_with("Starting ") && line.contains(" across ");
    let first = lines.first()?;
    if !(is_start(first) || summary(first).is_some() || is_rule(first) || first.contains("Nextest run ID")) {
        return None;
    }
    let mut started = false;
    for (at, line) in lines.iter().enumerate() {
        if let Some(summary) = summary(line) {
            let passed = summary.not_all_of.is_none() && summary.failed == 0 && summary.passed == summary.run;
            return Section::new("nextest", at + 1).filter(|_| passed);
        }
        if is_start(line) && std::mem::replace(&mut started, true) {
            return None;
        }
        let bare = line.trim_start();
        let known = is_rule(line) || starts_with_any(bare, "PASS [|SLOW [|SKIP [|LEAK [");
        if !known && !is_harmless(line) {
            return None;
        }
    }
    None
}

fn is_rule(line: &str) -> bool {
    !line.is_empty() && line.trim().chars().all(|letter| letter == '─')
}
