//! Failures that the shell, `make`, `npm` and similar programs report about the commands they run.

use baton_core::{contains_any, is_any, starts_with_any};

use super::report::QaRun;

/// Starts of lines that report a failed command.
const MARKS: &str = "make: *** |gmake: *** |npm ERR! |npm error |error Command failed with exit code |ELIFECYCLE|ERR_PNPM_|\
    error: Recipe `|Segmentation fault|Aborted (core dumped)|Command exited with non-zero status |Terminated|Killed|\
    zsh: command not found: |::error |##[error]|Error: Process completed with exit code ";

/// Shells whose messages begin with their name.
const SHELLS: &str = "sh|bash|dash|zsh|ksh|ash|fish|env";

/// Problems that shells report.
const PROBLEMS: &str = "not found|No such file or directory|Permission denied|cannot execute|syntax error";

pub(super) fn read(text: &str) -> Option<QaRun> {
    let first = text.lines().map(str::trim).find(|line| is_failure(line))?;
    let mut run = QaRun::of("shell");
    run.add_error("command", first);
    Some(run)
}

fn is_failure(line: &str) -> bool {
    let submake = line.strip_prefix("make[").is_some_and(|rest| rest.contains("]: *** "));
    let shell = line.split_once(": ").is_some_and(|(name, rest)| {
        let name = name.trim_start_matches("/usr/bin/").trim_start_matches("/bin/").trim_start_matches('-');
        is_any(name, SHELLS) && contains_any(rest, PROBLEMS)
    });
    let is_make = line.starts_with("make: ") && line.contains(" Error ");
    submake || shell || starts_with_any(line, MARKS) || is_make
}
