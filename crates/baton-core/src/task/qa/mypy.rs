//! `mypy`.

use super::report::{QaFailure, QaRun, place};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("mypy");
    for line in text.lines() {
        // `src/a.py:3: error: Incompatible types  [assignment]`
        let Some((at, message)) = line.split_once(": error: ") else { continue };
        let Some((file, number)) =
            place(at).filter(|(file, _)| file.ends_with(".py") || file.ends_with(".pyi"))
        else {
            continue;
        };
        let (message, code) = match message.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
            Some((message, code)) => (message, code),
            None => (message, "error"),
        };
        run.errors += 1;
        run.fail(QaFailure::at(code, file, Some(number), message));
    }
    let clean = text.lines().any(|line| line.starts_with("Success: no issues found in "));
    let total = text.lines().any(|line| line.starts_with("Found ") && line.contains("source file"));
    (clean || total || run.errors > 0).then_some(run)
}
