//! Whoever runs the tools: `make`, `npm`, `just`, the shell. They say nothing unless something failed.

use super::report::{QaFailure, QaRun};

/// What their complaints begin with.
const MARKS: [&str; 11] = [
    "make: *** ",
    "npm ERR! ",
    "npm error ",
    "error Command failed with exit code ",
    "ELIFECYCLE",
    "ERR_PNPM_",
    "error: Recipe `",
    "Segmentation fault",
    "Aborted (core dumped)",
    "Command exited with non-zero status ",
    "Terminated",
];

pub(super) fn read(text: &str) -> Option<QaRun> {
    let complains = |line: &&str| {
        let below = line.strip_prefix("make[").and_then(|rest| rest.split_once("]: *** "));
        MARKS.iter().any(|mark| line.starts_with(mark)) || below.is_some()
    };
    let first = text.lines().map(str::trim).find(complains)?;
    let mut run = QaRun::of("shell");
    run.errors = 1;
    run.fail(QaFailure { message: QaFailure::say(first), ..QaFailure::test("command") });
    Some(run)
}
