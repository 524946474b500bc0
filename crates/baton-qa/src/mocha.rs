//! `mocha` with its usual reporter.

use super::report::{QaFailure, QaRun};
use super::section::Section;

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("mocha");
    let mut seen = false;
    for line in text.lines() {
        if let Some(number) = total(line, "passing") {
            seen = true;
            run.passed += number;
        } else if let Some(number) = total(line, "failing").filter(|_| seen) {
            run.failed += number;
        } else if let Some(number) = total(line, "pending").filter(|_| seen) {
            run.skipped += number;
        } else if let Some((number, name)) = line.trim_start().split_once(") ")
            && line.starts_with("    ")
            && number.parse::<u64>().is_ok()
        {
            run.add_failure(QaFailure::test(name));
        }
    }
    seen.then(|| run.mark_if_no_tests())
}

/// Returns 3 for `  3 passing (12ms)` and the word `passing`.
fn total(line: &str, word: &str) -> Option<u64> {
    let (number, rest) = line.strip_prefix("  ")?.split_once(' ')?;
    let rest = rest.strip_prefix(word)?;
    if rest.is_empty() || rest.starts_with(" (") { number.parse().ok() } else { None }
}

/// Matches a tree of titles and `✔` lines, then the total. There must be as many marks as passing tests.
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let mut marks = 0;
    for (at, line) in lines.iter().enumerate() {
        if let Some(passing) = total(line, "passing") {
            let pending = lines.get(at + 1).is_some_and(|line| total(line, "pending").is_some());
            return Section::new("mocha", at + 1 + usize::from(pending)).filter(|_| marks == passing);
        }
        let bare = line.trim_start();
        marks += u64::from(bare.starts_with('✔') || bare.starts_with('✓'));
        let numbered = bare.split_once(") ").is_some_and(|(number, _)| number.parse::<u64>().is_ok());
        if numbered || !line.is_empty() && !line.starts_with("  ") {
            return None;
        }
    }
    None
}
