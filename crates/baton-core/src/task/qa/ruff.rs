//! `ruff check`, concise and full.

use super::report::{QaFailure, QaRun, count, place};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("ruff");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((at, code, message)) = concise(line) {
            let (file, at) = place(at).map_or((at, None), |(file, line)| (file, Some(line)));
            run.fail(QaFailure::at(code, file, at, message));
        } else if let Some((code, message)) = rule(line)
            && let Some(at) = lines.peek().and_then(|next| next.trim_start().strip_prefix("--> "))
        {
            let (file, at) = place(at).map_or((at, None), |(file, line)| (file, Some(line)));
            run.fail(QaFailure::at(code, file, at, message));
        }
    }
    let clean = text.lines().any(|line| line.trim() == "All checks passed!");
    // `Found 3 errors (1 fixed, 2 remaining).`
    let total = text.lines().rfind(|line| line.starts_with("Found ") && line.contains("error"));
    let counted = total.and_then(|line| {
        count(line, "remaining").or_else(|| count(line, "errors")).or_else(|| count(line, "error"))
    });
    let own = !run.failures.is_empty() || clean;
    run.errors = counted.filter(|_| own).unwrap_or(run.failures.len() as u64);
    own.then_some(run)
}

/// `src/a.py:1:8: F401 [*] `os` imported but unused`
fn concise(line: &str) -> Option<(&str, &str, &str)> {
    let (at, rest) = line.split_once(": ")?;
    place(at)
        .filter(|(file, _)| file.ends_with(".py") || file.ends_with(".pyi") || file.ends_with(".ipynb"))?;
    rule(rest).map(|(code, message)| (at, code, message))
}

/// `F401 [*] message`: one to four capitals and three or four digits.
fn rule(text: &str) -> Option<(&str, &str)> {
    let (code, message) = text.split_once(' ')?;
    let digits = code.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    let letters = code.len() - digits.len();
    let fits = (1..=4).contains(&letters)
        && (3..=4).contains(&digits.len())
        && digits.bytes().all(|d| d.is_ascii_digit());
    fits.then(|| (code, message.trim_start_matches("[*] ")))
}
