//! `eslint` with its default formatter.

use super::report::{QaFailure, QaRun, count, count_of};
use super::section::Section;

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("eslint");
    let mut file = None;
    for line in text.lines() {
        let bare = line.trim();
        if !line.starts_with(' ') && is_file(bare) {
            file = Some(bare.to_owned());
        } else if let (Some(file), Some(problem)) = (&file, problem(bare)) {
            if problem.is_error {
                run.errors += 1;
                run.add_failure(QaFailure::at(problem.rule, file, Some(problem.line), problem.message));
            } else {
                run.warnings += 1;
            }
        }
    }
    // `✖ 3 problems (2 errors, 1 warning)`
    let is_total = |line: &&str| line.starts_with('✖') && line.contains("problem");
    let (mut errors, mut warnings, mut seen) = (0, 0, false);
    for total in text.lines().map(str::trim_start).filter(is_total) {
        seen = true;
        errors += count_of(total, "error").unwrap_or(0);
        warnings += count_of(total, "warning").unwrap_or(0);
    }
    run.errors = run.errors.max(errors);
    run.warnings = run.warnings.max(warnings);
    // A crash, and more warnings than allowed, are reported without a file.
    let crashed = text.lines().find(|line| line.starts_with("Oops! Something went wrong!"));
    let too_many = text.lines().find(|line| line.starts_with("ESLint found too many warnings"));
    for problem in [crashed, too_many].into_iter().flatten() {
        run.add_error("eslint", problem);
    }
    (seen || crashed.is_some() || too_many.is_some()).then_some(run)
}

/// Matches files with warnings only, and the total. A list of files without warnings is not the output of eslint.
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let mut without_warning = false;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with('✖') {
            let fixable = lines.get(at + 1).is_some_and(|line| line.contains("potentially fixable"));
            let good = count(line, "errors") == Some(0) && line.contains("problem") && !without_warning;
            return Section::new("eslint", at + 1 + usize::from(fixable)).filter(|_| good);
        }
        let warning = line.starts_with(' ') && problem(line.trim()).is_some_and(|problem| !problem.is_error);
        if warning && at > 0 {
            without_warning = false;
        } else if without_warning || !(line.is_empty() || is_file(line)) {
            return None;
        } else {
            without_warning = !line.is_empty();
        }
    }
    None
}

fn is_file(text: &str) -> bool {
    (text.starts_with('/') || text.contains('/') || text.contains('\\') || text.contains('.'))
        && text.contains(char::is_alphanumeric)
        && !text.contains(char::is_whitespace)
}

struct Problem<'a> {
    line: u64,
    is_error: bool,
    message: &'a str,
    rule: &'a str,
}

/// Parses `  12:5  error  'x' is never used  no-unused-vars`.
fn problem(text: &str) -> Option<Problem<'_>> {
    let (place, rest) = text.split_once(char::is_whitespace)?;
    let line = place.split_once(':')?.0.parse().ok()?;
    let (level, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let is_error = match level {
        "error" => true,
        "warning" => false,
        _ => return None,
    };
    let (message, rule) = rest.trim().rsplit_once("  ").unwrap_or((rest.trim(), "error"));
    Some(Problem { line, is_error, message, rule: rule.trim() })
}
