//! `hook.report`: processes a hook report of a coding agent.
//!
//! Owns the response in the agent's hook protocol and the mapping from events to sessions. The sibling modules
//! implement the events.

use std::sync::Arc;
use std::time::Duration;

use baton_core::observation::{Turn, TurnStatus, closing_message};
use baton_core::{
    Agent, ErrorCode, Handoff, HandoffId, Label, Repo, Session, SessionStatus, SessionTuple, Timestamp,
    shorten_with_notice,
};
use baton_observation::{HookEvent, make_private};
use baton_store::Acknowledgement;

use super::hook_params::{Hook, HookOutput};
use super::intake::MAX_REPORT_BYTES;
use super::repair::repair;
use super::{capture, compact, end, recall};
use crate::bundle::BundleScope;
use crate::call::{Attachment, PackedOutput};
use crate::prelude::*;
use crate::recall::RankedDocument;
use crate::session::{StartSession, find_or_create, lock_active_sessions, start_bundle, tuple_of};

/// Maximum length of a stored prompt in characters.
const MAX_PROMPT_CHARS: usize = 10_000;
/// Time within which the same prompt is a repeated report of one event.
const REPEAT_WINDOW: Duration = Duration::from_secs(5);

/// Work that is done before the transaction.
#[derive(Debug)]
pub struct HookWork {
    /// Captured tool use.
    output: Option<Arc<PackedOutput>>,
    /// Items that are related to the prompt.
    related: Vec<RankedDocument>,
}

impl Operation<OnStore> for Hook {
    const NAME: &'static str = "hook.report";
    const SUMMARY: &'static str =
        "Report a hook event of a coding agent: session start or end, prompt, tool use, compaction.";
    const EFFECT: Effect = Effect::Create;
    // Reports come from third-party agents: their fields are repaired, and secrets in them are removed.
    const REQUEST: RequestFormat = RequestFormat {
        max_bytes: MAX_REPORT_BYTES,
        privacy: Privacy::Redact(make_private),
        repair: Some(repair),
        ..RequestFormat::STRICT
    };
    const REQUEST_LOGGING: RequestLogging = RequestLogging::OnFailure;
    // A new chat receives what is recorded about its repository.
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::IfPossible(|params| {
        params["event"].as_str().and_then(HookEvent::from_name) == Some(HookEvent::SessionStart)
    });
    type Input = (Self, HookWork);
    type Output = HookOutput;
    erased!();

    fn prepare(context: &Context<'_>, mut params: Self) -> Result<Self::Input, Fault> {
        match params.event {
            HookEvent::PostToolUse if params.tool_name.as_ref().is_none_or(String::is_empty) => {
                return Err(Fault::invalid(
                    "tool_name",
                    "is required: send the name of the tool that was used",
                ));
            }
            HookEvent::UserPromptSubmit if params.prompt.is_none() => {
                return Err(Fault::invalid("prompt", "is required: send the prompt of the user"));
            }
            HookEvent::SubagentStop => params.report_as_tool_use(),
            _ => {}
        }
        let is_captured = match params.event {
            HookEvent::PostToolUse => !params.is_own_call(),
            HookEvent::SubagentStop => params.tool_response.is_some(),
            _ => false,
        };
        let output = match context.attachment {
            _ if !is_captured => None,
            Some(Attachment::Output(output)) if params.event == HookEvent::PostToolUse => {
                Some(output.clone())
            }
            _ => Some(Arc::new(capture::pack(context, &params)?)),
        };
        let mut related = Vec::new();
        if params.event == HookEvent::UserPromptSubmit && context.settings.observations.recall.on_prompt {
            let start = start_of(&params)?;
            let venture = start.venture.as_ref().unwrap_or(&context.settings.default_venture);
            // A prompt is stored even if nothing can be recalled.
            related = recall::related_items(context, &params, venture, &start.repo).unwrap_or_else(|fault| {
                tracing::warn!(%fault, "cannot recall items for a prompt");
                Vec::new()
            });
        }
        Ok((params, HookWork { output, related }))
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, HookWork { output, related }) = input;
        if params.event == HookEvent::PreToolUse
            && (!context.settings.observations.recall.before_edit || recall::edited_file(params).is_none())
        {
            return Ok(HookOutput::default());
        }
        let start = start_of(params)?;
        if params.event == HookEvent::SessionStart {
            return start_session(context, tx, &start, params);
        }
        if let Some(ended) = ended_session_of(context, tx, &start, params.event)? {
            // A late event does not start a new session, but its checkpoint or closing message is still stored.
            match params.event {
                HookEvent::PreCompact => compact::checkpoint(context, tx, &ended, params)?,
                HookEvent::Stop => tx.end_turn(ended.id, &params.turn_end(context, &ended))?,
                _ => {}
            }
            return Ok(HookOutput::default());
        }
        let session = session_of(context, tx, &start)?;
        match params.event {
            HookEvent::SessionStart => {}
            HookEvent::UserPromptSubmit => {
                store_prompt(context, tx, &session, params)?;
                return recall::at_prompt(context, tx, &session, related);
            }
            HookEvent::PreToolUse => return recall::before_edit(context, tx, &session, params),
            HookEvent::PostToolUse | HookEvent::SubagentStop => {
                if let Some(output) = output {
                    capture::enqueue(context, tx, &session, params, output)?;
                }
            }
            HookEvent::PreCompact => compact::checkpoint(context, tx, &session, params)?,
            HookEvent::PostCompact => {
                if let Some(summary) = params.compact_summary.as_deref().and_then(closing_message) {
                    tx.add_compact_summary(session.id, &summary, params.at(context, &session))?;
                }
            }
            HookEvent::Stop => {
                tx.end_turn(session.id, &params.turn_end(context, &session))?;
                tx.request_summary(session.id, context.now, context.now)?;
            }
            HookEvent::SessionEnd => {
                if let Some(branches) = &params.unmerged_branches {
                    tx.put_unmerged_branches(&session.tuple.venture, &session.tuple.repo, branches)?;
                }
                tx.abandon_turn(session.id, params.at(context, &session))?;
                end::end(context, tx, session, params)?;
            }
        }
        Ok(HookOutput::default())
    }
}

/// Returns the ended session of the chat, if the event does not show that the chat continues: agents report their last
/// stop after the end, and the end twice. Returns `None` if the chat has an active session.
fn ended_session_of(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    start: &StartSession,
    event: HookEvent,
) -> Result<Option<Session>, Fault> {
    let is_last = matches!(
        event,
        HookEvent::Stop
            | HookEvent::SessionEnd
            | HookEvent::PreCompact
            | HookEvent::PostCompact
            | HookEvent::SubagentStop
    );
    let tuple = tuple_of(context, start)?;
    if !is_last || tuple.client_session_id.is_none() {
        return Ok(None);
    }
    let (tuple, active) = lock_active_sessions(tx, tuple)?;
    if !active.is_empty() {
        return Ok(None);
    }
    let latest = tx.latest_session(&tuple)?;
    let ended = latest.filter(|session| session.status == SessionStatus::Ended);
    ended.iter().for_each(|session| context.log_session(session));
    Ok(ended)
}

/// Returns the session of an event. Creates one if there is none, because the start of the chat may not have been
/// reported.
fn session_of(context: &Context<'_>, tx: &mut dyn Tx, start: &StartSession) -> Result<Session, Fault> {
    let tuple = tuple_of(context, start)?;
    find_or_create(context, tx, tuple, start).map(|(_, session)| session)
}

fn start_session(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    start: &StartSession,
    params: &Hook,
) -> Result<HookOutput, Fault> {
    let session = session_of(context, tx, start)?;
    let continues_handoff = match params.handoff_id {
        Some(id) => receive_handoff(context, tx, &session, id)?,
        None => false,
    };
    let scope = match params.source.as_deref() {
        // A resumed or forked chat still has the context that it received before.
        Some("resume" | "fork") => return Ok(HookOutput::default()),
        Some("compact") => BundleScope::Chat,
        _ => BundleScope::Repository,
    };
    let at = params.at(context, &session);
    // Two configurations of the host may report one start, and a relayed chat has the context in its first prompt.
    let is_first = tx.claim_context_start(session.id, at, at.minus(REPEAT_WINDOW))?;
    if continues_handoff || !is_first {
        return Ok(HookOutput::default());
    }
    let bundle = start_bundle(context, tx, &session, scope)?;
    Ok(HookOutput::adding(HookEvent::SessionStart, bundle.text))
}

/// Acknowledges a handoff of the same repository for a session that continues its work. Returns false if it was
/// acknowledged before or does not belong to the repository.
fn receive_handoff(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    id: HandoffId,
) -> Result<bool, Fault> {
    let SessionTuple { agent, venture, repo, .. } = &session.tuple;
    let is_for_session = |handoff: &Handoff| {
        handoff.venture == *venture && handoff.repo == *repo && handoff.withdrawn_at.is_none()
    };
    if !tx.handoff(id)?.is_some_and(|handoff| is_for_session(&handoff)) {
        return Ok(false);
    }
    let by = Acknowledgement { agent: agent.clone(), session_id: Some(session.id), at: context.now };
    tx.acknowledge_handoff(id, &by).map_err(Fault::from)
}

fn store_prompt(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    params: &Hook,
) -> Result<(), Fault> {
    let Some(prompt) = prompt_text(params.prompt.as_deref().unwrap_or_default()) else { return Ok(()) };
    let at = params.at(context, session);
    if tx.turns(session.id, None, 1)?.first().is_some_and(|latest| is_repeated(latest, &prompt, at)) {
        return Ok(());
    }
    tx.start_turn(session.id, &prompt, at).map_err(Fault::from)
}

/// Returns the stored part of a prompt; `None` if it is empty.
pub(super) fn prompt_text(prompt: &str) -> Option<String> {
    let clean: String = prompt.chars().filter(|character| *character != '\0').collect();
    let kept = shorten_with_notice(&clean, MAX_PROMPT_CHARS, "not stored").into_owned();
    Some(kept).filter(|kept| !kept.trim().is_empty())
}

/// Returns true if the prompt of an open turn is reported again, because two configurations of the host run the hook.
fn is_repeated(latest: &Turn, prompt: &str, at: Timestamp) -> bool {
    latest.status == TurnStatus::Open
        && latest.prompt == prompt
        && at <= latest.started_at.plus(REPEAT_WINDOW)
}

/// Derives the session parameters from a report.
fn start_of(params: &Hook) -> Result<StartSession, Fault> {
    let client = params.client.clone().or_else(|| guess_client(params).parse().ok());
    let agent = match &params.agent {
        Some(agent) => agent.clone(),
        None => agent_of(client.as_ref())?,
    };
    Ok(StartSession {
        schema_version: None,
        agent,
        client,
        client_version: None,
        client_session_id: params.session_id.clone(),
        host: params.host.clone(),
        venture: params.venture.clone(),
        repo: repo_of(params.repo.as_ref(), params.cwd.as_deref())?,
        checkout_repo: None,
        track: params.track,
        issue_number: None,
        branch: params.branch.clone(),
        commit_sha: params.commit_sha.clone(),
        meta: None,
        include_context: None,
    })
}

/// Returns the given repository, or the repository name that is derived from a folder.
pub(super) fn repo_of(repo: Option<&Repo>, folder: Option<&str>) -> Result<Repo, Fault> {
    repo.cloned().or_else(|| folder.and_then(Repo::of_folder)).ok_or_else(|| {
        Fault::new(ErrorCode::InvalidRequest, "neither `repo` nor a usable `cwd` is given")
            .hint("send repo as owner/name")
    })
}

/// Returns the agent that is named after a client; `agent` if the client has no valid agent name, because it can have any
/// text.
pub(super) fn agent_of(client: Option<&Label>) -> Result<Agent, Fault> {
    let named: Option<Agent> = client.and_then(|client| client.as_str().parse().ok());
    named.map_or_else(|| "agent".parse(), Ok).map_err(|problem| Fault::invalid("agent", problem))
}

/// Guesses the client from the folder of its transcript.
fn guess_client(params: &Hook) -> &'static str {
    match params.transcript_path.as_deref().unwrap_or_default() {
        path if path.contains("/.codex/") => "codex",
        path if path.contains("/.gemini/") => "gemini",
        path if path.contains("/.cursor/") => "cursor",
        _ => "claude-code",
    }
}
