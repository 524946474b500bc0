//! `cargo clippy`, and the diagnostics of rustc.

use super::report::{QaFailure, QaRun, place};

/// A log of `cargo test` may hold warnings of the compiler; they count as clippy's only when clippy ran.
pub(super) fn ran(text: &str) -> bool {
    text.lines().any(|line| {
        let bare = line.trim_start();
        bare.starts_with("Checking ")
            || bare.starts_with("= help: for further information visit https://rust-lang")
            || bare.contains("clippy::")
    })
}

pub(super) fn read(text: &str) -> Option<QaRun> {
    let ran = ran(text);
    let mut run = QaRun::of("clippy");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((level, message)) = diagnostic(line) else { continue };
        let Some(spot) = lines.peek().and_then(|next| next.trim_start().strip_prefix("--> ")) else {
            continue;
        };
        let (file, at) = place(spot).map_or((spot, None), |(file, line)| (file, Some(line)));
        match level {
            Level::Error => run.errors += 1,
            Level::Warning => run.warnings += 1,
        }
        let code = level_code(line).unwrap_or(match level {
            Level::Error => "error",
            Level::Warning => "warning",
        });
        run.fail(QaFailure::at(code, file, at, message));
    }
    // A build script, a missing library or a broken manifest has no place in a file.
    let is_fatal = |line: &&str| {
        let Some(message) = line.strip_prefix("error: ") else { return false };
        ["could not compile", "failed to", "linking with", "no such command"]
            .iter()
            .any(|word| message.starts_with(word))
    };
    if run.errors == 0
        && let Some(fatal) = text.lines().find(is_fatal)
    {
        run.errors = 1;
        let message = fatal.trim_start_matches("error: ");
        run.fail(QaFailure { message: QaFailure::say(message), ..QaFailure::test("build") });
    }
    let finished = text.lines().any(|line| line.trim_start().starts_with("Finished `"));
    (ran && (finished || run.errors + run.warnings > 0)).then_some(run)
}

#[derive(Clone, Copy)]
enum Level {
    Error,
    Warning,
}

fn diagnostic(line: &str) -> Option<(Level, &str)> {
    let (level, rest) = if let Some(rest) = line.strip_prefix("error") {
        (Level::Error, rest)
    } else {
        (Level::Warning, line.strip_prefix("warning")?)
    };
    let rest = match rest.strip_prefix('[') {
        Some(code) => code.split_once(']')?.1,
        None => rest,
    };
    rest.strip_prefix(": ").map(|message| (level, message))
}

/// The `E0308` of `error[E0308]: …`
fn level_code(line: &str) -> Option<&str> {
    line.split_once('[').filter(|(level, _)| matches!(*level, "error" | "warning"))?.1.split(']').next()
}
