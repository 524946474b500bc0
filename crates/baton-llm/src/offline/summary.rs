//! Session summaries without a model: the request, the changes, the checks and the last step.
//!
//! Built from the observations and the previous summary. The size does not depend on the length of the session.

use baton_core::observation::{Digest, FunctionAction, MAX_SUMMARY_CHARS, SessionMaterial, SessionSummary};

use super::text::{counted, join_within, one_line, shorten};

/// Maximum number of files and decisions.
const MAX_FILES: usize = 10;
const MAX_DECISIONS: usize = 10;
/// Summary of a session without observations.
const NO_OBSERVATIONS: &str = "No observations captured.";
/// Prefix of the part that repeats the previous summary.
const EARLIER_PREFIX: &str = "Earlier: ";

/// Creates the summary of a session.
pub(super) fn summarize(material: &SessionMaterial) -> SessionSummary {
    if material.digests.is_empty() {
        let nothing = SessionSummary { summary: NO_OBSERVATIONS.to_owned(), ..SessionSummary::default() };
        return material.previous.clone().unwrap_or(nothing);
    }
    let previous = material.previous.as_ref().filter(|previous| previous.summary != NO_OBSERVATIONS);
    let files = key_files(material);
    let mut sentences: Vec<String> = Vec::new();
    if let Some(previous) = previous {
        sentences.push(format!("{EARLIER_PREFIX}{}", gist(&previous.summary)));
    } else if let Some(request) = request(&material.prompts) {
        sentences.push(request);
    }
    sentences.push(changes(&material.digests));
    sentences.extend(checks(&material.digests));
    sentences.extend(ending(&material.digests));
    sentences.truncate(4);
    SessionSummary {
        summary: shorten(&sentences.join(" "), MAX_SUMMARY_CHARS),
        key_files: files,
        key_decisions: key_decisions(material),
    }
}

/// Describes the first request of the user.
fn request(prompts: &[String]) -> Option<String> {
    let asks = |prompt: &&String| {
        prompt.split_whitespace().count() >= 6 && !prompt.trim_start().starts_with(['<', '/'])
    };
    let first = prompts.iter().find(asks).or(prompts.first())?;
    let words = one_line(first, 220);
    let more = prompts.len().saturating_sub(1);
    let more = if more > 0 { format!(" (and {})", counted(more, "more request")) } else { String::new() };
    (!words.is_empty()).then(|| format!("Asked to: \"{}\"{more}.", words.trim_end_matches('.')))
}

/// Shortens the previous summary, so that it does not grow with every continuation.
fn gist(summary: &str) -> String {
    let text = summary.strip_prefix(EARLIER_PREFIX).unwrap_or(summary);
    let text = one_line(text, 360);
    if text.ends_with(['.', '…', '!', '?']) { text } else { format!("{text}.") }
}

fn changes(digests: &[Digest]) -> String {
    let files =
        ranked_files(digests.iter().flat_map(|digest| digest.files_touched.iter().map(String::as_str)));
    if files.is_empty() {
        let looked: Vec<&str> = last_titles(digests, 3);
        return format!(
            "Nothing was changed in {}; looked into: {}.",
            counted(digests.len(), "step"),
            join_within(&looked, 300)
        );
    }
    let names: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
    let mut sentence = format!("Changed {}: {}", counted(files.len(), "file"), join_within(&names, 200));
    for (verb, action) in [
        ("added", FunctionAction::New),
        ("modified", FunctionAction::Modified),
        ("removed", FunctionAction::Deleted),
    ] {
        let mut functions: Vec<&str> = Vec::new();
        for change in digests
            .iter()
            .flat_map(|digest| &digest.functions_changed)
            .filter(|change| change.action == action)
        {
            if !functions.contains(&change.name.as_str()) {
                functions.push(&change.name);
            }
        }
        if !functions.is_empty() {
            sentence.push_str(&format!("; {verb} {}", join_within(&functions, 130)));
        }
    }
    sentence + "."
}

/// Describes commits and the last check.
fn checks(digests: &[Digest]) -> Option<String> {
    let commits: Vec<String> =
        digests.iter().filter_map(commit).map(|message| format!("'{message}'")).collect();
    let test = digests.iter().rev().find(|digest| is_check(digest));
    let mut parts = Vec::new();
    if !commits.is_empty() {
        parts.push(format!("committed {}", join_within(&commits, 220)));
    }
    if let Some(test) = test {
        parts.push(format!("last check was \"{}\"", one_line(&test.title, 120)));
    }
    let sentence = parts.join("; ");
    let mut letters = sentence.chars();
    letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// Describes the last step that is neither a check nor a commit.
fn ending(digests: &[Digest]) -> Option<String> {
    let last = digests.iter().rev().find(|digest| !is_check(digest) && commit(digest).is_none())?;
    Some(format!("Ended with \"{}\".", one_line(&last.title, 140)))
}

fn commit(digest: &Digest) -> Option<&str> {
    // A title with something after the message states why there is no commit.
    digest.title.strip_prefix("Commit '")?.strip_suffix('\'')
}

fn is_check(digest: &Digest) -> bool {
    let title = digest.title.to_ascii_lowercase();
    let checks = ["test", "lint", "clippy", "build", "check"].iter().any(|word| title.contains(word));
    checks && digest.files_touched.is_empty() && title.starts_with("run ")
}

fn last_titles(digests: &[Digest], count: usize) -> Vec<&str> {
    digests.iter().rev().map(|digest| digest.title.as_str()).take(count).collect()
}

/// Ranks files by the number of changes, latest first among equals.
fn ranked_files<'a>(files: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut ranked: Vec<(&str, usize)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for file in files {
        let at = *places.entry(file).or_insert_with(|| {
            ranked.push((file, 0));
            ranked.len() - 1
        });
        if let Some((_, count)) = ranked.get_mut(at) {
            *count += 1;
        }
    }
    ranked.reverse();
    ranked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    ranked
}

/// Ranks the files of the previous summary and of this part together.
fn key_files(material: &SessionMaterial) -> Vec<String> {
    let earlier = material.previous.iter().flat_map(|previous| previous.key_files.iter().map(String::as_str));
    let now = material.digests.iter().flat_map(|digest| digest.files_touched.iter().map(String::as_str));
    ranked_files(earlier.chain(now)).into_iter().take(MAX_FILES).map(|(file, _)| file.to_owned()).collect()
}

/// Returns the latest decisions: what the user chose, approved or declined, and what was committed.
fn key_decisions(material: &SessionMaterial) -> Vec<String> {
    let mut decisions: Vec<String> =
        material.previous.iter().flat_map(|previous| previous.key_decisions.clone()).collect();
    for digest in &material.digests {
        let decision = match digest.tool_name.as_str() {
            // A question that was not answered and a plan that was not approved are no decisions.
            "AskUserQuestion" if digest.summary.contains(" User chose: ") => {
                Some(one_line(&digest.summary, 240))
            }
            "ExitPlanMode" if digest.title.ends_with(": approved") => Some(one_line(&digest.summary, 240)),
            "AskUserQuestion" | "ExitPlanMode" => None,
            _ if digest.summary.contains("They said: \"") => Some(one_line(&digest.summary, 240)),
            _ => commit(digest).map(|message| format!("Committed: {}", one_line(message, 200))),
        };
        if let Some(decision) =
            decision.filter(|decision| !decision.is_empty() && !decisions.contains(decision))
        {
            decisions.push(decision);
        }
    }
    let surplus = decisions.len().saturating_sub(MAX_DECISIONS);
    decisions.split_off(surplus)
}
