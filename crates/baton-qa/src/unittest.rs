//! Python's `unittest`.

use baton_core::{ends_with_any, starts_with_any, strip_any};

use super::report::{QaFailure, QaRun};
use super::section::{Section, is_harmless};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("unittest");
    let mut total = None;
    let mut seen = false;
    for line in text.lines() {
        if let Some(number) = tests_run(line) {
            total = Some(number);
        } else if let Some(all) = total {
            if let Some(skipped) = ok_line(line) {
                seen = true;
                run.passed += all.saturating_sub(skipped);
                run.skipped += skipped;
                total = None;
            } else if let Some(counts) = line.strip_prefix("FAILED (") {
                seen = true;
                let (failures, errors) = (named(counts, "failures"), named(counts, "errors"));
                let unexpected = named(counts, "unexpected successes");
                run.failed += failures + unexpected;
                run.errors += errors + u64::from(failures + errors + unexpected == 0);
                run.skipped += named(counts, "skipped");
                run.passed += all.saturating_sub(failures + errors + unexpected + named(counts, "skipped"));
                total = None;
            } else if line.starts_with("NO TESTS RAN") {
                seen = true;
                total = None;
            }
        }
    }
    if seen {
        let headings = text.lines().filter_map(|line| strip_any(line, "FAIL: |ERROR: "));
        headings.filter(|name| name.ends_with(')')).for_each(|name| run.add_failure(QaFailure::test(name)));
    }
    seen.then(|| run.mark_if_no_tests())
}

/// Returns 3 for `Ran 3 tests in 0.001s`.
fn tests_run(line: &str) -> Option<u64> {
    let (number, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    if starts_with_any(rest, "test in |tests in ") { number.parse().ok() } else { None }
}

/// Returns the number of skipped tests in `OK` or `OK (skipped=1)`.
fn ok_line(line: &str) -> Option<u64> {
    let rest = line.trim_end().strip_prefix("OK")?;
    if rest.is_empty() {
        return Some(0);
    }
    rest.strip_prefix(" (").filter(|rest| rest.ends_with(')')).map(|counts| named(counts, "skipped"))
}

/// Returns the number after a name in `failures=1, errors=2`; 0 if the name is missing.
fn named(counts: &str, name: &str) -> u64 {
    let parts = counts.trim_end_matches(')').split(", ");
    parts
        .filter_map(|part| part.split_once('='))
        .find(|(key, _)| *key == name)
        .and_then(|(_, n)| n.parse().ok())
        .unwrap_or(0)
}

/// Matches progress or verbose lines, a rule, the total and `OK`. There must be as many results as tests.
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let rule = lines.iter().position(|line| line.len() >= 70 && line.bytes().all(|byte| byte == b'-'))?;
    let mut shown = 0;
    for line in &lines[..rule] {
        if !line.is_empty() && line.chars().all(|letter| matches!(letter, '.' | 's' | 'x')) {
            shown += line.chars().count() as u64;
        } else if line.starts_with(char::is_alphanumeric)
            && (ends_with_any(line, " ... ok| ... expected failure") || line.contains(" ... skipped "))
        {
            shown += 1;
        } else if !(line.is_empty() || line.starts_with("test") && line.ends_with(')') && is_harmless(line)) {
            return None;
        }
    }
    let rest = &lines[rule + 1..];
    let total = tests_run(rest.first()?)?;
    let ok = 1 + rest.get(1..)?.iter().position(|line| !line.is_empty())?;
    ok_line(rest.get(ok)?)?;
    Section::new("unittest", rule + ok + 2).filter(|_| shown == total)
}
