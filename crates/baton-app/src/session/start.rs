//! `session.start`: resumes or creates the caller's session and returns the latest handoff and other active sessions.

use std::time::Duration;

use baton_core::{
    Agent, ClientSessionId, CorrelationId, EndReason, Handoff, HandoffAuthor, IssueNumber, Label, Repo,
    Session, SessionFacts, SessionId, SessionStatus, SessionTuple, StartDecision, Timestamp, Track, Venture,
    require_valid_meta,
};
use serde_json::{Map, Value, json};

use crate::bundle::{Bundle, BundleLimits, BundleRequest, BundleScope, build};
use crate::handoff::HandoffSummary;
use crate::prelude::*;
use crate::repository::{latest_handoffs, other_sessions};
use crate::session::{ActiveSession, SessionView};

/// Agent, repository and checkout state of the session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StartSessionParams")]
pub struct StartSession {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// Your agent name, for example `claude-1`. Use the same name in later sessions.
    pub agent: Agent,
    /// Program that runs the agent, for example `claude-code`.
    pub client: Option<Label>,
    /// Version of the program that runs the agent, for example `2.1.0`.
    pub client_version: Option<Label>,
    /// Chat id assigned by the client. Two chats in one repository are two sessions.
    pub client_session_id: Option<ClientSessionId>,
    /// Host name of the machine, for example `build-3`.
    pub host: Option<Label>,
    /// Venture, for example `acme`. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Repo,
    /// Repository of the checkout that you work in. If `repo` differs, `warning` says how to correct it.
    pub checkout_repo: Option<Repo>,
    /// Number of a parallel line of work in the same repository. Sessions without a track are separate from all
    /// numbered tracks.
    pub track: Option<Track>,
    /// Number of the issue you work on, for example 185.
    pub issue_number: Option<IssueNumber>,
    /// Current branch, for example `feature/login`.
    pub branch: Option<Label>,
    /// Current commit, for example `3f2a9c1`.
    pub commit_sha: Option<Label>,
    /// Additional data to store with the session, as a JSON object, for example `{"ticket": "SHOP-12"}`.
    pub meta: Option<Map<String, Value>>,
    /// Set to true to receive `context`: what a new chat should know about the repository, in at most 2,000 tokens.
    pub include_context: Option<bool>,
}

/// Whether the session is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartStatus {
    /// A new session was created.
    Created,
    /// The existing session of this agent, repository, track and chat was resumed.
    Resumed,
}

/// The session, the latest handoff and the other active sessions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StartSessionOutput {
    /// Session id. Pass it to the other session tools.
    pub session_id: SessionId,
    /// `created` or `resumed`.
    pub status: StartStatus,
    /// The full session.
    pub session: SessionView,
    /// Latest handoff in the same venture, repository and track, or null.
    pub last_handoff: Option<HandoffSummary>,
    /// Latest handoff written by an agent, if `last_handoff` was written by a person or created automatically;
    /// otherwise null.
    pub agent_handoff: Option<HandoffSummary>,
    /// Other active sessions in the repository.
    pub active_sessions: Vec<ActiveSession>,
    /// Blockers listed in the latest handoff.
    pub open_blockers: Vec<String>,
    /// Time by which to call `session_heartbeat`.
    pub next_heartbeat_at: Timestamp,
    /// Seconds until the next heartbeat.
    pub heartbeat_interval_seconds: u32,
    /// Likely mistake in the request, for example a repository other than the current checkout, or null.
    pub warning: Option<String>,
    /// Correlation id of this request in the server log.
    pub correlation_id: CorrelationId,
    /// What a new chat should know, if `include_context` was true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

impl Operation<OnStore> for StartSession {
    const NAME: &'static str = "session.start";
    const SUMMARY: &'static str = "Start or resume your session. Returns the latest handoff and the other \
        active sessions in the repository. Call it once per chat, unless your context already has a section from Baton.";
    const EFFECT: Effect = Effect::Write;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::IfPossible(|params| params["include_context"] == true);
    type Output = StartSessionOutput;
    params_as_input!(|params| params.meta.as_ref().map_or(Ok(()), require_valid_meta));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let tuple = tuple_of(context, params)?;
        let (status, session) = find_or_create(context, tx, tuple, params)?;
        let SessionTuple { venture, repo, track, .. } = &session.tuple;
        let mut handoffs = latest_handoffs(tx, venture, repo, *track)?.into_iter();
        let last_handoff: Option<HandoffSummary> = handoffs.next().and_then(intact_summary);
        let agent_handoff = handoffs.find(|handoff| handoff.written_by == HandoffAuthor::Agent);
        let open_blockers =
            last_handoff.as_ref().map(|handoff| handoff.fields.blockers.clone()).unwrap_or_default();
        let others = other_sessions(context, tx, venture, repo, Some(&session))?;
        let bundle = match params.include_context {
            Some(true) => Some(start_bundle(context, tx, &session, BundleScope::Repository)?),
            _ => None,
        };
        let interval = context.settings.heartbeat.interval(context.random()?);
        Ok(StartSessionOutput {
            session_id: session.id,
            status,
            session: session.into(),
            last_handoff,
            agent_handoff: agent_handoff.and_then(intact_summary),
            active_sessions: others.into_iter().map(Into::into).collect(),
            open_blockers,
            next_heartbeat_at: context.now.plus(Duration::from_secs(u64::from(interval))),
            heartbeat_interval_seconds: interval,
            warning: repo_warning(params),
            correlation_id: context.correlation_id.clone(),
            context: bundle.map(|bundle| bundle.text),
        })
    }

    fn compact(output: &Self::Output) -> Value {
        json!({ "session_id": output.session_id, "status": output.status })
    }
}

/// Returns the summary of a handoff. Leaves out a damaged handoff and logs it, because a session must start in any case.
fn intact_summary(handoff: Handoff) -> Option<HandoffSummary> {
    let log = |fault: &Fault| tracing::error!(%fault, "a session starts without a damaged handoff");
    HandoffSummary::try_from(handoff).inspect_err(log).ok()
}

/// Returns a warning if the repository differs from the repository of the checkout. There is no warning for a
/// checkout without a remote, because its name is only the name of its folder.
fn repo_warning(params: &StartSession) -> Option<String> {
    let is_questionable = |here: &&Repo| **here != params.repo && !here.as_str().starts_with("local/");
    let here = params.checkout_repo.as_ref().filter(is_questionable)?;
    Some(format!(
        "the session is in {}, but the current checkout is {here}. If that is not intended, correct it: session_update with \
         repo {here} (baton session update SESSION --repo {here})",
        params.repo
    ))
}

/// Returns the identity of a session. Fails if the caller may not access its venture.
pub(crate) fn tuple_of(context: &Context<'_>, params: &StartSession) -> Result<SessionTuple, Fault> {
    Ok(SessionTuple {
        agent: params.agent.clone(),
        venture: context.venture(params.venture.as_ref())?,
        repo: params.repo.clone(),
        track: params.track,
        client_session_id: params.client_session_id.clone(),
    })
}

fn facts_of(params: &StartSession) -> SessionFacts {
    let text = |label: &Option<Label>| label.clone().map(Into::into);
    SessionFacts {
        client: text(&params.client),
        client_version: text(&params.client_version),
        host: text(&params.host),
        issue_number: params.issue_number.map(Into::into),
        branch: text(&params.branch),
        commit_sha: text(&params.commit_sha),
    }
}

pub(crate) fn find_or_create(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    tuple: SessionTuple,
    params: &StartSession,
) -> Result<(StartStatus, Session), Fault> {
    let (tuple, active) = lock_active_sessions(tx, tuple)?;
    let decision = StartDecision::over(&active, context.now, &context.settings.liveness);
    let mut resumed = None;
    for mut session in active {
        let before = session.clone();
        if decision.abandon.contains(&session.id) {
            session.abandon();
        } else if decision.supersede.contains(&session.id) {
            session.end(context.now, EndReason::Superseded)?;
        } else {
            session.resume(context.now, facts_of(params))?;
            if params.meta.is_some() {
                session.meta.clone_from(&params.meta);
            }
            resumed = Some(session.clone());
        }
        // If only the heartbeat changed, this cheaper update touches no index.
        if (Session { last_heartbeat_at: before.last_heartbeat_at, ..session.clone() }) == before {
            tx.beat_session(session.id, session.last_heartbeat_at)?;
        } else {
            tx.update_session(&session)?;
        }
    }
    if let Some(session) = resumed {
        context.log_session(&session);
        return Ok((StartStatus::Resumed, session));
    }
    let session = Session {
        id: context.session_id(tx)?,
        tuple,
        facts: facts_of(params),
        status: SessionStatus::Active,
        created_at: context.now,
        last_heartbeat_at: context.now,
        ended_at: None,
        end_reason: None,
        schema_version: params.schema_version.clone().unwrap_or_else(|| "1.0".into()),
        actor_key_id: context.actor.key_id.clone(),
        creation_correlation_id: context.correlation_id.clone(),
        meta: params.meta.clone(),
    };
    tx.insert_session(&session)?;
    context.log_session(&session);
    Ok((StartStatus::Created, session))
}

/// Finds and locks the active sessions of a tuple. A chat whose repository was corrected keeps the corrected
/// repository, regardless of the repository that its hooks report.
pub(crate) fn lock_active_sessions(
    tx: &mut dyn Tx,
    mut tuple: SessionTuple,
) -> Result<(SessionTuple, Vec<Session>), Fault> {
    let mut active = tx.lock_active_sessions(&tuple)?;
    if active.is_empty()
        && tuple.client_session_id.is_some()
        && let Some(repo) = tx.corrected_repo(&tuple)?
    {
        tuple.repo = repo;
        active = tx.lock_active_sessions(&tuple)?;
    }
    Ok((tuple, active))
}

/// Returns the bundle of a session that starts.
pub(crate) fn start_bundle(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    scope: BundleScope,
) -> Result<Bundle, Fault> {
    let SessionTuple { agent, venture, repo, track, .. } = &session.tuple;
    let request = BundleRequest {
        venture,
        repo,
        track: *track,
        session: Some(session),
        unrecorded: None,
        agent: Some(agent),
        branch: session.facts.branch.as_deref(),
        prompt: None,
        scope,
        limits: BundleLimits::of(None, session.facts.client.as_deref()),
    };
    build(context, tx, &request)
}
