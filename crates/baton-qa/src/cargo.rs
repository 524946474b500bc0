//! `cargo test`, `cargo fmt --check`, and the lines that cargo prints around every command.

use baton_core::{starts_with_any, strip_any};

use super::panics::add_panics;
use super::report::{QaFailure, QaRun, count, file_and_line};
use super::section::{Section, is_harmless};
use super::{clippy, nextest};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("cargo-test");
    let mut seen = false;
    for line in own_lines(text) {
        if let Some(rest) = line.strip_prefix("test result: ") {
            seen = true;
            run.passed += count(rest, "passed").unwrap_or(0);
            run.failed += count(rest, "failed").unwrap_or(0);
            run.skipped += count(rest, "ignored").unwrap_or(0);
        } else if let Some(name) = failed_test(line) {
            run.add_failure(QaFailure::test(name));
        }
    }
    let cargo_errors = cargo_errors(text, seen);
    // A test binary that crashes has no result line, and a failed build has no results at all.
    if run.is_clean() {
        run.errors = compile_errors(text).unwrap_or(cargo_errors.len() as u64);
        for (name, message) in &cargo_errors {
            run.add_failure(QaFailure { message: QaFailure::message(message), ..QaFailure::test(name) });
        }
    }
    add_panics(text, &mut run);
    (seen || !cargo_errors.is_empty()).then(|| run.mark_if_no_tests())
}

/// Returns the lines outside of the output of nextest, which repeats the output of the test binaries it runs.
fn own_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut in_nextest = false;
    let nextest = text.lines().any(|line| line.trim_start().starts_with("Summary ["));
    text.lines().filter(move |line| {
        let bare = line.trim_start();
        if bare.starts_with("Starting ") && bare.contains(" across ") {
            in_nextest = true;
        } else if bare.starts_with("Summary [") {
            in_nextest = false;
        }
        !(in_nextest || nextest && line.starts_with(' '))
    })
}

/// Returns the number of errors that the compiler counted: `could not compile `app` (lib) due to 2 previous errors`.
fn compile_errors(text: &str) -> Option<u64> {
    let counted = own_lines(text).filter(|line| line.starts_with("error: could not compile"));
    let numbers: Vec<u64> =
        counted.filter_map(|line| line.split_once("due to ")?.1.split(' ').next()?.parse().ok()).collect();
    (!numbers.is_empty()).then(|| numbers.iter().sum())
}

/// Returns the name and the message of each error that cargo itself reports. The output of tests is excluded.
fn cargo_errors(text: &str, tests_ran: bool) -> Vec<(String, String)> {
    let clippy = clippy::ran(text);
    let mut found = Vec::new();
    let mut add = |name: &str, message: &str| {
        if !found.iter().any(|(known, _)| known == name) {
            found.push((name.to_owned(), message.to_owned()));
        }
    };
    let mut running = false;
    let mut builds = false;
    let mut lines = own_lines(text).peekable();
    while let Some(line) = lines.next() {
        builds |= starts_with_any(line.trim_start(), "Compiling |Running ");
        if test_count(line).is_some() {
            running = true;
        } else if line.starts_with("test result: ") {
            running = false;
            if line.starts_with("test result: FAILED") && count(line, "failed") == Some(0) {
                add("run", line);
            }
        }
        let Some(message) = strip_any(line, "error: |error[") else { continue };
        if starts_with_any(message, "test failed|doctest failed|bench failed") {
            let target = message.split('`').nth(1).unwrap_or("run");
            add(target, "the test binary failed");
            running = false;
        } else if message.starts_with("could not compile") {
            if message.contains("test") || !clippy {
                add("build", "could not compile");
            }
        } else if !running && !clippy && (tests_ran || builds) {
            let place = lines.peek().and_then(|next| next.trim_start().strip_prefix("--> "));
            let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
            let message = if line.starts_with("error[") {
                message.replacen("]: ", ": ", 1)
            } else {
                message.to_owned()
            };
            add("cargo", &format!("{message}{place}"));
        }
    }
    found
}

/// Reads `Diff in src/lib.rs:1:`, or `Diff in src/lib.rs at line 1:` of older versions.
pub(super) fn read_fmt(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("cargo-fmt");
    for line in text.lines() {
        let Some(at) = line.strip_prefix("Diff in ") else { continue };
        let at = at.trim_end_matches(':').replace(" at line ", ":");
        if let Some((file, line)) = file_and_line(&at) {
            run.errors += 1;
            run.add_failure(QaFailure::at("format", file, Some(line), "not formatted"));
        }
    }
    (run.errors > 0).then_some(run)
}

/// What cargo must print next for its output to be complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Nothing,
    /// The line `Finished` of a build.
    Finished,
    /// A test binary that runs.
    Binary,
    /// The results of a test binary.
    Tests,
}

/// Matches status lines, warnings and test results of one or more cargo commands, all of them complete.
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let mut awaited = Awaited::Nothing;
    let (mut at, mut end) = (0, 0);
    while let Some(line) = lines.get(at) {
        let used = if line.is_empty() {
            1
        } else if let Some(next) = status_line(line) {
            // Tests cannot start before the build has finished. After a test build its binaries must run, and each of them
            // must print its results before the next step.
            let is_out_of_order = matches!(
                (awaited, next),
                (Awaited::Finished, Awaited::Tests)
                    | (Awaited::Tests, _)
                    | (Awaited::Binary, Awaited::Finished)
            );
            if is_out_of_order {
                return None;
            }
            awaited = next;
            1
        } else if let Some(used) = warning(&lines[at..], awaited != Awaited::Nothing) {
            used
        } else if let Some(used) = test_block(&lines[at..]) {
            awaited = Awaited::Nothing;
            used
        } else if let Some(section) = nextest::clean(&lines[at..]).filter(|_| awaited == Awaited::Binary) {
            awaited = Awaited::Nothing;
            section.lines
        } else {
            break;
        };
        at += used;
        if !line.is_empty() {
            end = at;
        }
    }
    Section::new("cargo", end).filter(|_| awaited == Awaited::Nothing)
}

/// Reads a line with a verb that cargo aligns to the right. Returns what must be printed after it.
fn status_line(line: &str) -> Option<Awaited> {
    let (verb, rest) = line.strip_prefix(' ')?.trim_start().split_once(' ')?;
    match verb {
        "Compiling" | "Checking" | "Building" | "Documenting" | "Downloading" | "Downloaded" | "Updating"
        | "Locking" | "Adding" | "Removing" | "Fresh" | "Blocking" | "Dirty" => Some(Awaited::Finished),
        "Finished" if starts_with_any(rest, "`test`|`bench`") => Some(Awaited::Binary),
        "Finished" if rest.starts_with('`') => Some(Awaited::Nothing),
        "Executable" | "Generated" => Some(Awaited::Nothing),
        "Running" if rest.contains('(') => Some(Awaited::Tests),
        "Doc-tests" => Some(Awaited::Tests),
        _ => None,
    }
}

/// Returns the number of lines of a compiler warning, including the lines below it.
fn warning(lines: &[&str], building: bool) -> Option<usize> {
    let first = lines.first()?;
    if !starts_with_any(first, "warning: |warning[") || first.contains("build failed") {
        return None;
    }
    let below = lines.get(1).is_some_and(|line| line.trim_start().starts_with("--> "));
    let total = first.contains(" generated ") && first.contains(" warning");
    let more = lines[1..].iter().take_while(|line| belongs_to_warning(line)).count();
    (building || below || total).then_some(1 + more)
}

fn belongs_to_warning(line: &str) -> bool {
    let is_source = line.starts_with(|letter: char| letter.is_ascii_digit()) && line.contains([' ', '|']);
    let is_frame = line.starts_with(' ') && status_line(line).is_none();
    is_source || is_frame || starts_with_any(line, "help:|note:|...")
}

/// Returns the number of lines from `running 3 tests` to `test result: ok.`, if there are as many results as tests and
/// none failed.
fn test_block(lines: &[&str]) -> Option<usize> {
    let expected = test_count(lines.first()?)?;
    for (at, line) in lines.iter().enumerate().skip(1) {
        if let Some(rest) = line.strip_prefix("test result: ok. ") {
            let number = |word| count(rest, word).unwrap_or(0);
            let sum = number("passed") + number("ignored") + number("measured");
            let mut used = at + 1;
            // Merged documentation tests end with a line that states their duration.
            while lines.get(used).is_some_and(|line| line.starts_with("all doctests ran in ")) {
                used += 1;
            }
            return (sum == expected && number("failed") == 0).then_some(used);
        }
        let result = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "));
        let passed = result
            .is_some_and(|(_, result)| result == "ok" || starts_with_any(result, "ok <|ignored|bench:"));
        if !passed && (test_count(line).is_some() || status_line(line).is_some() || !is_harmless(line)) {
            return None;
        }
    }
    None
}

/// Returns 3 for `running 3 tests`.
fn test_count(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("running ")?;
    rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test"))?.parse().ok()
}

/// Returns the name in `test module::name ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?
        .strip_suffix(" ... FAILED")
        .map(|name| name.trim_end_matches(" - should panic"))
}
