//! Sessions as they look on the wire.

use baton_core::{EndReason, Session, SessionId, SessionStatus, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A session, whole. What is absent is `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Who works.
    pub agent: String,
    /// The program that the agent runs in.
    pub client: Option<String>,
    /// Its version.
    pub client_version: Option<String>,
    /// The id by which that program knows the chat.
    pub client_session_id: Option<String>,
    /// The machine.
    pub host: Option<String>,
    /// The undertaking.
    pub venture: String,
    /// The repository, `owner/name`.
    pub repo: String,
    /// The lane; `null` is a lane of its own.
    pub track: Option<i64>,
    /// The issue that is worked on.
    pub issue_number: Option<i64>,
    /// The branch.
    pub branch: Option<String>,
    /// The commit.
    pub commit_sha: Option<String>,
    /// Whether it goes on.
    pub status: SessionStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it started; the same moment.
    pub started_at: Timestamp,
    /// Its last sign of life.
    pub last_heartbeat_at: Timestamp,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// Why it is over.
    pub end_reason: Option<EndReason>,
    /// The version of the wire shape it was made with.
    pub schema_version: String,
    /// The credential that made it.
    pub actor_key_id: String,
    /// The request that made it.
    pub creation_correlation_id: String,
    /// Whatever else its agent keeps with it.
    pub meta: Option<Map<String, Value>>,
}

impl From<Session> for SessionView {
    fn from(session: Session) -> Self {
        let Session { id, tuple, facts, .. } = session;
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
        }
    }
}

/// Another agent at work in the same repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveSession {
    /// Its id.
    pub id: SessionId,
    /// Who works.
    pub agent: String,
    /// In which lane.
    pub track: Option<i64>,
    /// On which issue.
    pub issue_number: Option<i64>,
    /// On which branch.
    pub branch: Option<String>,
    /// Its last sign of life.
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
