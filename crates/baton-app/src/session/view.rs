//! Wire representation of sessions.

use baton_core::{EndReason, Session, SessionId, SessionStatus, Timestamp};
use baton_observation::client_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A session. Absent values are `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// Session id (`sess_…`).
    pub id: SessionId,
    /// Agent name, for example `claude-1`.
    pub agent: String,
    /// Program that runs the agent, for example `claude-code`.
    pub client: Option<String>,
    /// Version of the program that runs the agent, for example `2.1.0`.
    pub client_version: Option<String>,
    /// Chat id assigned by the client, for example `chat-7`.
    pub client_session_id: Option<String>,
    /// Host name of the machine, for example `build-3`.
    pub host: Option<String>,
    /// Venture, for example `acme`.
    pub venture: String,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: String,
    /// Track number, or null for a session without a track.
    pub track: Option<i64>,
    /// Issue number, for example 185.
    pub issue_number: Option<i64>,
    /// Git branch, for example `feature/login`.
    pub branch: Option<String>,
    /// Git commit, for example `9f3c2d1`.
    pub commit_sha: Option<String>,
    /// `active`, `ended` or `abandoned`.
    pub status: SessionStatus,
    /// Time when the session was created.
    pub created_at: Timestamp,
    /// Time when the session started; equal to `created_at`.
    pub started_at: Timestamp,
    /// Time of the last heartbeat.
    pub last_heartbeat_at: Timestamp,
    /// Time when the session ended.
    pub ended_at: Option<Timestamp>,
    /// Reason for the end of the session, for example `manual` or `stale`.
    pub end_reason: Option<EndReason>,
    /// Request schema version of the creating request.
    pub schema_version: String,
    /// Id of the credential that created the session.
    pub actor_key_id: String,
    /// Correlation id of the creating request.
    pub creation_correlation_id: String,
    /// Additional data stored by the agent.
    pub meta: Option<Map<String, Value>>,
    /// `meta` as JSON text.
    pub meta_json: Option<String>,
}

impl From<Session> for SessionView {
    fn from(session: Session) -> Self {
        let Session { id, tuple, facts, .. } = session;
        let meta_json = session.meta.as_ref().map(|meta| json!(meta).to_string());
        Self {
            id,
            agent: tuple.agent.into(),
            client: facts.client,
            client_version: facts.client_version,
            client_session_id: tuple.client_session_id.map(Into::into),
            host: facts.host,
            venture: tuple.venture.into(),
            repo: tuple.repo.into(),
            track: tuple.track.map(Into::into),
            issue_number: facts.issue_number,
            branch: facts.branch,
            commit_sha: facts.commit_sha,
            status: session.status,
            created_at: session.created_at,
            started_at: session.created_at,
            last_heartbeat_at: session.last_heartbeat_at,
            ended_at: session.ended_at,
            end_reason: session.end_reason,
            schema_version: session.schema_version,
            actor_key_id: session.actor_key_id.into(),
            creation_correlation_id: session.creation_correlation_id.into(),
            meta: session.meta,
            meta_json,
        }
    }
}

/// An active session of another agent or chat in the same repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveSession {
    /// Session id (`sess_…`).
    pub id: SessionId,
    /// Agent name, for example `claude-1`.
    pub agent: String,
    /// Track number, for example 2.
    pub track: Option<i64>,
    /// Issue number, for example 185.
    pub issue_number: Option<i64>,
    /// Git branch, for example `feature/login`.
    pub branch: Option<String>,
    /// Time of the last heartbeat.
    pub last_heartbeat_at: Timestamp,
}

impl From<Session> for ActiveSession {
    fn from(session: Session) -> Self {
        Self {
            id: session.id,
            agent: session.tuple.agent.into(),
            track: session.tuple.track.map(Into::into),
            issue_number: session.facts.issue_number,
            branch: session.facts.branch,
            last_heartbeat_at: session.last_heartbeat_at,
        }
    }
}

/// Returns the session that a client works in: the newest one of the same program, or the newest one if the program is not
/// known. `sessions` are the live sessions of a repository, newest first.
pub fn session_of_client<'a>(sessions: &'a [SessionView], client: Option<&str>) -> Option<&'a SessionView> {
    let wanted = client.map(client_name);
    sessions.iter().find(|session| {
        let program = session.client.as_deref().map(client_name);
        wanted.is_none() || program == wanted
    })
}
