//! Messages of panics in the output of Rust tests.

use super::report::{QaFailure, QaRun, file_and_line};

/// Adds file, line and message of `thread 'name' (123) panicked at src/x.rs:1:2:` and the line below it.
pub(super) fn add_panics(text: &str, run: &mut QaRun) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((thread, at)) =
            line.trim_start().strip_prefix("thread '").and_then(|rest| rest.split_once("panicked at "))
        else {
            continue;
        };
        let name = thread.split('\'').next().unwrap_or_default();
        let Some((file, line)) = file_and_line(at.trim_end_matches(':')) else { continue };
        let known = run.failures.iter_mut().find(|failure| {
            failure.file.is_none() && (failure.name == name || failure.name.ends_with(&format!(" {name}")))
        });
        if let Some(failure) = known {
            failure.file = Some(file.to_owned());
            failure.line = Some(line);
            failure.message = QaFailure::message(lines.next().unwrap_or_default());
        }
    }
}
