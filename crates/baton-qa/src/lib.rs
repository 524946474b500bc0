//! Reads the output of test runners, linters and formatters: counts, failures, and whether the log proves a pass.
//!
//! Each file reads the output of one tool or of related tools. Functions named `read…` find counts and failures anywhere
//! in a log. Functions named `clean…` match one complete output of a passing run at the start of the given lines. A log
//! is `passed` only if every line belongs to such an output; a single line that is not understood makes it `unknown`.

use baton_core::strip_control;

mod black;
mod cargo;
mod clean;
mod clippy;
mod eslint;
mod go;
mod jest;
mod mocha;
mod mypy;
mod nextest;
mod npm;
mod panics;
mod prettier;
mod pytest;
mod report;
mod ruff;
mod section;
mod shell;
mod tap;
mod tsc;
mod unittest;

pub use report::{QaComparison, QaFailure, QaReport, QaRun, QaStatus, compare_runs, status_by_exit_code};

/// Reads a log without an exit code.
pub fn read_log(text: &str) -> QaReport {
    let text = strip_control(text);
    let parsers: [fn(&str) -> Option<QaRun>; 19] = [
        cargo::read,
        cargo::read_fmt,
        nextest::read,
        clippy::read,
        pytest::read,
        unittest::read,
        jest::read_jest,
        jest::read_vitest,
        mocha::read,
        tap::read,
        go::read,
        eslint::read,
        prettier::read,
        tsc::read,
        ruff::read,
        ruff::read_format,
        black::read,
        mypy::read,
        shell::read,
    ];
    let runs: Vec<QaRun> = parsers.iter().filter_map(|read| read(&text)).collect();
    QaReport::new(runs, clean::first_unexplained(&text))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "status_tests.rs"]
mod status_tests;
