//! Session summaries without a model: the goal, the changes, the checks and the outcome in the words of the agent.
//!
//! Built from all turns and observations of the session, never from an earlier summary. The size does not depend on the
//! length of the session.

use std::collections::HashMap;

use baton_core::NoteKind;
use baton_core::observation::{
    Digest, FunctionAction, SessionMaterial, SessionSummary, TurnStatus, TurnText, is_interruption, is_task,
    user_request,
};
use baton_observation::{CheckKind, check, commit_message, is_failure, is_reading_tool, may_include};

use super::open_work;
use super::read::is_prose;
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
/// Maximum length of one earlier closing message, and the minimum worth quoting.
const MAX_EARLIER_CHARS: usize = 180;
const MIN_EARLIER_CHARS: usize = 40;
/// Maximum length of a request between the first and the last.
const MAX_LATER_CHARS: usize = 100;
/// Maximum length of the question at the end of a closing message.
const MAX_QUESTION_CHARS: usize = 140;

/// Creates the summary of a session: goal, outcome, commits, checks, changes, and outcomes of earlier turns.
pub(super) fn summarize(material: &SessionMaterial) -> SessionSummary {
    let turns: Vec<&TurnText> = material.turns.iter().filter(|turn| is_work(turn)).collect();
    let outcome = outcome(&material.turns, &turns);
    if material.is_empty() && material.pending.is_empty() && outcome.is_none() {
        return SessionSummary { summary: NO_OBSERVATIONS.to_owned(), ..SessionSummary::default() };
    }
    let mut results: Vec<String> = goal(material).into_iter().collect();
    results.extend(outcome.or_else(|| ending(&material.digests)));
    results.extend(commits(&material.digests));
    let mentions_failure = closings(&turns).next().is_some_and(|words| words.to_lowercase().contains("fail"));
    results.extend(checks(&material.digests, mentions_failure));
    results.extend(open_work::describe(&material.digests));
    results.extend(notes(material));
    if !material.pending.is_empty() {
        results.push(format!("Not processed yet: {}.", join_within(&material.pending, MAX_NOTES_CHARS)));
    }
    // What comes first is most important; the rest is shortened.
    let mut summary = shorten(&results.join(" "), MAX_CHARS);
    let left = |summary: &str| MAX_CHARS.saturating_sub(summary.chars().count() + 1);
    if !material.digests.is_empty() && left(&summary) > 0 {
        let changes = changes(&material.digests, material.pending.is_empty());
        summary.push_str(&format!(" {}", shorten(&changes, left(&summary))));
    }
    if let Some(earlier) = earlier_outcomes(&turns, left(&summary)) {
        summary.push_str(&format!(" {earlier}"));
    }
    SessionSummary {
        summary: summary.trim().to_owned(),
        key_files: key_files(material),
        key_decisions: key_decisions(material),
    }
}

/// Describes the first request of the user, with the one after it if the first is only a short question, the starts of
/// later ones, and the last one.
fn goal(material: &SessionMaterial) -> Option<String> {
    let requests: Vec<String> = material.requests().collect();
    let first = requests.first()?;
    let task = requests.iter().find(|request| is_task(request)).filter(|task| *task != first);
    let last = requests.last().filter(|last| *last != first && Some(*last) != task);
    let quoted = |prompt: &str, chars| format!("\"{}\"", one_line(prompt, chars).trim_end_matches('.'));
    let mut goal = format!("Asked to: {}", quoted(first, if last.is_some() { 180 } else { 220 }));
    if let Some(task) = task {
        goal.push_str(&format!("; then: {}", quoted(task, 140)));
    }
    let is_between =
        |request: &&String| *request != first && Some(*request) != task && Some(*request) != last;
    let mut between: Vec<String> = Vec::new();
    let mut seen: Vec<String> = [Some(first), task, last]
        .into_iter()
        .flatten()
        .map(|request| quoted(request, MAX_LATER_CHARS))
        .collect();
    for request in requests.iter().filter(|request| is_task(request)).filter(is_between) {
        let request = quoted(request, MAX_LATER_CHARS);
        // A plan that is sent again begins with the same words.
        if !seen.contains(&request) {
            seen.push(request.clone());
            between.push(request);
        }
    }
    if !between.is_empty() {
        goal.push_str(&format!("; later: {}", join_within(&between, MAX_LATER_CHARS * 2 + 20)));
    }
    if let Some(last) = last {
        goal.push_str(&format!("; last: {}", quoted(last, 140)));
    }
    Some(goal + ".")
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

/// Whether a turn is work of the agent. Commands such as `/exit` and the texts of programs are recorded as turns too.
fn is_work(turn: &TurnText) -> bool {
    let is_answered = turn.answer().is_some();
    let is_continued = turn.prompt.starts_with("This session is being continued");
    is_answered || turn.prompt.is_empty() || is_continued || user_request(&turn.prompt).is_some()
}

/// Describes the end of the session: how the last turn ended, and the agent's own closing words.
fn outcome(all: &[TurnText], turns: &[&TurnText]) -> Option<String> {
    let last = turns.last()?;
    let after = all.iter().rev().take_while(|turn| *turn != *last);
    let is_interrupted = after.into_iter().any(|turn| is_interruption(&turn.prompt));
    let ended = match last.status {
        _ if is_interrupted => "The user interrupted the last turn. ",
        TurnStatus::Failed => "The last turn stopped with an error. ",
        TurnStatus::Interrupted => "The user interrupted the last turn. ",
        TurnStatus::Unfinished => "The last turn is unfinished. ",
        TurnStatus::Open | TurnStatus::Done | TurnStatus::Unknown => "",
    };
    let Some(words) = closings(turns).next() else {
        return (!ended.is_empty()).then(|| ended.trim_end().to_owned());
    };
    let is_conclusion = last.closing.is_some() && !is_interrupted && !announces(words);
    let whose = if is_conclusion { "The agent concluded" } else { "The agent last said" };
    Some(format!("{ended}{whose}: \"{}\"", closing_words(words)))
}

/// Returns the start of a closing message without introductory words, and the question to the user at its end.
fn closing_words(words: &str) -> String {
    let words = without_introduction(words);
    let start = one_line(&words, MAX_OUTCOME_CHARS);
    if !start.ends_with('…') {
        return start;
    }
    let paragraph = words.trim_end().rsplit('\n').next().unwrap_or_default().trim();
    let from = paragraph.rfind(['.', '!', ':']).map_or(0, |at| at + 1);
    let question = paragraph.get(from..).unwrap_or_default().trim();
    if !question.ends_with('?') || question.chars().count() > MAX_QUESTION_CHARS {
        return start;
    }
    let room = MAX_OUTCOME_CHARS.saturating_sub(question.chars().count() + 1);
    format!("{} {question}", one_line(&words, room))
}

/// Removes what only introduces the rest of a closing message: an exclamation, the announcement of a summary, and a heading
/// that says nothing else.
fn without_introduction(words: &str) -> String {
    const EXCLAMATIONS: [&str; 5] = ["Perfect!", "Great!", "Excellent!", "Perfect.", "Great."];
    let is_heading = |line: &str| {
        let text = line.trim_start_matches('#').trim_matches(['*', ':', ' ']).to_lowercase();
        let is_marked =
            line.starts_with('#') || line.starts_with("**") && line.trim_end_matches(':').ends_with("**");
        is_marked && text.split_whitespace().count() <= 4 && text.contains("summary")
    };
    let is_announcement = |sentence: &str| {
        let sentence = sentence.to_lowercase();
        let starts = ["let me ", "now let me ", "here's ", "here is "];
        // Not "Here's the description of the pull request:", which says what follows.
        sentence.ends_with(':')
            && starts.iter().any(|start| sentence.starts_with(start))
            && ["summary", "what was", "what i ", "what changed"].iter().any(|words| sentence.contains(words))
    };
    let mut lines: Vec<String> = Vec::new();
    for line in words.trim().lines() {
        let mut bare = line.trim();
        if lines.is_empty() {
            let rest = EXCLAMATIONS.iter().find_map(|word| bare.strip_prefix(word)).map(str::trim_start);
            bare = rest.unwrap_or(bare);
        }
        // Later lines are quoted as they are.
        if lines.len() > 1 {
            lines.push(bare.to_owned());
            continue;
        }
        if !bare.chars().any(char::is_alphanumeric) || is_heading(bare) {
            continue;
        }
        let (before, last) = bare.rsplit_once(". ").unwrap_or(("", bare));
        match (is_announcement(last), before) {
            (false, _) => lines.push(bare.to_owned()),
            (true, "") => {}
            (true, before) => lines.push(format!("{before}.")),
        }
    }
    let text = lines.join("\n").trim().to_owned();
    if text.is_empty() { words.trim().to_owned() } else { text }
}

/// Returns the closing messages, latest first.
fn closings<'a>(turns: &[&'a TurnText]) -> impl Iterator<Item = &'a str> {
    answered(turns).filter_map(TurnText::answer)
}

/// Returns the turns with a closing message, latest first.
fn answered<'a>(turns: &[&'a TurnText]) -> impl Iterator<Item = &'a TurnText> {
    turns.iter().rev().copied().filter(|turn| turn.answer().is_some())
}

/// Whether the agent only says what it is about to do.
fn announces(words: &str) -> bool {
    const STARTS: [&str; 5] = ["let me ", "now let me ", "i'll ", "i will ", "i need to "];
    let last = words.trim().rsplit(['\n', '.', '!']).map(str::trim).find(|sentence| !sentence.is_empty());
    let last = last.unwrap_or_default().to_lowercase();
    let is_start = STARTS.iter().any(|start| last.starts_with(start)) && !last.starts_with("let me know");
    is_start || words.trim_end().ends_with(':')
}

/// Quotes the starts of the closing messages of earlier turns, as many as there is room for: turns that changed something
/// before turns that only answered a question, latest first.
fn earlier_outcomes(turns: &[&TurnText], room: usize) -> Option<String> {
    let mut earlier: Vec<&TurnText> = answered(turns).skip(1).collect();
    earlier.sort_by_key(|turn| !turn.has_changes);
    let closings = earlier.into_iter().filter_map(TurnText::answer);
    let mut quoted: Vec<String> = Vec::new();
    let mut used = "Before that:".len();
    for words in closings.filter(|words| !announces(words)) {
        let start =
            one_line(&without_introduction(words), MAX_EARLIER_CHARS.min(room.saturating_sub(used + 3)));
        let quote = format!("\"{start}\"");
        if start.chars().count() < MIN_EARLIER_CHARS || quoted.contains(&quote) {
            continue;
        }
        used += quote.chars().count() + 2;
        if used > room {
            break;
        }
        quoted.push(quote);
    }
    (!quoted.is_empty()).then(|| format!("Before that: {}", quoted.join(", ")))
}

/// Whether a change of a file can change the result of a check.
pub(super) fn is_source(file: &str) -> bool {
    !is_prose(file) && !file.starts_with("/tmp/")
}

/// Describes the changed files. That nothing was changed is stated only if every tool only reads, and all tool uses are
/// processed.
fn changes(digests: &[Digest], is_complete: bool) -> String {
    let files =
        ranked_files(digests.iter().flat_map(|digest| digest.files_touched.iter().map(String::as_str)));
    if files.is_empty() {
        let looked = join_within(&last_titles(digests, 3), 300);
        let steps = counted(digests.len(), "step");
        let only_reads = digests.iter().all(|digest| is_reading_tool(&digest.tool_name));
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

/// Lists the latest result of each kind of check, failed ones first. A failure and a result before the last edits are left
/// out if a later command with several steps succeeded, because it may have repeated the check. If the agent mentions a
/// failure, adds the last check that failed and was not run again, even if another check of its kind passed later.
fn checks(digests: &[Digest], mentions_failure: bool) -> Option<String> {
    let mut latest: Vec<(CheckKind, &str, bool)> = Vec::new();
    let mut open_failure: Option<&str> = None;
    let mut was_edited = false;
    let mut passed: Vec<&str> = Vec::new();
    for digest in digests.iter().rev() {
        if let Some(check) = check(&digest.title) {
            let has_failed = is_failure(&digest.title);
            let is_repeated = || passed.iter().any(|command| may_include(command, check.kind));
            let is_latest = latest.iter().all(|(kind, ..)| *kind != check.kind)
                && !((has_failed || was_edited) && is_repeated());
            let was_run_again =
                || passed.iter().any(|command| *command == check.command || command.contains(" more"));
            let has_passed_later =
                || latest.iter().any(|(kind, title, _)| *kind == check.kind && !is_failure(title));
            if has_failed && mentions_failure && has_passed_later() && !was_run_again() {
                open_failure = open_failure.or(Some(&digest.title));
            }
            if !has_failed {
                passed.push(check.command);
            }
            if is_latest {
                latest.push((check.kind, &digest.title, was_edited));
            }
        }
        was_edited |= digest.files_touched.iter().any(|file| is_source(file));
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
    let open_failure = open_failure.map(|title| format!("\"{}\" (not run again)", one_line(title, 120)));
    let lines: Vec<String> = open_failure.into_iter().chain(latest.iter().map(line)).collect();
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

/// Ranks files by the number of changes, latest first among equals. Files outside the repository are last.
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
    // Files outside the repository, such as plans in the home folder, come last.
    ranked.sort_by_key(|(file, count)| (file.starts_with(['/', '~']), std::cmp::Reverse(*count)));
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
            _ if let Some((_, said)) = digest.summary.split_once("They said: \"") => {
                Some(one_line(&format!("{}. They said: \"{said}", digest.title), 300))
            }
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
