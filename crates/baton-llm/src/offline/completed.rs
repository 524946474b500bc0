//! Completed work: the tool uses of a session that changed or checked something with a known result.

use baton_core::observation::Digest;
use baton_core::{is_any, starts_with_any};
use baton_observation::{check, is_failure, is_reading, is_reading_tool};

use super::command::{Purpose, Step};
use super::quoted_command::QuotedCommand;

/// Returns the title of a tool use that completed work, without the size of its output. Returns `None` for a tool use
/// that only inspects something, failed, did not run, has no known result, or only prepares work.
pub fn completed_step(digest: &Digest) -> Option<&str> {
    let title = digest.title.as_str();
    let (done, result) = title.rsplit_once(": ").unwrap_or((title, ""));
    let did_not_run = is_any(result, "declined by user|not run|interrupted|in background|cancelled");
    if did_not_run || is_preparation(title) || is_failure(title) {
        return None;
    }
    let is_size = || matches!(result.split_once(' '), Some((count, "line" | "lines")) if count.parse::<usize>().is_ok());
    let is_unknown = is_any(result, "no output|no matches|result unknown|result not shown") || is_size();
    if !digest.files_touched.is_empty() {
        return Some(if is_unknown { done } else { title });
    }
    if is_reading_tool(&digest.tool_name) || is_reading(title) {
        return None;
    }
    let Some(quoted) = QuotedCommand::read(&digest.summary) else { return (!is_unknown).then_some(title) };
    let steps = quoted.line.main_steps();
    if steps.iter().all(|step| changes_nothing(step)) {
        return None;
    }
    match steps.iter().map(|step| step.purpose()).max()? {
        Purpose::Check | Purpose::Test => check(title).map(|_| title),
        Purpose::Other if is_inspection(title) => None,
        _ if !is_unknown => Some(title),
        Purpose::Change | Purpose::FileOperation if quoted.has_succeeded == Some(true) => Some(done),
        _ => None,
    }
}

/// Whether a title is about a list of tasks or a skill.
fn is_preparation(title: &str) -> bool {
    starts_with_any(title, "Create task |Use skill ")
        || title.starts_with("Mark task ") && !title.contains(" completed")
}

/// Whether a title, which is the agent's purpose of a command, says that something is only inspected.
fn is_inspection(title: &str) -> bool {
    const WORDS: &str = "Check|Compare|Confirm|Count|Debug|Get|Verify";
    title.split_whitespace().next().is_some_and(|first| is_any(first, WORDS))
}

/// Returns true if a step only reads something or stages files.
fn changes_nothing(step: &Step) -> bool {
    let is_view = step.program() == "gh"
        && matches!(step.arguments().nth(1), Some("view" | "list" | "diff" | "checks" | "status"));
    let is_staging = step.git_verb() == Some("add");
    step.purpose() <= Purpose::Inspect || is_view || is_staging
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(title: &str, summary: &str) -> Option<String> {
        let digest = Digest {
            tool_name: "Bash".into(),
            title: title.into(),
            summary: summary.into(),
            files_touched: vec![],
            functions_changed: vec![],
        };
        completed_step(&digest).map(str::to_owned)
    }

    #[test]
    fn changes_and_checks_with_a_result_are_completed() {
        for (title, summary, expected) in [
            ("Run go test: 3 passed", "`go test` succeeded. go-test: 3 passed.", "Run go test: 3 passed"),
            ("Commit 'Fix it'", "Commit 1a2b3c4 on main: \"Fix it\".", "Commit 'Fix it'"),
            ("Go on: 13 lines", "`git add a && git cherry-pick --continue` succeeded.", "Go on"),
            ("Mark task 7 completed: Test it", "Task 7 was completed.", "Mark task 7 completed: Test it"),
        ] {
            assert_eq!(completed(title, summary).as_deref(), Some(expected), "{title}");
        }
    }

    #[test]
    fn inspections_and_unknown_results_are_not_completed() {
        for (title, summary) in [
            ("Check for user skills directory: 5 lines", "`ls ~/.claude/skills` succeeded."),
            ("Verify clean state: main is clean", "`git status && git log -2` succeeded."),
            ("Check PR base branch: main", "`gh pr view --json baseRefName` succeeded."),
            ("Run go test: no matches", "`go test ./... | grep files_touched` ran without output."),
            ("Run session test: 90 lines", "`./run.sh test` succeeded."),
            ("Run make: exit 2", "`make` ended with exit code 2."),
            ("Push it: declined by user", "The user declined to let Bash run; nothing was done."),
            ("Create task 8 'Test it'", "Created task 8."),
            ("Get PR number: 136", "`pr=$(gh pr view --json number) && echo \"$pr\"` succeeded."),
            ("Stage a.rs and 9 more: done", "`git add a.rs b.rs` succeeded without output."),
        ] {
            assert_eq!(completed(title, summary), None, "{title}");
        }
    }
}
