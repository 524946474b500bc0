//! `tsc`, plain and pretty.

use super::report::{QaFailure, QaRun, file_and_line};
use super::section::Section;

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("tsc");
    for line in text.lines() {
        let Some((at, code, message)) = diagnostic(line) else { continue };
        run.errors += 1;
        match position(at) {
            Some((file, line)) => run.add_failure(QaFailure::at(code, file, Some(line), message)),
            None => {
                run.add_failure(QaFailure { message: QaFailure::message(message), ..QaFailure::test(code) })
            }
        }
    }
    let clean = text
        .lines()
        .any(|line| line.trim() == "Found 0 errors." || line.contains("Found 0 errors. Watching"));
    (clean || run.errors > 0).then_some(run)
}

/// Splits `src/a.ts(1,2): error TS2322: …`, `src/a.ts:1:2 - error TS2322: …` or `error TS18003: …` into place, code and
/// message.
fn diagnostic(line: &str) -> Option<(&str, &str, &str)> {
    let at = line.find("error TS")?;
    let (code, message) = line.get(at + "error ".len()..)?.split_once(':')?;
    let digits = code.strip_prefix("TS")?;
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let before = line.get(..at)?.trim_end().trim_end_matches([':', '-']).trim_end();
    Some((before, code, message))
}

/// Reads `src/a.ts(1,2)` or `src/a.ts:1:2`.
fn position(at: &str) -> Option<(&str, u64)> {
    match at.strip_suffix(')').and_then(|at| at.rsplit_once('(')) {
        Some((file, position)) => Some((file, position.split(',').next()?.parse().ok()?)),
        None => file_and_line(at),
    }
}

/// Matches `Found 0 errors.`, also as a line of watch mode.
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let line = lines.first()?;
    let good = *line == "Found 0 errors." || line.ends_with("Found 0 errors. Watching for file changes.");
    Section::new("tsc", 1).filter(|_| good)
}
