//! `pytest`.

use baton_core::{ends_with_any, starts_with_any, strip_any};

use super::report::{QaFailure, QaRun, count};
use super::section::{Section, is_harmless};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("pytest");
    let mut seen = false;
    for line in text.lines() {
        if is_start(line) {
            seen = true;
        } else if is_summary(line) {
            seen = true;
            read_summary(line, &mut run);
        } else if let Some(message) = line.strip_prefix("pytest: error: ") {
            seen = true;
            add_run_error(&mut run, message);
        }
    }
    // With -qq, failures are reported only in their list.
    let has_list =
        text.lines().any(|line| line.starts_with('=') && line.contains(" short test summary info "));
    if !(seen || has_list) {
        return None;
    }
    for line in text.lines() {
        if let Some(rest) = strip_any(line, "FAILED |ERROR ") {
            let (name, message) = split_name(rest);
            let file = name.split("::").next().unwrap_or(name);
            if file.contains(".py") {
                run.add_failure(QaFailure::at(name, file, None, message));
            }
        } else if let Some(problem) = problem(line) {
            add_run_error(&mut run, problem);
        }
    }
    if run.is_clean() {
        run.failed = run.failures.len() as u64;
    }
    Some(run)
}

/// Splits `test_a.py::test_b[c - d] - message`. A parameter in brackets may contain the separator.
fn split_name(line: &str) -> (&str, &str) {
    const SEPARATOR: &str = " - ";
    let is_closed = |text: &str| text.matches('[').count() == text.matches(']').count();
    let ends = line.match_indices(SEPARATOR).map(|(at, _)| line.split_at(at));
    let mut closed = ends.filter(|(name, _)| is_closed(name));
    closed.next().map_or((line, ""), |(name, rest)| (name, &rest[SEPARATOR.len()..]))
}

fn is_start(line: &str) -> bool {
    line.contains("= test session starts =")
}

/// Matches a whole session or, with `-q`, the progress and the summary.
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let first = lines.first()?;
    let whole = first.starts_with('=') && is_start(first);
    let (mut shown, mut in_warnings) = (None, false);
    for (at, line) in lines.iter().enumerate().skip(usize::from(whole)) {
        if is_start(line) {
            return None;
        }
        if is_summary(line) {
            // A session with a title ends with a summary between bars. Any other summary belongs to another run.
            if whole != line.starts_with('=') {
                return None;
            }
            let number = |word| count(line, word).unwrap_or(0);
            let bad = number("failed") + number("error") + number("errors");
            let good = number("passed") + number("skipped") + number("xfailed") + number("xpassed");
            let agrees = whole || shown.is_none_or(|shown| shown == good);
            return Section::new("pytest", at + 1).filter(|_| bad == 0 && good > 0 && agrees && !in_warnings);
        }
        if let Some(results) = progress(line).filter(|_| !whole) {
            shown = Some(shown.unwrap_or(0) + results);
        } else if is_warnings_title(line) {
            in_warnings = true;
        } else if in_warnings {
            in_warnings = !line.starts_with("-- Docs: ");
        } else {
            let has_begun = whole || shown.is_some();
            let is_understood = line.is_empty()
                || is_passed_test(line)
                || starts_with_any(line, "SKIPPED [|XFAIL ")
                || is_header(line)
                || is_harmless(line);
            if !(has_begun && is_understood) {
                return None;
            }
        }
    }
    None
}

/// Returns the number of results in a line of progress characters: `..s.   [100%]`.
fn progress(line: &str) -> Option<u64> {
    let bare = line
        .trim_end_matches(']')
        .trim_end_matches('%')
        .trim_end_matches(|letter: char| letter.is_ascii_digit());
    let marks = bare.trim_end_matches(['[', ' ']);
    let known = !marks.is_empty()
        && marks.chars().all(|letter| matches!(letter, '.' | 's' | 'x' | 'X' | 'u' | 'U' | ',' | '-' | 'R'));
    known.then(|| marks.chars().filter(|letter| matches!(letter, '.' | 's' | 'x' | 'X')).count() as u64)
}

fn is_warnings_title(line: &str) -> bool {
    line.starts_with('=') && line.trim_matches(['=', ' ']).starts_with("warnings summary")
}

/// Returns true for a line of the header, whose paths and plugin names may contain any word.
fn is_header(line: &str) -> bool {
    starts_with_any(line, "platform |rootdir: |configfile: |plugins: |cachedir: |testpaths: ")
}

/// Returns true for `tests/test_a.py::test_error PASSED   [ 50%]` and `tests/test_a.py ..s.   [ 50%]`, and for the lines
/// of xdist.
fn is_passed_test(line: &str) -> bool {
    let bare = line.rsplit_once('[').map_or(line, |(before, _)| before).trim_end();
    let named = ends_with_any(bare, " PASSED| XFAIL| XPASS") || bare.contains(" SKIPPED");
    let dotted =
        bare.rsplit_once(' ').is_some_and(|(file, marks)| file.contains(".py") && progress(marks).is_some());
    let xdist = line.starts_with("[gw") && line.contains("] PASSED ");
    named && bare.contains("::") || dotted || xdist
}

/// Returns true for `==== 2 failed, 3 passed in 0.12s ====`; with `-q` there are no bars.
fn is_summary(line: &str) -> bool {
    let bare = line.trim_matches(['=', ' ']);
    let Some((counts, time)) = bare.rsplit_once(" in ") else { return false };
    let seconds = time.split_whitespace().next().and_then(|word| word.strip_suffix('s'));
    let timed = seconds.is_some_and(|number| number.parse::<f64>().is_ok());
    let counted = counts.split(", ").all(|part| {
        part.split_once(' ').is_some_and(|(number, word)| {
            number.parse::<u64>().is_ok() && (!word.contains(' ') || word.starts_with("subtests "))
        })
    });
    timed && (counted || counts == "no tests ran")
}

fn read_summary(summary: &str, run: &mut QaRun) {
    let number = |word: &str| count(summary, word).unwrap_or(0);
    let (passed, skipped) = (number("passed") + number("xpassed"), number("skipped") + number("xfailed"));
    let (failed, errors) = (number("failed"), number("error") + number("errors"));
    run.passed += passed;
    run.failed += failed;
    run.errors += errors;
    run.skipped += skipped;
    run.warnings += number("warning") + number("warnings");
    if passed + skipped + failed + errors == 0 {
        // pytest exits with 5 in this case.
        add_run_error(run, "no tests ran");
    }
}

/// Returns a reason for which a run fails although every test passed.
fn problem(line: &str) -> Option<&str> {
    let bare = line.trim();
    let stopped = bare.starts_with("!!!") && bare.ends_with("!!!");
    const PROBLEMS: &str = "FAIL Required test coverage|ERROR: Coverage failure|ERROR: not found: |\
        ERROR: file or directory not found: |INTERNALERROR>";
    (stopped || starts_with_any(bare, PROBLEMS)).then(|| bare.trim_matches(['!', ' ']))
}

fn add_run_error(run: &mut QaRun, problem: &str) {
    if run.is_clean() {
        run.add_error("run", problem);
    }
}
