//! `ruff check`, concise and full, and `ruff format`.

use baton_core::{ends_with_any, strip_any};

use super::report::{QaFailure, QaRun, count, count_of, file_and_line};
use super::section::Section;

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("ruff");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((at, code, message)) = concise(line) {
            run.add_failure(QaFailure::at_place(code, at, message));
        } else if let Some((code, message)) = rule(line)
            && let Some(at) = lines.peek().and_then(|next| next.trim_start().strip_prefix("--> "))
        {
            run.add_failure(QaFailure::at_place(code, at, message));
        }
    }
    for line in text.lines() {
        if let Some(rest) = strip_any(line, "error: Failed to parse |ruff failed") {
            let at = rest.split(": ").next().unwrap_or(rest);
            run.add_failure(QaFailure::at_place("error", at, line));
        }
    }
    let clean = text.lines().any(|line| line.trim() == "All checks passed!");
    // `Found 3 errors (1 fixed, 2 remaining).`
    let mut fixed = false;
    let mut counted = 0;
    for line in text.lines().filter(|line| line.starts_with("Found ") && line.contains("error")) {
        let remaining = count(line, "remaining");
        fixed |= remaining.is_some();
        let ends = ends_with_any(line, "error.|errors.");
        counted += remaining.or_else(|| count_of(line, "error").filter(|_| ends)).unwrap_or(0);
    }
    let is_ruff = !run.failures.is_empty() || clean || fixed;
    let listed = run.failures.len() as u64;
    // Fixed problems are listed too.
    run.errors = if fixed { counted } else { counted.max(listed) };
    is_ruff.then_some(run)
}

/// Reads `ruff format`, with and without `--check` and `--diff`.
pub(super) fn read_format(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("ruff-format");
    let mut seen = false;
    // Black reports the same totals and ends them with a full stop.
    for line in text.lines().map(str::trim_end) {
        if let Some(file) = line.strip_prefix("Would reformat: ") {
            run.add_failure(QaFailure::at("format", file, None, "not formatted"));
        } else if is_format_total(line) {
            seen = true;
            if line.contains("would be reformatted") {
                run.errors += count_of(line, "file").unwrap_or(1);
            }
        }
    }
    run.errors = run.errors.max(run.failures.len() as u64);
    (seen || run.errors > 0).then_some(run)
}

/// Returns true for `1 file would be reformatted, 2 files already formatted`.
fn is_format_total(line: &str) -> bool {
    const ENDS: &str = "already formatted|left unchanged|reformatted";
    line.split(", ").all(|part| {
        let number = part.split(' ').next().is_some_and(|number| number.parse::<u64>().is_ok());
        number && part.contains(" file") && ends_with_any(part, ENDS)
    })
}

pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let line = lines.first()?;
    let formatted = is_format_total(line) && !line.contains("would be");
    let fixed = line.starts_with("Found ") && count(line, "remaining") == Some(0);
    Section::new("ruff", 1).filter(|_| *line == "All checks passed!" || formatted || fixed)
}

/// Splits ``src/a.py:1:8: F401 [*] `os` imported but unused`` into place, code and message.
fn concise(line: &str) -> Option<(&str, &str, &str)> {
    let (at, rest) = line.split_once(": ")?;
    file_and_line(at).filter(|(file, _)| ends_with_any(file, ".py|.pyi|.ipynb"))?;
    rule(rest).map(|(code, message)| (at, code, message))
}

/// Splits `F401 [*] message` into code and message. A code has one to four capitals and three or four digits, or is
/// `invalid-syntax` or `SyntaxError`.
fn rule(text: &str) -> Option<(&str, &str)> {
    let (code, message) = text.split_once(' ')?;
    if matches!(code, "invalid-syntax:" | "SyntaxError:") {
        return Some((code.trim_end_matches(':'), message));
    }
    let digits = code.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    let letters = code.len() - digits.len();
    let fits = (1..=4).contains(&letters)
        && (3..=4).contains(&digits.len())
        && digits.bytes().all(|d| d.is_ascii_digit());
    fits.then(|| (code, message.trim_start_matches("[*] ")))
}
