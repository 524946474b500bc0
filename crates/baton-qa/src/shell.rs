//! Failures that the shell, `make`, `npm` and similar programs report about the commands they run.

use super::report::{QaFailure, QaRun};

const MARKS: [&str; 17] = [
    "make: *** ",
    "gmake: *** ",
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
    "Killed",
    "zsh: command not found: ",
    "::error ",
    "##[error]",
    "Error: Process completed with exit code ",
];

/// Shells whose messages begin with their name.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "env"];

pub(super) fn read(text: &str) -> Option<QaRun> {
    let first = text.lines().map(str::trim).find(|line| is_failure(line))?;
    let mut run = QaRun::of("shell");
    run.errors = 1;
    run.fail(QaFailure { message: QaFailure::say(first), ..QaFailure::test("command") });
    Some(run)
}

fn is_failure(line: &str) -> bool {
    let submake = line.strip_prefix("make[").is_some_and(|rest| rest.contains("]: *** "));
    let shell = line.split_once(": ").is_some_and(|(name, rest)| {
        let name = name.trim_start_matches("/usr/bin/").trim_start_matches("/bin/").trim_start_matches('-');
        let problems =
            ["not found", "No such file or directory", "Permission denied", "cannot execute", "syntax error"];
        SHELLS.contains(&name) && problems.iter().any(|problem| rest.contains(problem))
    });
    submake
        || shell
        || MARKS.iter().any(|mark| line.starts_with(mark))
        || line.starts_with("make: ") && line.contains(" Error ")
}
