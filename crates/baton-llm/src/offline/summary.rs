//! Session summaries without a model: the goal, the changes, the checks and the outcome in the words of the agent.
//!
//! Built from all turns and observations of the session, never from an earlier summary. The size does not depend on the
//! length of the session.

use std::collections::HashMap;

use baton_core::NoteKind;
use baton_core::observation::{
    CheckKind, Digest, FunctionAction, SessionMaterial, SessionSummary, TurnStatus, TurnText, check,
    commit_message, is_failure,
};

use super::text::{counted, join_within, one_line, shorten};

/// Maximum number of files and decisions.
const MAX_FILES: usize = 10;
const MAX_DECISIONS: usize = 10;
/// Maximum length of a summary in characters.
const MAX_CHARS: usize = 1_500;
/// Maximum length of one note and of all notes in a summary.
const MAX_NOTE_CHARS: usize = 160;
const MAX_NOTES_CHARS: usize = 400;
/// Summary of a session without observations.
const NO_OBSERVATIONS: &str = "No observations captured.";
/// Maximum length of the agent's closing words in a summary.
const MAX_OUTCOME_CHARS: usize = 450;
/// A closing message below this length is quoted with the one before it.
const SHORT_CLOSING_CHARS: usize = 80;
/// Tools that change nothing.
const READING_TOOLS: [&str; 9] =
    ["Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "AskUserQuestion", "TodoWrite", "ExitPlanMode"];
/// Starts of prompts that a program wrote.
const WRITTEN_BY_PROGRAMS: [&str; 4] =
    ["<", "Caveat:", "This session is being continued", "[Request interrupted"];

/// Creates the summary of a session: goal, changes, commits and checks, outcome.
pub(super) fn summarize(material: &SessionMaterial) -> SessionSummary {
    let outcome = outcome(&material.turns);
    if material.is_empty() && material.pending.is_empty() && outcome.is_none() {
        return SessionSummary { summary: NO_OBSERVATIONS.to_owned(), ..SessionSummary::default() };
    }
    let mut results: Vec<String> = Vec::new();
    results.extend(commits(&material.digests));
    results.extend(checks(&material.digests));
    results.extend(notes(material));
    if !material.pending.is_empty() {
        results.push(format!("Not processed yet: {}.", join_within(&material.pending, MAX_NOTES_CHARS)));
    }
    results.extend(outcome.or_else(|| ending(&material.digests)));
    // Goal and changes are shortened, results never.
    let results = shorten(&results.join(" "), MAX_CHARS);
    let room = MAX_CHARS.saturating_sub(results.chars().count() + 1);
    let mut start: Vec<String> = goal(material).into_iter().collect();
    if !material.digests.is_empty() {
        start.push(changes(&material.digests, material.pending.is_empty()));
    }
    let start = if room > 0 { shorten(&start.join(" "), room) } else { String::new() };
    SessionSummary {
        summary: format!("{start} {results}").trim().to_owned(),
        key_files: key_files(material),
        key_decisions: key_decisions(material),
    }
}

/// Describes the first request of the user, and the last one if it is another.
fn goal(material: &SessionMaterial) -> Option<String> {
    let requests: Vec<String> = material.prompts().filter_map(request).collect();
    // A greeting or a short question comes before the request.
    let is_request = |request: &&String| {
        let words = request.split_whitespace().count();
        words >= 10 || words >= 5 && !request.trim_end().ends_with('?') || request.starts_with('/')
    };
    let first = requests.iter().find(is_request).or(requests.first())?;
    let quoted = |prompt: &str, chars| format!("\"{}\"", one_line(prompt, chars).trim_end_matches('.'));
    let last = requests.last().filter(|last| *last != first);
    Some(match last {
        None => format!("Asked to: {}.", quoted(first, 220)),
        Some(last) => format!(
            "Asked to: {}; the last of {} requests: {}.",
            quoted(first, 180),
            requests.len(),
            quoted(last, 140)
        ),
    })
}

/// Returns what the user asked for: a slash command with its arguments, or the text. `None` for a prompt that a program
/// wrote.
fn request(prompt: &str) -> Option<String> {
    let prompt = prompt.trim();
    let tagged = |tag: &str| {
        let (_, rest) = prompt.split_once(&format!("<{tag}>"))?;
        rest.split_once(&format!("</{tag}>")).map(|(text, _)| text.trim())
    };
    if let Some(command) = tagged("command-name").filter(|_| prompt.starts_with('<')) {
        return Some(format!("{command} {}", tagged("command-args").unwrap_or_default()).trim().to_owned());
    }
    let is_written = WRITTEN_BY_PROGRAMS.iter().any(|start| prompt.starts_with(start));
    (!is_written).then(|| prompt.to_owned())
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
    let mut closings = turns.iter().rev().filter_map(|turn| turn.closing.as_deref());
    let Some(words) = closings.next() else {
        return (!ended.is_empty()).then(|| ended.trim_end().to_owned());
    };
    let whose = if last.closing.is_some() { "The agent concluded" } else { "The agent last said" };
    let is_short = |words: &str| words.chars().count() < SHORT_CLOSING_CHARS;
    let before = is_short(words).then(|| closings.find(|words| !is_short(words))).flatten();
    let before = before.map(|before| {
        let room = MAX_OUTCOME_CHARS - words.chars().count();
        format!(" Before that: {}", one_line(before, room))
    });
    Some(format!("{ended}{whose}: {}{}", one_line(words, MAX_OUTCOME_CHARS), before.unwrap_or_default()))
}

/// Describes the changed files. That nothing was changed is stated only if every tool only reads, and all tool uses are
/// processed.
fn changes(digests: &[Digest], is_complete: bool) -> String {
    let files =
        ranked_files(digests.iter().flat_map(|digest| digest.files_touched.iter().map(String::as_str)));
    if files.is_empty() {
        let looked = join_within(&last_titles(digests, 3), 300);
        let steps = counted(digests.len(), "step");
        let only_reads = digests.iter().all(|digest| READING_TOOLS.contains(&digest.tool_name.as_str()));
        return match (is_complete, only_reads) {
            (true, true) => format!("Nothing was changed in {steps}; looked into: {looked}."),
            (true, false) => format!("No edits were recorded in {steps}; the last ones: {looked}."),
            (false, _) => format!("The last steps: {looked}."),
        };
    }
    let names: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
    let mut sentence = format!("Changed {}: {}", counted(files.len(), "file"), join_within(&names, 200));
    let functions = changed_functions(digests);
    for (verb, action) in [
        ("added", FunctionAction::New),
        ("modified", FunctionAction::Modified),
        ("removed", FunctionAction::Deleted),
    ] {
        let names: Vec<&str> =
            functions.iter().filter(|(_, of)| *of == action).map(|(name, _)| *name).collect();
        if !names.is_empty() {
            sentence.push_str(&format!("; {verb} {}", join_within(&names, 130)));
        }
    }
    sentence + "."
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
    let mut functions: Vec<(&str, FunctionAction)> = Vec::new();
    for key in order {
        let action = match ends.get(&key) {
            Some((FunctionAction::New, FunctionAction::Deleted)) | None => continue,
            Some((FunctionAction::New, _)) => FunctionAction::New,
            Some((_, FunctionAction::Deleted)) => FunctionAction::Deleted,
            Some(_) => FunctionAction::Modified,
        };
        if !functions.contains(&(key.1, action)) {
            functions.push((key.1, action));
        }
    }
    functions
}

/// Lists the commits.
fn commits(digests: &[Digest]) -> Option<String> {
    let messages: Vec<String> =
        digests.iter().filter_map(commit).map(|message| format!("'{message}'")).collect();
    (!messages.is_empty()).then(|| format!("Committed {}.", join_within(&messages, 240)))
}

/// Lists the latest result of each kind of check, failed ones first. A failure is left out if a later command with
/// several steps succeeded, because it may have repeated the check.
fn checks(digests: &[Digest]) -> Option<String> {
    let mut latest: Vec<(CheckKind, &str, bool)> = Vec::new();
    let (mut was_edited, mut may_be_repeated) = (false, false);
    for digest in digests.iter().rev() {
        was_edited |= !digest.files_touched.is_empty();
        let Some(check) = check(&digest.title).filter(|_| digest.files_touched.is_empty()) else { continue };
        let has_failed = is_failure(&digest.title);
        let is_latest =
            latest.iter().all(|(kind, ..)| *kind != check.kind) && !(has_failed && may_be_repeated);
        may_be_repeated |= !has_failed && check.command.contains(" and ");
        if is_latest {
            latest.push((check.kind, &digest.title, was_edited));
        }
    }
    // Formatting is of interest only if nothing else was checked.
    if latest.iter().any(|(kind, ..)| *kind != CheckKind::Format) {
        latest.retain(|(kind, ..)| *kind != CheckKind::Format);
    }
    latest.sort_by_key(|(_, title, _)| !is_failure(title));
    let line = |(_, title, was_edited): &(CheckKind, &str, bool)| {
        let age = if *was_edited { " (before the last edits)" } else { "" };
        format!("\"{}\"{age}", one_line(title, 120))
    };
    let lines: Vec<String> = latest.iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("Latest checks: {}.", lines.join(", ")))
}

/// Describes the last step that is neither a check nor a commit.
fn ending(digests: &[Digest]) -> Option<String> {
    let last =
        digests.iter().rev().find(|digest| check(&digest.title).is_none() && commit(digest).is_none())?;
    Some(format!("Ended with \"{}\".", one_line(&last.title, 140)))
}

fn commit(digest: &Digest) -> Option<&str> {
    commit_message(&digest.title)
}

fn last_titles(digests: &[Digest], count: usize) -> Vec<&str> {
    digests.iter().rev().map(|digest| digest.title.as_str()).take(count).collect()
}

/// Ranks files by the number of changes, latest first among equals.
fn ranked_files<'a>(files: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut ranked: Vec<(&str, usize)> = Vec::new();
    let mut places = HashMap::new();
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
