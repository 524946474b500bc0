//! The latest results of checks: tests, lints, types, builds.

use baton_core::observation::Digest;
use baton_observation::{CheckKind, check, is_check_word, is_failure, may_include};

use super::prose::is_prose;
use super::text::one_line;

/// Whether a change of a file can change the result of a check.
pub(super) fn is_source(file: &str) -> bool {
    !is_prose(file) && !file.starts_with("/tmp/")
}

/// The latest result of a check.
pub(super) struct Latest<'a> {
    kind: CheckKind,
    title: &'a str,
    /// Whether source files were edited after the check.
    is_before_edits: bool,
    /// Whether another check of the same kind passed after it.
    is_followed_by_pass: bool,
}

impl Latest<'_> {
    /// Describes a check that failed and was not run successfully again.
    pub(super) fn failure(&self) -> Option<String> {
        is_failure(self.title).then(|| self.text())
    }

    fn text(&self) -> String {
        let age = match (self.is_followed_by_pass, self.is_before_edits) {
            (true, _) => " (not run again)",
            (_, true) => " (before the last edits)",
            _ => "",
        };
        format!("\"{}\"{age}", one_line(self.title, 120))
    }
}

/// Describes the latest results of checks in a sentence.
pub(super) fn describe(digests: &[Digest], mentions_failure: bool) -> Option<String> {
    let lines: Vec<String> = latest(digests, mentions_failure).iter().map(Latest::text).collect();
    (!lines.is_empty()).then(|| format!("Latest checks: {}.", lines.join(", ")))
}

/// Returns the latest result of each kind of check, failed ones first. A failure and a result before the last edits are
/// left out if a later command with several steps succeeded, because it may have repeated the check.
///
/// A failed check that was not run again is not the latest of its kind if another check of the kind passed after it. The
/// last one of these is added if the agent mentions a failure, or if the check is a variant such as `lint:full`.
pub(super) fn latest(digests: &[Digest], mentions_failure: bool) -> Vec<Latest<'_>> {
    let mut latest: Vec<Latest<'_>> = Vec::new();
    let mut open_failure: Option<Latest<'_>> = None;
    let mut is_before_edits = false;
    let mut passed: Vec<&str> = Vec::new();
    for digest in digests.iter().rev() {
        if let Some(check) = check(&digest.title) {
            let has_failed = is_failure(&digest.title);
            let is_repeated = || passed.iter().any(|command| may_include(command, check.kind));
            let is_latest = latest.iter().all(|other| other.kind != check.kind)
                && !((has_failed || is_before_edits) && is_repeated());
            let result = |is_followed_by_pass| Latest {
                kind: check.kind,
                title: &digest.title,
                is_before_edits,
                is_followed_by_pass,
            };
            let was_run_again =
                || passed.iter().any(|command| *command == check.command || command.contains(" more"));
            let has_passed_later =
                || latest.iter().any(|other| other.kind == check.kind && !is_failure(other.title));
            let is_open = || match own_task(check.command) {
                Some(task) => !passed.iter().any(|command| covers(command, task)),
                None => mentions_failure,
            };
            if open_failure.is_none() && has_failed && has_passed_later() && !was_run_again() && is_open() {
                open_failure = Some(result(true));
            }
            if !has_failed {
                passed.push(check.command);
            }
            if is_latest {
                latest.push(result(false));
            }
        }
        is_before_edits |= digest.files_touched.iter().any(|file| is_source(file));
    }
    // Formatting is of interest only if nothing else was checked.
    if latest.iter().any(|check| check.kind != CheckKind::Format) {
        latest.retain(|check| check.kind != CheckKind::Format);
    }
    latest.sort_by_key(|check| !is_failure(check.title));
    open_failure.into_iter().chain(latest).collect()
}

/// Returns the name of a task that is a variant of a check: `lint:full` of `Run mise run lint:full`.
fn own_task(command: &str) -> Option<&str> {
    command.split(' ').find(|word| {
        let is_name = !word.starts_with('-') && !word.contains(['/', '.']);
        is_name && word.contains([':', '-']) && word.split([':', '-']).any(is_check_word)
    })
}

/// Whether a command runs a task, or a task whose name says that it includes all of its kind: `test:ci`.
fn covers(command: &str, task: &str) -> bool {
    let is_all = |word: &str| word.split([':', '-']).any(|part| matches!(part, "ci" | "all" | "full"));
    command.split(' ').any(|word| word == task || is_all(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_checks_are_recognized() {
        assert_eq!(own_task("Run mise run lint:full"), Some("lint:full"));
        assert_eq!(own_task("Run make test-e2e"), Some("test-e2e"));
        assert!(covers("Run mise run test:ci", "test:e2e") && !covers("Run mise run test", "test:e2e"));
        for command in ["Run mise run lint", "Run go test -run TestX ./a-b", "Run pytest tests/test-api.py"] {
            assert_eq!(own_task(command), None, "{command}");
        }
    }
}
