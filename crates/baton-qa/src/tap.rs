//! TAP, and the output of `node --test`.

use baton_core::{contains_any, starts_with_any};

use super::report::{QaFailure, QaRun};
use super::section::Section;

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("tap");
    let (mut in_tap, mut seen) = (false, false);
    for line in text.lines() {
        let bare = line.trim_start();
        if line.starts_with("TAP version ") {
            (in_tap, seen) = (true, true);
        } else if let Some(name) = bare.strip_prefix("not ok ").filter(|_| in_tap) {
            if is_skipped(bare) {
                run.skipped += 1;
            } else {
                run.failed += 1;
                run.add_failure(QaFailure::test(title(name)));
            }
        } else if is_ok(bare) && in_tap {
            run.skipped += u64::from(is_skipped(bare));
            run.passed += u64::from(!is_skipped(bare));
        } else if line.starts_with("Bail out!") && in_tap {
            run.add_error("run", line);
        } else if let Some(number) = info(line, "pass") {
            seen = true;
            run.passed += number;
        } else if let Some(number) = info(line, "fail").or_else(|| info(line, "cancelled")) {
            run.failed += number;
        } else if let Some(number) = info(line, "skipped") {
            run.skipped += number;
        }
    }
    seen.then(|| run.mark_if_no_tests())
}

/// Returns true for `ok 1 - name`. The results of Go packages begin with `ok` too, but without a number.
fn is_ok(line: &str) -> bool {
    line.strip_prefix("ok ").is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

fn is_skipped(line: &str) -> bool {
    contains_any(line, "# SKIP|# TODO")
}

fn title(text: &str) -> &str {
    text.split_once(" - ").map_or(text, |(_, name)| name).split(" # ").next().unwrap_or(text)
}

/// Returns the number in a line of Node's own report: `ℹ pass 2`.
fn info(line: &str, word: &str) -> Option<u64> {
    line.strip_prefix("ℹ ")?.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok()
}

/// Matches the lines from `TAP version` to the end, if all planned results are there and none is `not ok`.
pub(super) fn clean_tap(lines: &[&str]) -> Option<Section> {
    lines.first().filter(|line| line.starts_with("TAP version "))?;
    let (mut results, mut planned) = (0, None);
    let mut end = 1;
    for line in &lines[1..] {
        if line.trim_start().starts_with("not ok ") {
            return None;
        } else if is_ok(line) {
            results += 1;
        } else if let Some(number) = line.strip_prefix("1..") {
            planned = number.split(' ').next().and_then(|number| number.parse::<u64>().ok());
        } else if !(line.is_empty() || line.starts_with(' ') || line.starts_with("# ") || *line == "}") {
            break;
        }
        end += 1;
    }
    Section::new("test", end).filter(|_| results > 0 && planned == Some(results))
}

/// Matches the lines from the first `✔` to `ℹ duration_ms`, with `ℹ fail 0` and `ℹ cancelled 0` between them.
pub(super) fn clean_spec(lines: &[&str]) -> Option<Section> {
    let first = lines.first()?;
    if !starts_with_any(first, "✔ |▶ |ℹ ") {
        return None;
    }
    let (mut no_failures, mut none_cancelled) = (false, false);
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("ℹ duration_ms ") {
            return Section::new("test", at + 1).filter(|_| no_failures && none_cancelled);
        }
        if info(line, "tests").is_some() && (no_failures || none_cancelled) {
            return None;
        }
        no_failures |= info(line, "fail") == Some(0);
        none_cancelled |= info(line, "cancelled") == Some(0);
        let known = line.is_empty() || starts_with_any(line, "  |✔ |▶ |ℹ |﹣ ");
        if !known || line.trim_start().starts_with('✖') {
            return None;
        }
    }
    None
}
