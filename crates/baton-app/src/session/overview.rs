//! `session.overview`: active sessions with their last turn, files that several sessions change, and problems.

use std::collections::BTreeMap;

use baton_core::observation::Turn;
use baton_core::{
    HandoffFields, Session, SessionId, Timestamp, Venture, VentureScope, counted, one_line, shorten,
};
use baton_store::{HandoffFilter, Page, SessionFilter, TaskFilter};

use crate::page::cut;
use crate::prelude::*;
use crate::recall::files_changed_in_session;

/// Maximum number of sessions.
const MAX_SESSIONS: u32 = 60;
/// Maximum number of changed files of a session.
const MAX_FILES: usize = 12;
/// Number of latest handoffs of a venture that are searched for blockers, and of tasks for drift.
const MAX_RECORDS: u32 = 20;
/// Maximum number of ventures that are searched.
const MAX_VENTURES: usize = 20;
/// Maximum length of a prompt or closing message in characters.
const MAX_TEXT_CHARS: usize = 600;

/// The venture to show.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionOverview {
    /// Venture. Defaults to all ventures you have access to.
    pub venture: Option<Venture>,
}

/// The current work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionOverviewOutput {
    /// What needs attention, the most urgent first.
    pub attention: Vec<Attention>,
    /// Active sessions, stale ones included, newest first; at most 60.
    pub sessions: Vec<LiveSession>,
    /// True if there are more than 60 active sessions.
    pub has_more: bool,
    /// Files that more than one active session changed, without stale sessions.
    pub shared_files: Vec<SharedFile>,
}

/// An active session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveSession {
    /// Session id (`sess_…`).
    pub id: SessionId,
    /// Agent name, for example `claude-1`.
    pub agent: String,
    /// Program that runs the agent, for example `claude-code`.
    pub client: Option<String>,
    /// Host name of the machine, for example `build-3`.
    pub host: Option<String>,
    /// Venture, for example `acme`.
    pub venture: String,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: String,
    /// Track number, for example 2.
    pub track: Option<i64>,
    /// Git branch, for example `feature/login`.
    pub branch: Option<String>,
    /// Time when the session started.
    pub started_at: Timestamp,
    /// Time of the last heartbeat.
    pub last_heartbeat_at: Timestamp,
    /// True if the last heartbeat is too old.
    pub is_stale: bool,
    /// Latest turn, with texts of at most 600 characters.
    pub last_turn: Option<Turn>,
    /// Files changed by the latest tool uses.
    pub files_changed: Vec<String>,
}

/// A file that more than one active session changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedFile {
    /// Repository as owner/name, for example acme/webshop.
    pub repo: String,
    /// Path of the file.
    pub file: String,
    /// Sessions that changed the file.
    pub session_ids: Vec<SessionId>,
}

/// Kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum AttentionKind {
    /// A handoff has blockers and was not acknowledged.
    Blocked,
    /// A task has open drifts.
    Drifted,
    /// Captured tool uses could not be processed, or the model is unavailable.
    CaptureFailing,
    /// The daily token budget is used up.
    OverBudget,
    /// The last turn of an active session failed.
    TurnFailed,
}

/// Something that needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attention {
    /// Kind of the problem.
    pub kind: AttentionKind,
    /// The problem in one sentence.
    pub text: String,
    /// Id of the handoff, task or session, or null.
    pub id: Option<String>,
    /// Repository as owner/name, or null.
    pub repo: Option<String>,
    /// Time of the problem, or null.
    pub at: Option<Timestamp>,
}

impl Operation<OnStore> for SessionOverview {
    const NAME: &'static str = "session.overview";
    const SUMMARY: &'static str = "Show all active sessions with branch, last turn and changed files, files that several \
        agents change, and what needs attention: blocked, drifted, failing, over budget.";
    const EFFECT: Effect = Effect::Read;
    // A dashboard calls it every second.
    const REQUEST_LOGGING: RequestLogging = RequestLogging::Counted;
    type Output = SessionOverviewOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let ventures = match context.readable_ventures(params.venture.as_ref())? {
            Some(ventures) => ventures,
            None => {
                let mut ventures = tx.session_ventures()?;
                // The default venture may have tasks without a session.
                let default = &context.settings.default_venture;
                if !ventures.contains(default) {
                    ventures.push(default.clone());
                }
                ventures
            }
        };
        let filter = SessionFilter { ventures: Some(ventures.clone()), ..SessionFilter::default() };
        let mut active = tx.active_sessions(&filter, Page::first(MAX_SESSIONS + 1))?;
        let has_more = cut(&mut active, MAX_SESSIONS, |_| ()).is_some();
        let sessions = active
            .into_iter()
            .map(|session| live_session(context, tx, session))
            .collect::<Result<Vec<_>, Fault>>()?;
        let mut attention = Vec::new();
        for venture in ventures.iter().take(MAX_VENTURES) {
            add_blocked(tx, venture, &mut attention)?;
            add_drifted(tx, venture, &mut attention)?;
        }
        if context.actor.ventures == VentureScope::All {
            add_capture(context, tx, &mut attention)?;
        }
        attention.extend(sessions.iter().filter_map(failed_turn));
        attention.sort_by_key(|problem| (problem.kind, std::cmp::Reverse(problem.at)));
        Ok(SessionOverviewOutput { attention, shared_files: shared_files(&sessions), sessions, has_more })
    }
}

fn live_session(context: &Context<'_>, tx: &mut dyn Tx, session: Session) -> Result<LiveSession, Fault> {
    let last_turn = tx.turns(session.id, None, 1)?.pop().map(|turn| {
        let start = |text: &str| shorten(text, MAX_TEXT_CHARS);
        Turn {
            prompt: start(&turn.prompt),
            closing: turn.closing.as_deref().map(start),
            compact_summary: None,
            failure: turn.failure.as_deref().map(start),
            ..turn
        }
    });
    let is_stale = session.is_stale(context.now, &context.settings.liveness);
    let files_changed = files_changed_in_session(tx, session.id, MAX_FILES)?;
    let Session { id, tuple, facts, created_at, last_heartbeat_at, .. } = session;
    Ok(LiveSession {
        id,
        agent: tuple.agent.into(),
        client: facts.client,
        host: facts.host,
        venture: tuple.venture.into(),
        repo: tuple.repo.into(),
        track: tuple.track.map(Into::into),
        branch: facts.branch,
        started_at: created_at,
        last_heartbeat_at,
        is_stale,
        last_turn,
        files_changed,
    })
}

/// Returns the files that more than one live session changed.
fn shared_files(sessions: &[LiveSession]) -> Vec<SharedFile> {
    let mut users: BTreeMap<(&str, &str), Vec<SessionId>> = BTreeMap::new();
    for session in sessions.iter().filter(|session| !session.is_stale) {
        for file in &session.files_changed {
            users.entry((&session.repo, file)).or_default().push(session.id);
        }
    }
    users
        .into_iter()
        .filter(|(_, session_ids)| session_ids.len() > 1)
        .map(|((repo, file), session_ids)| SharedFile {
            repo: repo.to_owned(),
            file: file.to_owned(),
            session_ids,
        })
        .collect()
}

/// Adds handoffs with blockers: the latest of each repository and track, unless it was acknowledged.
fn add_blocked(tx: &mut dyn Tx, venture: &Venture, attention: &mut Vec<Attention>) -> Result<(), Fault> {
    let mut seen = Vec::new();
    for handoff in tx.handoffs(&HandoffFilter::of(venture.clone()), Page::first(MAX_RECORDS))? {
        let place = (handoff.repo.clone(), handoff.track);
        if seen.contains(&place) {
            continue;
        }
        seen.push(place);
        let log = |error: &serde_json::Error| tracing::error!(handoff = %handoff.id, %error, "a damaged handoff is left out");
        let Ok(HandoffFields { blockers, .. }) = handoff.fields().inspect_err(log) else { continue };
        let is_blocked = !blockers.is_empty() || handoff.status_label.as_deref() == Some("blocked");
        if !is_blocked || handoff.acknowledged_at.is_some() {
            continue;
        }
        let reason = blockers.first().unwrap_or(&handoff.summary);
        attention.push(Attention {
            kind: AttentionKind::Blocked,
            text: format!("{} is blocked: {}", handoff.from_agent, one_line(reason, 200)),
            id: Some(handoff.id.to_string()),
            repo: Some(handoff.repo.into()),
            at: Some(handoff.created_at),
        });
    }
    Ok(())
}

fn add_drifted(tx: &mut dyn Tx, venture: &Venture, attention: &mut Vec<Attention>) -> Result<(), Fault> {
    let filter = TaskFilter {
        venture: venture.clone(),
        repo: None,
        status: None,
        only_open: true,
        offset: 0,
        limit: MAX_RECORDS,
    };
    for task in tx.tasks(&filter)?.into_iter().filter(|task| task.open_drifts > 0) {
        let drifts = counted(task.open_drifts, "open drift");
        attention.push(Attention {
            kind: AttentionKind::Drifted,
            text: format!("{} has {drifts}: {}", task.task_id, one_line(&task.title, 120)),
            id: Some(task.item_id()),
            repo: task.repo.map(Into::into),
            at: Some(task.updated_at),
        });
    }
    Ok(())
}

fn add_capture(context: &Context<'_>, tx: &mut dyn Tx, attention: &mut Vec<Attention>) -> Result<(), Fault> {
    let settings = &context.settings.observations;
    let mut add = |kind, text, at| attention.push(Attention { kind, text, id: None, repo: None, at });
    if let Some(trouble) = settings.troubles.current() {
        let text = format!("The model is unavailable: {}", one_line(&trouble.error, 200));
        add(AttentionKind::CaptureFailing, text, Some(trouble.since));
    }
    let failed = tx.queue_stats()?.error;
    if failed > 0 {
        let text = format!("{} could not be processed", counted(failed, "captured tool use"));
        add(AttentionKind::CaptureFailing, text, None);
    }
    let spent = tx.spent_on(&context.now.day())?.tokens;
    if settings.compressor_within_budget(|| Ok(spent))?.model() != settings.compressor.model() {
        let text = format!("The token budget of today is used up ({spent} tokens)");
        add(AttentionKind::OverBudget, text, None);
    }
    Ok(())
}

/// Returns the problem of a session whose last turn failed.
fn failed_turn(session: &LiveSession) -> Option<Attention> {
    let turn = session.last_turn.as_ref()?;
    let failure = turn.failure.as_ref()?;
    Some(Attention {
        kind: AttentionKind::TurnFailed,
        text: format!("The last turn of {} failed: {}", session.agent, one_line(failure, 200)),
        id: Some(session.id.to_string()),
        repo: Some(session.repo.clone()),
        at: turn.ended_at,
    })
}
