//! Session summaries without a model: the goal, the changes, the checks and the outcome in the words of the agent.
//!
//! Built from all turns and observations of the session, never from an earlier summary. The size does not depend on the
//! length of the session.

use baton_core::NoteKind;
use baton_core::observation::{
    Digest, FunctionAction, MAX_SUMMARY_CHARS, SessionMaterial, SessionSummary, TurnStatus, TurnText,
    commit_message, is_check as title_is_check,
};

use super::text::{counted, join_within, one_line, shorten};

/// Maximum number of files and decisions.
const MAX_FILES: usize = 10;
const MAX_DECISIONS: usize = 10;
/// Maximum length of one note and of all notes in a summary.
const MAX_NOTE_CHARS: usize = 160;
const MAX_NOTES_CHARS: usize = 400;
/// Summary of a session without observations.
const NO_OBSERVATIONS: &str = "No observations captured.";
/// Maximum length of the agent's closing words in a summary.
const MAX_OUTCOME_CHARS: usize = 450;

/// Creates the summary of a session: goal, changes, commits and checks, outcome.
pub(super) fn summarize(material: &SessionMaterial) -> SessionSummary {
    let outcome = outcome(&material.turns);
    let is_empty = material.digests.is_empty() && material.notes.is_empty() && material.pending.is_empty();
    if is_empty && outcome.is_none() {
        let nothing = SessionSummary { summary: NO_OBSERVATIONS.to_owned(), ..SessionSummary::default() };
        return material.previous.clone().unwrap_or(nothing);
    }
    let mut sentences: Vec<String> = goal(material).into_iter().collect();
    if !material.digests.is_empty() {
        sentences.push(changes(&material.digests, material.pending.is_empty()));
        sentences.extend(checks(&material.digests));
    }
    sentences.extend(notes(material));
    if !material.pending.is_empty() {
        sentences.push(format!("Not processed yet: {}.", join_within(&material.pending, MAX_NOTES_CHARS)));
    }
    // The end of the session is never cut.
    let end = outcome.or_else(|| ending(&material.digests)).unwrap_or_default();
    let room = MAX_SUMMARY_CHARS - end.chars().count() - 1;
    let summary = format!("{} {end}", shorten(&sentences.join(" "), room));
    SessionSummary {
        summary: summary.trim().to_owned(),
        key_files: key_files(material),
        key_decisions: key_decisions(material),
    }
}

/// Describes the first request of the user, and the last one if it is another.
fn goal(material: &SessionMaterial) -> Option<String> {
    let asks =
        |prompt: &&str| prompt.split_whitespace().count() >= 6 && !prompt.trim_start().starts_with('<');
    let first = material.prompts().find(asks).or_else(|| material.prompts().next())?;
    let quoted = |prompt: &str, chars| format!("\"{}\"", one_line(prompt, chars).trim_end_matches('.'));
    let count = material.prompts().count();
    let last = material.prompts().next_back().filter(|last| *last != first);
    Some(match last {
        None => format!("Asked to: {}.", quoted(first, 220)),
        Some(last) => {
            format!("Asked to: {}; the last of {count} requests: {}.", quoted(first, 180), quoted(last, 140))
        }
    })
}

/// Quotes the notes that the agent recorded. Decisions are listed separately, unless there is nothing else.
fn notes(material: &SessionMaterial) -> Option<String> {
    let has_only_decisions =
        material.digests.is_empty() && material.notes.iter().all(|note| note.kind == NoteKind::Decision);
    let lines: Vec<String> = material
        .notes
        .iter()
        .filter(|note| has_only_decisions || note.kind != NoteKind::Decision)
        .map(|note| one_line(&note.line(), MAX_NOTE_CHARS))
        .collect();
    (!lines.is_empty()).then(|| format!("Noted {}.", join_within(&lines, MAX_NOTES_CHARS)))
}

/// Describes the end of the session: how the last turn ended, and the agent's own closing words.
fn outcome(turns: &[TurnText]) -> Option<String> {
    let last = turns.last()?;
    let ended = match last.status {
        TurnStatus::Failed => "The last turn stopped with an error. ",
        TurnStatus::Interrupted => "The user interrupted the last turn. ",
        TurnStatus::Unfinished => "The last turn is unfinished. ",
        TurnStatus::Open | TurnStatus::Done | TurnStatus::Unknown => "",
    };
    let words = turns.iter().rev().find_map(|turn| turn.closing.as_deref());
    match words {
        Some(words) => {
            let whose = if last.closing.is_some() { "The agent concluded" } else { "The agent last said" };
            Some(format!("{ended}{whose}: {}", one_line(words, MAX_OUTCOME_CHARS)))
        }
        None => (!ended.is_empty()).then(|| ended.trim_end().to_owned()),
    }
}

/// Describes the changed files. That nothing was changed is stated only if all tool uses are processed.
fn changes(digests: &[Digest], is_complete: bool) -> String {
    let files =
        ranked_files(digests.iter().flat_map(|digest| digest.files_touched.iter().map(String::as_str)));
    if files.is_empty() {
        let looked = join_within(&last_titles(digests, 3), 300);
        return if is_complete {
            format!("Nothing was changed in {}; looked into: {looked}.", counted(digests.len(), "step"))
        } else {
            format!("Looked into: {looked}.")
        };
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
    commit_message(&digest.title)
}

fn is_check(digest: &Digest) -> bool {
    digest.files_touched.is_empty() && title_is_check(&digest.title)
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

fn key_files(material: &SessionMaterial) -> Vec<String> {
    let files = material.digests.iter().flat_map(|digest| digest.files_touched.iter().map(String::as_str));
    ranked_files(files).into_iter().take(MAX_FILES).map(|(file, _)| file.to_owned()).collect()
}

/// Returns the latest decisions: what the agent noted, what the user chose, approved or declined, and what was committed.
fn key_decisions(material: &SessionMaterial) -> Vec<String> {
    let mut decisions: Vec<String> =
        material.noted(NoteKind::Decision).map(|note| one_line(&note.text, 240)).collect();
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
