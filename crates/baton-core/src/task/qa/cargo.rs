//! `cargo test` and `cargo nextest run`.

use super::report::{QaFailure, QaRun, count, place};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("cargo-test");
    let mut seen = false;
    let mut could_not_compile = false;
    for line in text.lines() {
        if let Some(rest) = line.trim_start().strip_prefix("test result: ") {
            seen = true;
            run.passed += count(rest, "passed").unwrap_or(0);
            run.failed += count(rest, "failed").unwrap_or(0);
            run.skipped += count(rest, "ignored").unwrap_or(0);
        } else if let Some(name) = failed_test(line) {
            run.fail(QaFailure::test(name));
        } else if line.starts_with("error: could not compile") && line.contains("test") {
            could_not_compile = true;
        }
    }
    let nextest = read_nextest(text, &mut run);
    if could_not_compile {
        run.errors += 1;
        run.fail(QaFailure { message: QaFailure::say("could not compile"), ..QaFailure::test("build") });
    }
    add_panics(text, &mut run);
    (seen || nextest || could_not_compile).then_some(run)
}

/// `test module::name ... FAILED`
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?
        .strip_suffix(" ... FAILED")
        .map(|name| name.trim_end_matches(" - should panic"))
}

/// `Summary [   1.234s] 10 tests run: 8 passed (1 slow), 2 failed, 3 skipped`
fn read_nextest(text: &str, run: &mut QaRun) -> bool {
    let summary = text
        .lines()
        .map(str::trim_start)
        .rfind(|line| line.starts_with("Summary [") && line.contains("run:"));
    let Some(summary) = summary else { return false };
    let counts = summary.split("run:").nth(1).unwrap_or_default();
    run.tool = "cargo-nextest".into();
    run.passed += count(counts, "passed").unwrap_or(0);
    run.failed += count(counts, "failed").unwrap_or(0) + count(counts, "timed").unwrap_or(0);
    run.skipped += count(counts, "skipped").unwrap_or(0);
    for line in text.lines() {
        let bare = line.trim_start();
        let failed =
            ["FAIL [", "TIMEOUT [", "SIGABRT [", "SIGSEGV ["].into_iter().any(|mark| bare.starts_with(mark));
        if let Some(name) = bare.split(']').nth(1).filter(|_| failed) {
            // The number of the test within the run may stand before its name: `(12/40) crate module::name`.
            let name = name.trim_start();
            let name =
                name.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(name, |(_, rest)| rest);
            run.fail(QaFailure::test(name));
        }
    }
    true
}

/// `thread 'name' (123) panicked at src/x.rs:1:2:` gives file, line and the message on the next line.
fn add_panics(text: &str, run: &mut QaRun) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((thread, at)) =
            line.trim_start().strip_prefix("thread '").and_then(|rest| rest.split_once("panicked at "))
        else {
            continue;
        };
        let name = thread.split('\'').next().unwrap_or_default();
        let Some((file, line)) = place(at.trim_end_matches(':')) else { continue };
        let known = run.failures.iter_mut().find(|failure| {
            failure.file.is_none() && (failure.name == name || failure.name.ends_with(&format!(" {name}")))
        });
        if let Some(failure) = known {
            failure.file = Some(file.to_owned());
            failure.line = Some(line);
            failure.message = QaFailure::say(lines.next().unwrap_or_default());
        }
    }
}
