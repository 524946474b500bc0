//! Recall during a chat: items that are related to a prompt, and a line about a file before it is edited.
//!
//! Both are off by default, and add an item to a chat once.

use baton_core::recall::CallerContext;
use baton_core::{Fault, NoteKind, Repo, Session, Venture, counted};
use baton_observation::{HookEvent, files_of};
use baton_store::{RecallFilter, Tx};

use super::hook_params::{Hook, HookOutput};
use crate::context::Context;
use crate::recall::{
    FileHistory, Find, HistoryScope, Loader, RankedDocument, file_history, files_changed_since,
    rank_documents,
};

/// Maximum number of items that a prompt adds.
const MAX_ITEMS: usize = 3;
/// Maximum number of matching items from which the added items are chosen.
const MAX_MATCHES: usize = 40;
/// Lowest `query_coverage` of an added item: the share of the prompt's words that it contains, where rare words count
/// more.
const MIN_COVERAGE: f64 = 0.4;
/// Lowest score of an added item, as a share of the best score.
const MIN_SCORE: f64 = 0.5;
/// Maximum number of changed files that are named for an item.
const MAX_CHANGED_FILES: usize = 3;
/// Tools that change files.
const EDIT_TOOLS: [&str; 5] = ["Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch"];

/// Finds items that are closely related to a prompt, before the transaction that stores it.
pub(super) fn related_items(
    context: &Context<'_>,
    params: &Hook,
    venture: &Venture,
    repo: &Repo,
) -> Result<Vec<RankedDocument>, Fault> {
    let (Some(prompt), Some(store)) = (&params.prompt, context.store) else { return Ok(Vec::new()) };
    if !context.actor.may_access(venture) {
        return Ok(Vec::new());
    }
    let asked = Find {
        text: prompt.clone(),
        filter: RecallFilter {
            ventures: vec![venture.clone()],
            repo: Some(repo.clone()),
            ..RecallFilter::default()
        },
        caller: CallerContext { branch: params.branch.clone().map(Into::into), ..CallerContext::default() },
        limit: MAX_MATCHES,
        ..Find::default()
    };
    let now = context.now;
    let (_, _, mut found) =
        store.read::<_, Fault, _>(move |tx| Ok(rank_documents(tx, &asked, now)?)).wait()?;
    let lowest = found.first().map_or(0.0, |best| best.score * MIN_SCORE);
    found.retain(|found| found.query_coverage >= MIN_COVERAGE && found.score >= lowest);
    Ok(found)
}

/// Returns the context that a prompt adds: related items of other sessions that the chat did not receive yet.
pub(super) fn at_prompt(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    related: &[RankedDocument],
) -> Result<HookOutput, Fault> {
    let mut loader = Loader::default();
    let mut lines = Vec::new();
    for found in related.iter().filter(|found| found.document.session_id != Some(session.id)) {
        let Some(item) = loader.load_intact(tx, found.document.kind, &found.document.item)? else { continue };
        // A summary and the automatic handoff of its session begin with the same text.
        let is_repeated = lines.iter().any(|line: &String| line.contains(&item.title));
        if is_repeated || !tx.record_shown_item(session.id, &item.id)? {
            continue;
        }
        let mut facts = vec![item.created_at.day()];
        facts.extend(item.agent.clone());
        let changed = files_changed_since(tx, &item, context.now)?;
        if !changed.is_empty() {
            facts.push(format!(
                "changed since: {}",
                changed[..changed.len().min(MAX_CHANGED_FILES)].join(", ")
            ));
        }
        lines.push(format!("- {} ({}) [{}]", item.title, facts.join("; "), item.id));
        if lines.len() == MAX_ITEMS {
            break;
        }
    }
    if lines.is_empty() {
        return Ok(HookOutput::default());
    }
    let heading = "Baton: records of earlier work that match this request, for reference:";
    let context = format!("{heading}\n{}", lines.join("\n"));
    Ok(HookOutput::adding(HookEvent::UserPromptSubmit, context))
}

/// Returns the line about a file that is about to be edited; nothing if no other session worked on it.
pub(super) fn before_edit(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    params: &Hook,
) -> Result<HookOutput, Fault> {
    let Some(path) = edited_file(params) else { return Ok(HookOutput::default()) };
    let scope = HistoryScope {
        ventures: vec![session.tuple.venture.clone()],
        repo: Some(session.tuple.repo.clone()),
        limit: 2,
    };
    let hash = params.file_hashes.as_ref().and_then(|hashes| hashes.get(&path)).copied();
    let history = file_history(tx, &path, &scope, hash, context.now)?;
    let Some(line) = file_line(&history, session) else { return Ok(HookOutput::default()) };
    if !tx.record_shown_item(session.id, &format!("file:{path}"))? {
        return Ok(HookOutput::default());
    }
    Ok(HookOutput::adding(HookEvent::PreToolUse, line))
}

/// Returns the file that a tool is about to edit.
pub(super) fn edited_file(params: &Hook) -> Option<String> {
    let tool = params.tool_name.as_deref()?;
    let folder = params.root.as_deref().or(params.cwd.as_deref());
    let input = params.tool_input.as_ref().filter(|_| EDIT_TOOLS.contains(&tool))?;
    files_of(input, folder).into_iter().next()
}

/// Describes the work of other sessions on a file in one line.
fn file_line(history: &FileHistory, own: &Session) -> Option<String> {
    let has_own = history.sessions.iter().any(|session| session.session_id == own.id);
    let others = history.session_count - u64::from(has_own);
    let last = history.sessions.iter().find(|session| session.session_id != own.id);
    let note = history.notes.iter().find(|note| note.kind == NoteKind::Decision);
    let mut parts = Vec::new();
    if let Some(last) = last {
        let agent = last.agent.as_deref().unwrap_or("an agent");
        let turn =
            last.turns.first().map(|turn| format!(": {} [{}]", turn.title, turn.id)).unwrap_or_default();
        let sessions = counted(others, "other session");
        let changed = if history.changed_since == Some(true) { "; the file changed since" } else { "" };
        parts.push(format!(
            "{sessions} worked on it, last {agent} on {}{turn}{changed}",
            last.last_used_at.day()
        ));
    }
    parts.extend(note.map(|note| format!("decision: {} [{}]", note.text, note.id)));
    if parts.is_empty() { None } else { Some(format!("Baton: {}: {}.", history.path, parts.join("; "))) }
}
