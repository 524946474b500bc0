//! `eslint`, in its usual form.

use super::report::{QaFailure, QaRun, count};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("eslint");
    let mut file = None;
    let mut listed = 0;
    for line in text.lines() {
        let bare = line.trim();
        if !line.starts_with(' ') && is_file(bare) {
            file = Some(bare.to_owned());
        } else if let (Some(file), Some(problem)) = (&file, problem(bare)) {
            listed += 1;
            if problem.is_error {
                run.errors += 1;
                run.fail(QaFailure::at(problem.rule, file, Some(problem.line), problem.message));
            } else {
                run.warnings += 1;
            }
        }
    }
    // `✖ 3 problems (2 errors, 1 warning)`
    let total = text.lines().find(|line| line.trim_start().starts_with('✖') && line.contains("problem"))?;
    if listed == 0 {
        run.errors = count(total, "errors").or_else(|| count(total, "error")).unwrap_or(0);
        run.warnings = count(total, "warnings").or_else(|| count(total, "warning")).unwrap_or(0);
    }
    Some(run)
}

fn is_file(text: &str) -> bool {
    (text.starts_with('/') || text.contains('/') || text.contains('\\') || text.contains('.'))
        && !text.contains(char::is_whitespace)
}

struct Problem<'a> {
    line: u64,
    is_error: bool,
    message: &'a str,
    rule: &'a str,
}

/// `  12:5  error  'x' is never used  no-unused-vars`
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
