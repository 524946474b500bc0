//! `pytest`.

use super::report::{QaFailure, QaRun, count};

pub(super) fn read(text: &str) -> Option<QaRun> {
    // `==== 2 failed, 3 passed in 0.12s ====`, with `-q` without the bars.
    let is_summary = |line: &&str| {
        let bare = line.trim_matches(['=', ' ']);
        let Some((counts, time)) = bare.rsplit_once(" in ") else { return false };
        let seconds = time.split_whitespace().next().and_then(|word| word.strip_suffix('s'));
        let timed = seconds.is_some_and(|number| number.parse::<f64>().is_ok());
        let counted = counts.split(", ").all(|part| {
            part.split_once(' ')
                .is_some_and(|(number, word)| number.parse::<u64>().is_ok() && !word.contains(' '))
        });
        timed && (counted || counts == "no tests ran")
    };
    let summary = text.lines().rfind(is_summary)?;
    let mut run = QaRun::of("pytest");
    let number = |word: &str| count(summary, word).unwrap_or(0);
    run.passed = number("passed") + number("xpassed");
    run.failed = number("failed");
    run.errors = number("error") + number("errors");
    run.skipped = number("skipped") + number("xfailed");
    run.warnings = number("warning") + number("warnings");
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")) else {
            continue;
        };
        let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
        let file = name.split("::").next().unwrap_or(name);
        if file.contains(".py") {
            run.fail(QaFailure::at(name, file, None, message));
        }
    }
    Some(run)
}
