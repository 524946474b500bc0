//! `mypy`.

use baton_core::{contains_any, ends_with_any};

use super::report::{QaFailure, QaRun, count_of, file_and_line};
use super::section::Section;

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("mypy");
    let mut counted = 0;
    let mut seen = false;
    for line in text.lines() {
        if line.starts_with("Success: no issues found in ") {
            seen = true;
        } else if is_total(line) {
            seen = true;
            counted += count_of(line, "error").unwrap_or(0);
        }
        // `src/a.py:3: error: Incompatible types  [assignment]`
        let Some((at, message)) = line.split_once(": error: ") else { continue };
        let file = file_and_line(at).map_or(at, |(file, _)| file);
        if !ends_with_any(file, ".py|.pyi") {
            continue;
        }
        let (message, code) = match message.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
            Some((message, code)) => (message, code),
            None => (message, "error"),
        };
        run.errors += 1;
        run.add_failure(QaFailure::at_place(code, at, message));
    }
    run.errors = run.errors.max(counted);
    (seen || run.errors > 0).then_some(run)
}

/// Returns true for `Found 2 errors in 2 files (checked 5 source files)` and
/// `Found 1 error in 1 file (errors prevented further checking)`.
fn is_total(line: &str) -> bool {
    line.starts_with("Found ")
        && line.contains(" error")
        && contains_any(line, "(checked |(errors prevented ")
}

/// Matches notes and `Success: no issues found in 3 source files`.
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let is_note =
        |line: &&&str| line.split_once(": note: ").is_some_and(|(at, _)| file_and_line(at).is_some());
    let notes = lines.iter().take_while(is_note).count();
    let end = lines.get(notes)?.starts_with("Success: no issues found in ");
    Section::new("mypy", notes + 1).filter(|_| end)
}
