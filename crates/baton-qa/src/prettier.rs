//! `prettier --check`.

use super::report::{QaFailure, QaRun};
use super::section::Section;

const START: &str = "Checking formatting...";
const CLEAN: &str = "All matched files use Prettier code style!";

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("prettier");
    let mut checking = false;
    let mut seen = false;
    for line in text.lines() {
        if line.trim_end() == START {
            checking = true;
        } else if line.trim_end() == CLEAN {
            (checking, seen) = (false, true);
        } else if let Some(message) = line.strip_prefix("[error] ").filter(|_| checking) {
            if !message.starts_with([' ', '>']) {
                let file = message.split(": ").next().unwrap_or(message);
                run.add_failure(QaFailure::at("error", file, None, message));
            }
        } else if let Some(file) = line.strip_prefix("[warn] ").filter(|_| checking) {
            if file.starts_with("Code style issues ") {
                checking = false;
            } else {
                run.add_failure(QaFailure::at("format", file, None, "not formatted"));
            }
        }
    }
    run.errors = run.failures.len() as u64;
    (seen || run.errors > 0).then_some(run)
}

pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    match lines {
        [START, CLEAN, ..] => Section::new("prettier", 2),
        [CLEAN, ..] => Section::new("prettier", 1),
        _ => None,
    }
}
