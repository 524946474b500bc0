//! What the output of test runners, linters and type checkers says: counts and failures.
//!
//! A log may hold several runs. Each parser looks for the marks of its own tool and answers nothing when they are not
//! there; nothing is guessed. A tool that says that it failed, or breaks off, is never counted as clean, whatever its tests
//! said until then.

mod cargo;
mod clippy;
mod eslint;
mod go;
mod jest;
mod mypy;
mod pytest;
mod report;
mod ruff;
mod shell;
mod tsc;

pub use report::{QaComparison, QaFailure, QaReport, QaRun, QaStatus, compare_runs, without_colours};

/// Reads a log.
pub fn read_log(text: &str) -> QaReport {
    let text = without_colours(text);
    let parsers: [fn(&str) -> Option<QaRun>; 11] = [
        cargo::read,
        clippy::read,
        pytest::read,
        jest::jest,
        jest::vitest,
        go::read,
        eslint::read,
        tsc::read,
        ruff::read,
        mypy::read,
        shell::read,
    ];
    QaReport::of(parsers.iter().filter_map(|read| read(&text)).collect())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
