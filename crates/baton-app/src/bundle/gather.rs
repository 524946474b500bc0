//! Fetches the lines of a bundle.

use std::collections::HashMap;

use baton_core::observation::{TurnStatus, is_interruption, user_request};
use baton_core::recall::{CallerContext, ItemKind, MarkKind};
use baton_core::{
    Fault, Handoff, HandoffAuthor, HandoffFields, NoteKind, Repo, Session, SessionId, counted,
    estimate_tokens, one_line,
};
use baton_store::{MarkFilter, NoteFilter, Page, StoreError, TaskFilter, Tx, WorkflowFilter};

use super::files;
use super::layout::{Bundle, BundleLine, BundleParts, Section, lay_out};
use super::request::{BundleRequest, BundleScope};
use crate::checkpoint::workflow_of;
use crate::context::Context;
use crate::handoff::stored_automatic_content;
use crate::recall::{Loader, files_changed_in_session, hidden_items, kind_of};
use crate::repository::{latest_handoffs, other_sessions};
use crate::store_errors::corrupt_handoff;
use crate::summary::automatic_content;

/// Maximum number of recent sessions that are read.
const MAX_SESSIONS: u32 = 12;
/// Maximum number of recent sessions whose summary is a line.
const MAX_SUMMARIES: usize = 5;
/// Maximum number of other agents.
const MAX_AGENTS: usize = 5;
/// Maximum number of files that are listed for another agent.
const FILES_OF_AGENT: usize = 3;
/// Maximum number of notes.
const MAX_NOTES: u32 = 20;
/// Maximum number of pinned items.
const MAX_PINNED: u32 = 20;
/// Number of latest turns of a session among which the latest request is looked for.
const MAX_LATEST_TURNS: u32 = 10;
/// Maximum number of open tasks.
const MAX_TASKS: u32 = 3;
/// Number of characters by which a request is recognized in another line.
const MAX_KNOWN_CHARS: usize = 100;

/// Builds a bundle. The text is empty if nothing is recorded.
pub(crate) fn build(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
) -> Result<Bundle, Fault> {
    let mut parts = BundleParts { introduction: introduction(request), ..BundleParts::default() };
    let caller = CallerContext {
        branch: request.branch.map(str::to_owned),
        unmerged: tx.unmerged_branches(std::slice::from_ref(request.venture))?,
        ..CallerContext::default()
    };
    add_pinned(tx, request, &mut parts)?;
    match (request.scope, request.session) {
        (BundleScope::Chat, Some(session)) => add_own_chat(tx, session, &mut parts)?,
        _ => {
            let others = recent_sessions(tx, request)?;
            let described = add_handoffs(context, tx, request, &caller, &mut parts)?;
            add_unfinished_turn(tx, &others, &mut parts)?;
            add_tasks(tx, request, &mut parts)?;
            add_checkpoint(tx, request, &mut parts)?;
            add_agents(context, tx, request, &mut parts)?;
            let others = others.into_iter().filter(|session| !described.contains(&session.id));
            add_summaries(tx, others, &caller, &mut parts)?;
        }
    }
    add_notes(tx, request, &caller, &mut parts)?;
    files::add(tx, request, &mut parts)?;
    remove_hidden(tx, &mut parts)?;
    if parts.lines.is_empty() {
        return Ok(Bundle { text: String::new(), tokens: 0, omitted: Vec::new() });
    }
    parts.more.push("get ID with any id above (about 300 tokens)".to_owned());
    Ok(lay_out(&parts, request.limits))
}

fn introduction(request: &BundleRequest<'_>) -> String {
    let repo = request.repo;
    match request.session {
        Some(session) => format!(
            "Baton: session {} of {} in {repo} is open. Records of earlier work, for reference:",
            session.id, session.tuple.agent
        ),
        None => format!("Baton: records of earlier work in {repo}, for reference:"),
    }
}

fn line(section: Section, id: impl ToString, text: impl Into<String>) -> BundleLine {
    BundleLine { section, id: id.to_string(), text: text.into() }
}

/// Adds the pinned items of the repository, last pinned first.
fn add_pinned(tx: &mut dyn Tx, request: &BundleRequest<'_>, parts: &mut BundleParts) -> Result<(), Fault> {
    let filter = MarkFilter {
        ventures: Some(vec![request.venture.clone()]),
        repo: Some(request.repo.clone()),
        kind: Some(MarkKind::Pinned),
    };
    let mut loader = Loader::default();
    for mark in tx.marks(&filter, MAX_PINNED)? {
        let Some(item) = loader.load_intact(tx, kind_of(&mark.item), &mark.item)? else { continue };
        let text = match item.kind {
            ItemKind::Note | ItemKind::Summary => item.text,
            _ => item.title,
        };
        parts.lines.push(line(Section::Pinned, item.id, text));
    }
    Ok(())
}

/// Removes the lines of rejected and superseded items. The id of an agent's line is not the id of a summary.
fn remove_hidden(tx: &mut dyn Tx, parts: &mut BundleParts) -> Result<(), Fault> {
    let is_item = |line: &BundleLine| line.section != Section::Agents;
    let ids = parts.lines.iter().filter(|line| is_item(line)).map(|line| line.id.clone());
    let hidden = hidden_items(tx, ids)?;
    parts.lines.retain(|line| !is_item(line) || !hidden.contains(&line.id));
    Ok(())
}

/// Returns the latest sessions of the repository, except the one that receives the bundle.
fn recent_sessions(tx: &mut dyn Tx, request: &BundleRequest<'_>) -> Result<Vec<Session>, Fault> {
    let mut found = tx.recent_sessions(request.venture, request.repo, MAX_SESSIONS)?;
    found.retain(|session| request.session.is_none_or(|own| own.id != session.id));
    Ok(found)
}

/// Adds the latest handoffs. Returns the sessions whose work a line describes, so that their summaries are not added too.
fn add_handoffs(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
    caller: &CallerContext,
    parts: &mut BundleParts,
) -> Result<Vec<SessionId>, Fault> {
    let handoffs = latest_handoffs(tx, request.venture, request.repo, request.track)?;
    // Nothing is added for a session whose agent wrote the latest handoff.
    let wrote_latest = |session: &Session| {
        handoffs.first().is_some_and(|latest| {
            latest.session_id == session.id && latest.written_by == HandoffAuthor::Agent
        })
    };
    let unrecorded = request.unrecorded.filter(|session| !wrote_latest(session));
    let mut described = Vec::new();
    for handoff in handoffs.iter().rev() {
        if let Err(error) = add_handoff(handoff, caller, parts) {
            tracing::error!(%error, "a damaged handoff is left out of the context");
            continue;
        }
        if handoff.written_by == HandoffAuthor::Hook {
            described.push(handoff.session_id);
        }
    }
    if let Some(session) = unrecorded {
        add_unrecorded(context, tx, session, parts)?;
        described.push(session.id);
    }
    Ok(described)
}

/// Adds the content that a handoff of the live session would have.
fn add_unrecorded(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    parts: &mut BundleParts,
) -> Result<(), Fault> {
    let Some(content) = automatic_content(context.settings, tx, session.id)? else { return Ok(()) };
    let goal = HandoffFields::of(&content.payload).goal;
    let summary = without_goal(&content.summary, goal.as_deref());
    let text = format!("Work of {} that is not handed over yet: {summary}", session.tuple.agent);
    parts.lines.push(line(Section::State, session.id, text));
    parts.lines.extend(goal.map(|goal| line(Section::Goal, session.id, goal)));
    Ok(())
}

fn add_handoff(handoff: &Handoff, caller: &CallerContext, parts: &mut BundleParts) -> Result<(), StoreError> {
    let Handoff { id, from_agent, created_at, .. } = handoff;
    let label = handoff.status_label.as_ref().map_or_else(String::new, |label| format!(", {label}"));
    let unmerged = unmerged_label(caller, &handoff.repo, handoff.branch.as_deref());
    let HandoffFields {
        goal, state, decisions, rejected, gotchas, constraints, blockers, next_actions, ..
    } = handoff.fields().map_err(|error| corrupt_handoff(handoff, &error))?;
    let captured = stored_automatic_content(handoff)?;
    let goal = goal.or_else(|| HandoffFields::of(&captured?).goal);
    let summary = without_goal(&handoff.summary, goal.as_deref());
    let person = if handoff.written_by == HandoffAuthor::Person { " (a person)" } else { "" };
    let summary = format!("Handoff of {from_agent}{person}, {created_at}{label}{unmerged}: {summary}");
    let sections = [
        (Section::State, vec![summary]),
        (Section::Goal, goal.into_iter().collect()),
        (Section::State, state.into_iter().collect()),
        (Section::Constraints, constraints),
        (Section::Decided, decisions),
        (Section::Rejected, rejected),
        (Section::Gotchas, gotchas),
        (Section::Blocked, blockers),
        (Section::Next, next_actions),
    ];
    for (section, texts) in sections {
        parts.lines.extend(texts.into_iter().map(|text| line(section, id, text)));
    }
    let tokens = estimate_tokens(&handoff.summary) + estimate_tokens(&handoff.payload_json);
    parts.more.push(format!("handoff show {id} ({tokens} tokens)"));
    Ok(())
}

/// Removes the requests that are the goal from the start of an automatic summary, because the goal has a line of its own.
fn without_goal<'a>(summary: &'a str, goal: Option<&str>) -> &'a str {
    let goal = goal.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut rest, mut goal) = (summary, goal.as_str());
    for mark in ["Asked to: \"", "then: \""] {
        let Some(quoted) = rest.strip_prefix(mark) else { break };
        let same = quoted.chars().zip(goal.chars()).take_while(|(one, other)| one == other);
        let same: usize = same.map(|(one, _)| one.len_utf8()).sum();
        let after = quoted.get(same..).unwrap_or_default();
        let Some(after) = after.strip_prefix('…').unwrap_or(after).strip_prefix('"') else { break };
        rest = after.trim_start_matches(['.', ';', ' ']);
        goal = goal.get(same..).unwrap_or_default().trim_start_matches(['.', ' ']);
    }
    rest
}

/// Adds the latest request if it was not finished.
fn add_unfinished_turn(tx: &mut dyn Tx, sessions: &[Session], parts: &mut BundleParts) -> Result<(), Fault> {
    let ids: Vec<SessionId> = sessions.iter().map(|session| session.id).collect();
    let with_turns = tx.sessions_with_turns(&ids)?;
    for session in sessions.iter().filter(|session| with_turns.contains(&session.id)) {
        let mut is_interrupted = false;
        for turn in tx.turns(session.id, None, MAX_LATEST_TURNS)? {
            // A command of the client, for example /exit, and a text of a program are no requests.
            let Some(request) = user_request(&turn.prompt) else {
                // Some clients report an interruption as a prompt.
                is_interrupted = is_interruption(&turn.prompt);
                continue;
            };
            let state = match turn.status {
                _ if is_interrupted => "was interrupted",
                TurnStatus::Failed => "failed",
                TurnStatus::Interrupted => "was interrupted",
                TurnStatus::Unfinished => "is unfinished",
                TurnStatus::Open | TurnStatus::Done | TurnStatus::Unknown => return Ok(()),
            };
            // An automatic handoff lists it as next action.
            let start = one_line(&request, MAX_KNOWN_CHARS);
            parts.lines.retain(|line| {
                line.section != Section::Next || !line.text.contains(start.trim_end_matches('…'))
            });
            let mut text = format!("Request of {} that {state}: {request}", session.tuple.agent);
            if let Some(failure) = &turn.failure {
                text = format!("{text} ({failure})");
            }
            parts.lines.push(line(Section::State, turn.id, text));
            return Ok(());
        }
    }
    Ok(())
}

fn add_tasks(tx: &mut dyn Tx, request: &BundleRequest<'_>, parts: &mut BundleParts) -> Result<(), Fault> {
    let filter = TaskFilter {
        venture: request.venture.clone(),
        repo: Some(request.repo.clone()),
        status: None,
        only_open: true,
        offset: 0,
        limit: MAX_TASKS,
    };
    for task in tx.tasks(&filter)? {
        let holder = task.holder.as_ref().map_or_else(String::new, |role| format!(", held by {role}"));
        let drift = match task.open_drifts {
            0 => "no open drift".to_owned(),
            drifts => format!("{}, see baton task verify-worktree", counted(drifts, "open drift")),
        };
        let text = format!("Task \"{}\" is {}{holder}; {drift}", task.title, task.status.as_str());
        parts.lines.push(line(Section::Open, task.item_id(), text));
    }
    Ok(())
}

fn add_checkpoint(
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
    parts: &mut BundleParts,
) -> Result<(), Fault> {
    let filter = WorkflowFilter {
        venture: request.venture.clone(),
        repo: Some(request.repo.clone()),
        name: None,
        offset: 0,
        limit: 1,
    };
    let Some(workflow) = tx.workflows(&filter)?.pop() else { return Ok(()) };
    let Some(checkpoint) = tx.latest_checkpoint(request.venture, &workflow.id)? else { return Ok(()) };
    let name = workflow.name.as_ref().map_or_else(String::new, |name| format!(" \"{name}\""));
    let text = format!(
        "Checkpoint of workflow {}{name}, saved {}: workflow_checkpoint_load {} ({} bytes)",
        workflow.id, checkpoint.created_at, workflow.id, checkpoint.context_bytes
    );
    parts.lines.push(line(Section::Open, checkpoint.id, text));
    Ok(())
}

fn add_agents(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
    parts: &mut BundleParts,
) -> Result<(), Fault> {
    let own = request.session;
    let mut others = other_sessions(context, tx, request.venture, request.repo, own)?;
    others.retain(|session| own.is_some() || request.agent.is_none_or(|agent| *agent != session.tuple.agent));
    others.retain(|session| request.unrecorded.is_none_or(|unrecorded| unrecorded.id != session.id));
    for session in others.iter().take(MAX_AGENTS) {
        let files = files_changed_in_session(tx, session.id, FILES_OF_AGENT)?;
        let branch = session.facts.branch.as_ref().map_or_else(String::new, |branch| format!(" on {branch}"));
        let edits = if files.is_empty() { String::new() } else { format!(", edits {}", files.join(", ")) };
        let text = format!("{}{branch}{edits}", session.tuple.agent);
        parts.lines.push(line(Section::Agents, session.id, text));
    }
    Ok(())
}

fn add_summaries(
    tx: &mut dyn Tx,
    sessions: impl Iterator<Item = Session>,
    caller: &CallerContext,
    parts: &mut BundleParts,
) -> Result<(), Fault> {
    let sessions: Vec<Session> = sessions.collect();
    let ids: Vec<SessionId> = sessions.iter().map(|session| session.id).collect();
    let mut texts = tx.summary_texts(&ids)?;
    texts.retain(|_, text| !text.trim().is_empty());
    let with_text = sessions.iter().filter_map(|session| Some((session, texts.get(&session.id)?)));
    for (session, text) in with_text.take(MAX_SUMMARIES) {
        let branch = session.facts.branch.as_ref().map_or_else(String::new, |branch| format!(" on {branch}"));
        let day = session.created_at.day();
        let label = unmerged_label(caller, &session.tuple.repo, session.facts.branch.as_deref());
        let text = format!("{}{branch}, {day}{label}: {text}", session.tuple.agent);
        parts.lines.push(line(Section::Recent, session.id, text));
    }
    Ok(())
}

/// Adds the latest notes that no other line contains.
fn add_notes(
    tx: &mut dyn Tx,
    request: &BundleRequest<'_>,
    caller: &CallerContext,
    parts: &mut BundleParts,
) -> Result<(), Fault> {
    let own = request.session.filter(|_| request.scope == BundleScope::Chat);
    let filter = NoteFilter {
        ventures: Some(vec![request.venture.clone()]),
        repo: Some(request.repo.clone()),
        session_id: own.map(|session| session.id),
        ..NoteFilter::default()
    };
    let notes = tx.notes(&filter, Page::first(MAX_NOTES))?;
    let mut branches = HashMap::new();
    if !caller.unmerged.is_empty() {
        let sessions: Vec<SessionId> = notes.iter().filter_map(|note| note.session_id).collect();
        branches = tx.branches_of_sessions(&sessions)?;
    }
    for note in notes {
        let section = match note.kind {
            NoteKind::Decision => Section::Decided,
            NoteKind::Rejected => Section::Rejected,
            NoteKind::Gotcha => Section::Gotchas,
            NoteKind::Todo => Section::Next,
            NoteKind::Fact => Section::State,
        };
        if !parts.lines.iter().any(|line| line.text.contains(&note.text)) {
            let place = note.file.map_or_else(String::new, |file| format!(" ({file})"));
            let branch = note.session_id.and_then(|id| branches.get(&id));
            let label = unmerged_label(caller, &note.repo, branch.map(String::as_str));
            parts.lines.push(line(section, note.id, format!("{}{place}{label}", note.text)));
        }
    }
    Ok(())
}

/// Returns the label of work on a branch that is not merged and not the current one; empty for other work.
fn unmerged_label(caller: &CallerContext, repo: &Repo, branch: Option<&str>) -> String {
    let branch = caller.unmerged_branch(Some(repo), branch);
    branch.map_or_else(String::new, |branch| format!(" (branch {branch} is not merged)"))
}

/// Adds the chat's own goal, decisions, latest request and checkpoint.
fn add_own_chat(tx: &mut dyn Tx, session: &Session, parts: &mut BundleParts) -> Result<(), Fault> {
    const MAX_TURNS: u32 = 200;
    let turns = tx.turns(session.id, None, MAX_TURNS)?;
    if let Some(first) = turns.last().filter(|turn| !turn.prompt.is_empty()) {
        parts.lines.push(line(Section::Goal, first.id, first.prompt.as_str()));
    }
    for turn in turns.iter().take(3) {
        let text = match (&turn.closing, turn.status) {
            (Some(closing), TurnStatus::Done) => format!("Request: {} Answer: {closing}", turn.prompt),
            _ => format!("Request that is {}: {}", turn.status.as_str(), turn.prompt),
        };
        parts.lines.push(line(Section::State, turn.id, text));
    }
    if let Some(stored) = tx.summary(session.id)? {
        let decisions = stored.summary.key_decisions.into_iter();
        parts.lines.extend(decisions.map(|decision| line(Section::Decided, session.id, decision)));
    }
    let workflow = workflow_of(session)?;
    if let Some(checkpoint) = tx.latest_checkpoint(&session.tuple.venture, &workflow)? {
        let text = format!(
            "Checkpoint of this chat before compaction: workflow_checkpoint_load {workflow} ({} bytes)",
            checkpoint.context_bytes
        );
        parts.lines.push(line(Section::Open, checkpoint.id, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_goal_is_not_repeated_in_the_state() {
        let goal = Some("Fix the\nlogin page of the shop");
        for (summary, rest) in [
            (
                "Asked to: \"Fix the login page of the shop\". The agent concluded: \"Ok.\"",
                "The agent concluded: \"Ok.\"",
            ),
            ("Asked to: \"Fix the login…\"; last: \"Now\". Done.", "last: \"Now\". Done."),
            ("Asked to: \"Another\". Done.", "Asked to: \"Another\". Done."),
            ("Fixed the login page.", "Fixed the login page."),
        ] {
            assert_eq!(without_goal(summary, goal), rest);
            assert_eq!(without_goal(summary, None), summary);
        }
        let two = "Asked to: \"/brainstorm\"; then: \"Add hooks for…\"; last: \"Go on\".";
        assert_eq!(without_goal(two, Some("/brainstorm\nAdd hooks for the end")), "last: \"Go on\".");
    }
}
