//! `cargo clippy`, `cargo check` and `cargo build`.

use baton_core::starts_with_any;
use serde_json::Value;

use super::report::{QaFailure, QaRun};
use super::section::Section;

/// Returns true if clippy ran. Compiler warnings of `cargo test` do not count as clippy's.
pub(super) fn ran(text: &str) -> bool {
    text.lines().any(|line| {
        let bare = line.trim_start();
        starts_with_any(bare, "Checking |= help: for further information visit https://rust-lang")
            || bare.contains("clippy::")
    })
}

pub(super) fn read(text: &str) -> Option<QaRun> {
    let ran = ran(text);
    let mut run = QaRun::of(if ran { "clippy" } else { "cargo-check" });
    read_json(text, &mut run);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((level, code, message)) = diagnostic(line) else { continue };
        let Some(at) = lines.peek().and_then(|next| next.trim_start().strip_prefix("--> ")) else {
            continue;
        };
        run.errors += u64::from(level == "error");
        run.warnings += u64::from(level == "warning");
        run.add_failure(QaFailure::at_place(code.unwrap_or(level), at, message));
    }
    // Errors of build scripts, libraries and manifests name no source file.
    let is_fatal = |line: &&str| {
        let message = line.strip_prefix("error: ").unwrap_or_default();
        starts_with_any(message, "could not compile|failed to|linking with|no such command")
    };
    if run.errors == 0
        && let Some(fatal) = text.lines().find(is_fatal)
    {
        run.add_error("build", fatal.trim_start_matches("error: "));
    }
    let finished = |word: &str| text.lines().any(|line| line.trim_start().starts_with(word));
    let built =
        finished("Finished `dev`") || finished("Finished `release`") && !text.contains("test result: ");
    let json = text.lines().any(|line| message(line).is_some());
    let has_findings = run.errors + run.warnings > 0;
    let is_clippy_result = ran && (finished("Finished `") || has_findings);
    let is_build_result = !ran && built;
    (is_clippy_result || is_build_result || json).then_some(run)
}

/// Reads messages of `--message-format=json`.
fn read_json(text: &str, run: &mut QaRun) {
    for message in text.lines().filter_map(message) {
        match message["reason"].as_str() {
            Some("build-finished") if message["success"] == false => {
                run.errors = run.errors.max(1);
            }
            Some("compiler-message") => {
                let (level, span) = (&message["message"]["level"], &message["message"]["spans"][0]);
                let (Some(text), Some(file)) =
                    (message["message"]["message"].as_str(), span["file_name"].as_str())
                else {
                    continue;
                };
                run.errors += u64::from(level == "error");
                run.warnings += u64::from(level == "warning");
                let code = message["message"]["code"]["code"].as_str().unwrap_or("error");
                run.add_failure(QaFailure::at(code, file, span["line_start"].as_u64(), text));
            }
            _ => {}
        }
    }
}

fn message(line: &str) -> Option<Value> {
    let line = line.strip_prefix("{\"reason\":").map(|_| line)?;
    serde_json::from_str(line).ok()
}

/// Matches messages up to `build-finished` with success.
pub(super) fn clean_json(lines: &[&str]) -> Option<Section> {
    for (at, line) in lines.iter().enumerate() {
        let message = message(line)?;
        if message["reason"] == "build-finished" {
            return Section::new("cargo", at + 1).filter(|_| message["success"] == true);
        }
    }
    None
}

/// Splits `error[E0308]: message` into level, code and message.
fn diagnostic(line: &str) -> Option<(&str, Option<&str>, &str)> {
    let (level, rest) =
        ["error", "warning"].iter().find_map(|level| Some((*level, line.strip_prefix(level)?)))?;
    let (code, rest) = match rest.strip_prefix('[') {
        Some(code) => code.split_once(']').map(|(code, rest)| (Some(code), rest))?,
        None => (None, rest),
    };
    rest.strip_prefix(": ").map(|message| (level, code, message))
}
