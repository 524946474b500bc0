//! `gh`: pull requests, issues and comments that an agent writes with the GitHub CLI.

use baton_core::shorten;

use super::command::{CommandLine, Step};
use super::git::StepResult;
use super::text::one_line;

/// Returns the result of a step that writes to GitHub.
pub(super) fn step_result(step: &Step, line: &CommandLine, output: &str) -> Option<StepResult> {
    if step.program() != "gh" {
        return None;
    }
    let mut arguments = step.arguments();
    let noun = match arguments.next()? {
        "pr" => "pull request",
        "issue" => "issue",
        "release" => "release",
        _ => return None,
    };
    let verb = arguments.next()?;
    let target = arguments.next().filter(|target| target.len() < 30).unwrap_or_default();
    let title =
        step.flag(&["--title", "-t"]).map(|title| format!(" '{}'", one_line(title, 80))).unwrap_or_default();
    let done = match verb {
        "create" => format!("Create {noun}{title}"),
        "edit" => format!("Edit {noun} {target}{title}"),
        "comment" => format!("Comment on {noun} {target}"),
        "review" => format!("Review {noun} {target}"),
        "merge" => format!("Merge {noun} {target}"),
        "close" => format!("Close {noun} {target}"),
        _ => return None,
    };
    let body = step.flag(&["--body", "-b", "--notes"]).unwrap_or_default();
    let document = line.documents.first().filter(|_| body.is_empty() || body.starts_with("$("));
    let written = document.cloned().unwrap_or_else(|| body.to_owned());
    let url = output.split_whitespace().find(|word| word.starts_with("https://"));
    Some(StepResult {
        done,
        outcome: url.and_then(number),
        sentence: url.map(|url| format!("{}.", shorten(url, 200))),
        written: Some(written).filter(|text| !text.trim().is_empty() && !text.starts_with("$(")),
        ..StepResult::default()
    })
}

/// Returns `#12` for `https://github.com/owner/name/pull/12`.
fn number(url: &str) -> Option<String> {
    let part = url.split('#').next()?.trim_end_matches('/').rsplit('/').next()?;
    part.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("#{part}"))
}
