//! `pytest`.

use super::report::{QaFailure, QaRun, count};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("pytest");
    let (mut seen, mut open, mut broke_off) = (false, false, false);
    for line in text.lines() {
        if line.starts_with('=') && line.contains(" test session starts ") {
            broke_off |= open;
            (seen, open) = (true, true);
        } else if is_summary(line) {
            (seen, open) = (true, false);
            read_summary(line, &mut run);
        }
    }
    if !seen {
        return None;
    }
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")) {
            let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
            let file = name.split("::").next().unwrap_or(name);
            if file.contains(".py") {
                run.fail(QaFailure::at(name, file, None, message));
            }
        } else if let Some(problem) = problem(line) {
            broken(&mut run, problem);
        }
    }
    if broke_off || open {
        broken(&mut run, "the tests broke off");
    }
    Some(run)
}

/// `==== 2 failed, 3 passed in 0.12s ====`, with `-q` without the bars.
fn is_summary(line: &str) -> bool {
    let bare = line.trim_matches(['=', ' ']);
    let Some((counts, time)) = bare.rsplit_once(" in ") else { return false };
    let seconds = time.split_whitespace().next().and_then(|word| word.strip_suffix('s'));
    let timed = seconds.is_some_and(|number| number.parse::<f64>().is_ok());
    let counted = counts.split(", ").all(|part| {
        part.split_once(' ')
            .is_some_and(|(number, word)| number.parse::<u64>().is_ok() && !word.contains(' '))
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
        broken(run, "no tests ran");
    }
}

/// What makes a run fail in which every test passed.
fn problem(line: &str) -> Option<&str> {
    let bare = line.trim();
    let stopped = bare.starts_with("!!!") && bare.ends_with("!!!");
    let known = bare.starts_with("FAIL Required test coverage")
        || bare.starts_with("ERROR: Coverage failure")
        || bare.starts_with("INTERNALERROR>");
    (stopped || known).then(|| bare.trim_matches(['!', ' ']))
}

fn broken(run: &mut QaRun, problem: &str) {
    if run.is_clean() {
        run.errors = 1;
        run.fail(QaFailure { message: QaFailure::say(problem), ..QaFailure::test("run") });
    }
}
