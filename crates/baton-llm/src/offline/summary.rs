//! Session summaries without a model: the goal, the changes, the checks and the outcome in the words of the agent.
//!
//! Built from all turns and observations of the session, never from an earlier summary. The size does not depend on the
//! length of the session.

use std::collections::HashMap;

use baton_core::observation::{Digest, FunctionAction, SessionMaterial, SessionSummary, is_consent, is_task};
use baton_core::{NoteKind, shorten};
use baton_observation::{check, commit_message, is_reading_tool};

use super::changed_files::{ChangedFiles, changed_files, edited_after_commit};
use super::checks;
use super::closing::Closing;
use super::history;
use super::open_work;
use super::text::{counted, join_within, one_line, unique};
use crate::compressor::NO_OBSERVATIONS;

/// Maximum number of key files.
const MAX_FILES: usize = 10;
/// Maximum number of key decisions.
const MAX_DECISIONS: usize = 10;
/// Maximum length of a summary in characters.
const MAX_CHARS: usize = 1_800;
/// Maximum length of one note in a summary.
const MAX_NOTE_CHARS: usize = 160;
/// Maximum length of all notes in a summary, and of the list of tool uses that are not processed yet.
const MAX_NOTES_CHARS: usize = 400;
/// Minimum length reserved for the agent's closing message.
const MIN_OUTCOME_CHARS: usize = 450;
/// Maximum length of the agent's closing message if there are earlier ones; otherwise it may fill the summary.
const MAX_OUTCOME_CHARS: usize = 650;
/// Maximum length of a request between the first and the last.
const MAX_LATER_CHARS: usize = 100;
/// Maximum length of all requests between the first and the last.
const MAX_BETWEEN_CHARS: usize = 280;
/// Maximum length of a list of functions.
const MAX_FUNCTIONS_CHARS: usize = 130;

/// Creates the summary of a session: goal, outcome, git, checks, open work, changed files, outcomes of earlier turns, and
/// changed functions if there is room.
pub(super) fn summarize(material: &SessionMaterial) -> SessionSummary {
    let SessionMaterial { digests, pending, .. } = material;
    let closing = Closing::of(material);
    if material.is_empty() && pending.is_empty() && closing.describe(0).is_none() {
        return SessionSummary { summary: NO_OBSERVATIONS.to_owned(), ..SessionSummary::default() };
    }
    let goal = goal(material);
    let mentions_failure = closing.last_words().is_some_and(|words| words.to_lowercase().contains("fail"));
    let mut results: Vec<String> = history::describe(digests).into_iter().collect();
    results.extend(checks::describe(digests, mentions_failure));
    results.extend(open_work::describe(digests));
    results.extend(notes(material));
    if !pending.is_empty() {
        results.push(format!("Not processed yet: {}.", join_within(pending, MAX_NOTES_CHARS)));
    }
    let ChangedFiles { files, deleted } = changed_files(digests);
    if !digests.is_empty() {
        results.push(changes(digests, &files, &deleted, pending.is_empty()));
    }
    let length = |texts: &[String]| texts.iter().map(|text| text.chars().count() + 1).sum::<usize>();
    let introduction = "The last turn stopped with an error. The agent concluded: \"\" ".len();
    let room = MAX_CHARS.saturating_sub(length(goal.as_slice()) + length(&results) + introduction);
    let most = if closing.has_earlier() { MAX_OUTCOME_CHARS } else { MAX_CHARS };
    let outcome = closing.describe(room.clamp(MIN_OUTCOME_CHARS, most));
    // A closing message such as "Good catch." states no outcome.
    let states_nothing = closing.last_words().is_none_or(|words| words.split_whitespace().count() < 3);
    let ended = ending(digests).filter(|_| states_nothing);
    let outcome = outcome.into_iter().chain(ended);
    // The most important texts come first, because the end is cut off.
    let texts: Vec<String> = goal.into_iter().chain(outcome).chain(results).collect();
    let mut summary = shorten(&texts.join(" "), MAX_CHARS);
    let left = |used: usize| MAX_CHARS.saturating_sub(used + 1);
    let earlier = closing.earlier(left(summary.chars().count()));
    let earlier = earlier.map(|earlier| format!(" {earlier}")).unwrap_or_default();
    if !files.is_empty() && summary.ends_with('.') {
        let functions = functions(digests, left(summary.chars().count() + earlier.chars().count()));
        summary.truncate(summary.len() - 1);
        summary.push_str(&format!("{functions}."));
    }
    summary.push_str(&earlier);
    SessionSummary {
        summary: summary.trim().to_owned(),
        key_files: files.iter().take(MAX_FILES).map(|file| (*file).to_owned()).collect(),
        key_decisions: key_decisions(material),
    }
}

/// Quotes the first request of the user, the first task if the first request is only a question, later requests, and the
/// last one. Words of consent are left out. A request that is sent again, which begins with the same words, is quoted
/// once.
fn goal(material: &SessionMaterial) -> Option<String> {
    let mut requests: Vec<String> = Vec::new();
    let mut starts: Vec<String> = Vec::new();
    let mut is_first_repeated = false;
    for request in material.requests() {
        if !requests.is_empty() && is_consent(&request) {
            continue;
        }
        let start = one_line(&request, MAX_LATER_CHARS);
        let known = starts.iter().position(|known| *known == start);
        is_first_repeated = known == Some(0);
        if is_first_repeated {
            continue;
        }
        if let Some(at) = known {
            requests.remove(at);
            starts.remove(at);
        }
        requests.push(request);
        starts.push(start);
    }
    let (first, mut later) = requests.split_first()?;
    let mut goal = format!("Asked to: {}", quoted(first, if later.is_empty() { 260 } else { 180 }));
    if let Some(at) = later.iter().position(|request| !is_task(first) && is_task(request)) {
        let (before, rest) = later.split_at(at);
        let (task, after) = rest.split_first()?;
        goal.push_str(&format!("{}; then: {}", later_requests(before), quoted(task, 140)));
        later = after;
    }
    match later.split_last() {
        Some((last, others)) if !is_first_repeated => {
            goal.push_str(&format!("{}; last: {}", later_requests(others), quoted(last, 140)));
        }
        _ => goal.push_str(&later_requests(later)),
    }
    Some(goal + ".")
}

fn quoted(request: &str, chars: usize) -> String {
    format!("\"{}\"", one_line(request, chars).trim_end_matches('.'))
}

/// Quotes the starts of requests: all if they fit, otherwise first questions and then the oldest requests are left out.
fn later_requests(requests: &[String]) -> String {
    let quotes = |chars| -> Vec<String> { requests.iter().map(|request| quoted(request, chars)).collect() };
    let fits = |quotes: &Vec<String>| quotes.join(", ").chars().count() <= MAX_BETWEEN_CHARS;
    if requests.is_empty() {
        return String::new();
    }
    if let Some(mut all) = [MAX_LATER_CHARS, MAX_LATER_CHARS / 2].into_iter().map(quotes).find(fits) {
        // Different requests may begin with the same words.
        all.dedup();
        let others = if all.len() < requests.len() { ", among others" } else { "" };
        return format!("; later{others}: {}", all.join(", "));
    }
    // Requests that are not tasks, such as questions about a detail, are left out first.
    let mut left: Vec<&String> = requests.iter().collect();
    let quotes = |left: &[&String]| -> Vec<String> {
        left.iter().map(|request| quoted(request, MAX_LATER_CHARS / 2)).collect()
    };
    while !fits(&quotes(&left)) {
        left.remove(left.iter().position(|request| !is_task(request)).unwrap_or(0));
    }
    let mut left = quotes(&left);
    left.dedup();
    format!("; later, among others: {}", left.join(", "))
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

/// Describes the changed files. That nothing was changed is stated only if every tool only reads, and all tool uses are
/// processed.
fn changes(digests: &[Digest], files: &[&str], deleted: &[&str], is_complete: bool) -> String {
    let count_and_names = |verb: &str, files: &[&str], chars| {
        format!("{verb} {}: {}", counted(files.len(), "file"), join_within(files, chars))
    };
    let deletions = if deleted.is_empty() { None } else { Some(count_and_names("Deleted", deleted, 100)) };
    if !files.is_empty() {
        let deletions = deletions.map(|deletions| format!("{deletions}. ")).unwrap_or_default();
        let later = edited_after_commit(digests);
        let later = if later.is_empty() {
            String::new()
        } else {
            format!("; after the last commit: {}", join_within(&later, 100))
        };
        return format!("{deletions}{}{later}.", count_and_names("Changed", files, 200));
    }
    if let Some(deletions) = deletions {
        return format!("{deletions}.");
    }
    let last: Vec<&str> = digests.iter().rev().map(|digest| digest.title.as_str()).take(3).collect();
    let looked = join_within(&last, 300);
    let steps = counted(digests.len(), "step");
    let only_reads = digests.iter().all(|digest| is_reading_tool(&digest.tool_name));
    match (is_complete, only_reads) {
        (true, true) => format!("Nothing was changed in {steps}; looked into: {looked}."),
        (true, false) => format!("No edits were recorded in {steps}; the last ones: {looked}."),
        (false, _) => format!("The last steps: {looked}."),
    }
}

/// Lists the changed functions as far as there is room: `; added a, b; removed c`.
fn functions(digests: &[Digest], room: usize) -> String {
    let functions = changed_functions(digests);
    let mut list = String::new();
    for (verb, action) in [
        ("added", FunctionAction::New),
        ("modified", FunctionAction::Modified),
        ("removed", FunctionAction::Deleted),
    ] {
        let names: Vec<&str> =
            functions.iter().filter(|(_, of)| *of == action).map(|(name, _)| *name).collect();
        let part = format!("; {verb} {}", join_within(&names, MAX_FUNCTIONS_CHARS));
        if !names.is_empty() && list.chars().count() + part.chars().count() <= room {
            list.push_str(&part);
        }
    }
    list
}

/// Returns what happened to each function over the whole session. One that was added and removed again is left out.
fn changed_functions(digests: &[Digest]) -> Vec<(&str, FunctionAction)> {
    let mut order: Vec<(&str, &str)> = Vec::new();
    let mut ends: HashMap<(&str, &str), (FunctionAction, FunctionAction)> = HashMap::new();
    for change in digests.iter().flat_map(|digest| &digest.functions_changed) {
        let key = (change.file.as_str(), change.name.as_str());
        ends.entry(key).and_modify(|(_, last)| *last = change.action).or_insert_with(|| {
            order.push(key);
            (change.action, change.action)
        });
    }
    let functions = order.into_iter().filter_map(|key| match ends.get(&key)? {
        (FunctionAction::New, FunctionAction::Deleted) => None,
        (FunctionAction::New, _) => Some((key.1, FunctionAction::New)),
        (_, FunctionAction::Deleted) => Some((key.1, FunctionAction::Deleted)),
        _ => Some((key.1, FunctionAction::Modified)),
    });
    unique(functions).collect()
}

/// Describes the last step that is neither a check nor a commit.
fn ending(digests: &[Digest]) -> Option<String> {
    let mut titles = digests.iter().rev().map(|digest| digest.title.as_str());
    let last = titles.find(|title| check(title).is_none() && commit_message(title).is_none())?;
    Some(format!("Ended with \"{}\".", one_line(last, 140)))
}

/// Returns the latest decisions: what the agent noted, what the user chose, approved or declined, and what was committed.
fn key_decisions(material: &SessionMaterial) -> Vec<String> {
    let mut decisions: Vec<String> =
        material.notes_of(NoteKind::Decision).map(|note| one_line(&note.text, 240)).collect();
    for digest in &material.digests {
        let decision = match digest.tool_name.as_str() {
            // A question that was not answered and a plan that was not approved are no decisions.
            "AskUserQuestion" if digest.summary.contains(" User chose: ") => {
                Some(one_line(&digest.summary, 240))
            }
            "ExitPlanMode" if digest.title.ends_with(": approved") => Some(one_line(&digest.summary, 240)),
            "AskUserQuestion" => None,
            _ if let Some((_, reason)) = digest.summary.split_once("They said: \"") => {
                Some(one_line(&format!("{}. They said: \"{reason}", digest.title), 300))
            }
            "ExitPlanMode" => None,
            _ => {
                commit_message(&digest.title).map(|message| format!("Committed: {}", one_line(message, 200)))
            }
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
