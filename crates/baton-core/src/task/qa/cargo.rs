//! `cargo test` and `cargo nextest run`.

use super::clippy;
use super::report::{QaFailure, QaRun, count, place};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("cargo-test");
    let mut seen = false;
    for line in text.lines() {
        if let Some(rest) = line.trim_start().strip_prefix("test result: ") {
            seen = true;
            run.passed += count(rest, "passed").unwrap_or(0);
            run.failed += count(rest, "failed").unwrap_or(0);
            run.skipped += count(rest, "ignored").unwrap_or(0);
        } else if let Some(name) = failed_test(line) {
            run.fail(QaFailure::test(name));
        }
    }
    let nextest = read_nextest(text, &mut run);
    let refused = complaints(text, seen || nextest);
    // A binary that ends before its tests do has no result, and a build that fails has none at all.
    if run.is_clean() {
        run.errors = refused.len() as u64;
        for (name, message) in &refused {
            run.fail(QaFailure { message: QaFailure::say(message), ..QaFailure::test(name) });
        }
    }
    add_panics(text, &mut run);
    (seen || nextest || !refused.is_empty()).then_some(run)
}

/// What cargo itself calls an error: a name for it, and its words. What tests print is none of its.
fn complaints(text: &str, tests_ran: bool) -> Vec<(String, String)> {
    let clippy = clippy::ran(text);
    let mut found = Vec::new();
    let mut add = |name: &str, message: &str| {
        if !found.iter().any(|(known, _)| known == name) {
            found.push((name.to_owned(), message.to_owned()));
        }
    };
    let mut running = false;
    let mut builds = false;
    for line in text.lines() {
        builds |=
            ["Compiling ", "Building ", "Running "].iter().any(|word| line.trim_start().starts_with(word));
        if is_start(line) {
            if running {
                add("run", "the tests broke off");
            }
            running = true;
        } else if line.starts_with("test result: ") {
            running = false;
            if line.starts_with("test result: FAILED") && count(line, "failed") == Some(0) {
                add("run", line);
            }
        }
        let Some(message) = line.strip_prefix("error: ").or_else(|| line.strip_prefix("error[")) else {
            continue;
        };
        if ["test failed", "doctest failed", "bench failed"].iter().any(|word| message.starts_with(word)) {
            let target = message.split('`').nth(1).unwrap_or("run");
            add(target, "the tests broke off");
            running = false;
        } else if message.starts_with("could not compile") {
            if message.contains("test") || !clippy {
                add("build", "could not compile");
            }
        } else if !running && !clippy && (tests_ran || builds) {
            add("cargo", message);
        }
    }
    if running {
        add("run", "the tests broke off");
    }
    found
}

/// `running 3 tests`
fn is_start(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")))
        .is_some_and(|number| number.parse::<u64>().is_ok())
}

/// `test module::name ... FAILED`
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?
        .strip_suffix(" ... FAILED")
        .map(|name| name.trim_end_matches(" - should panic"))
}

/// `Summary [   1.234s] 10 tests run: 8 passed (1 slow), 2 failed, 3 skipped`
fn read_nextest(text: &str, run: &mut QaRun) -> bool {
    let is_summary = |line: &&str| line.starts_with("Summary [") && line.contains("run:");
    let mut seen = false;
    for summary in text.lines().map(str::trim_start).filter(is_summary) {
        seen = true;
        let (before, counts) = summary.split_once("run:").unwrap_or((summary, ""));
        run.tool = "cargo-nextest".into();
        run.passed += count(counts, "passed").unwrap_or(0);
        run.failed += ["failed", "timed", "exec"].iter().filter_map(|word| count(counts, word)).sum::<u64>();
        run.skipped += count(counts, "skipped").unwrap_or(0);
        // `3/10 tests run`: the others were not.
        let begun = before.split(']').nth(1).and_then(|rest| rest.split_whitespace().next()?.split_once('/'));
        if let Some((_, all)) = begun.filter(|(some, all)| some != all) {
            run.errors += 1;
            let message = QaFailure::say(&format!("not all of {all} tests were run"));
            run.fail(QaFailure { message, ..QaFailure::test("run") });
        }
    }
    if !seen {
        return false;
    }
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
