//! Sessions: one run of one agent, and the rules for its lifecycle.
//!
//! Owns the decisions of start, heartbeat, end and sweep. Storage and the clock are elsewhere.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actor::ActorKeyId;
use crate::error::{ErrorCode, Fault};
use crate::id::SessionId;
use crate::name::{Agent, ClientSessionId, CorrelationId, Repo, Track, Venture};
use crate::time::Timestamp;
use crate::wire::wire_names;

/// Status of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[schemars(inline)]
pub enum SessionStatus {
    /// The session is running.
    Active,
    /// The session was ended.
    Ended,
    /// The session was abandoned because its heartbeats stopped.
    Abandoned,
}

wire_names!(SessionStatus);

/// Reason for the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[schemars(inline)]
pub enum EndReason {
    /// The agent ended the session.
    Manual,
    /// Heartbeats stopped.
    Stale,
    /// A newer session of the same agent replaced it.
    Superseded,
    /// The session failed.
    Error,
}

wire_names!(EndReason);

/// Fields that identify a session: starting twice with the same values resumes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionTuple {
    pub agent: Agent,
    pub venture: Venture,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Repo,
    /// Track. Sessions without a track are separate from all numbered tracks.
    pub track: Option<Track>,
    /// Chat id assigned by the client. Sessions without one are separate from all chats.
    pub client_session_id: Option<ClientSessionId>,
}

/// Optional session fields that can be set at start and updated later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFacts {
    /// Program that runs the agent.
    pub client: Option<String>,
    /// Version of the program that runs the agent, for example `2.1.0`.
    pub client_version: Option<String>,
    pub host: Option<String>,
    pub issue_number: Option<i64>,
    pub branch: Option<String>,
    pub commit_sha: Option<String>,
}

impl SessionFacts {
    /// Copies every field that is set in `newer`.
    fn update_from(&mut self, newer: Self) {
        let Self { client, client_version, host, issue_number, branch, commit_sha } = newer;
        self.client = client.or(self.client.take());
        self.client_version = client_version.or(self.client_version.take());
        self.host = host.or(self.host.take());
        self.issue_number = issue_number.or(self.issue_number);
        self.branch = branch.or(self.branch.take());
        self.commit_sha = commit_sha.or(self.commit_sha.take());
    }
}

/// One run of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub id: SessionId,
    /// Fields that identify the session.
    pub tuple: SessionTuple,
    /// Optional fields reported by the agent.
    pub facts: SessionFacts,
    pub status: SessionStatus,
    /// Time when the session was created and started.
    pub created_at: Timestamp,
    /// Time of the last heartbeat, the only input for staleness.
    pub last_heartbeat_at: Timestamp,
    /// Time when the session ended.
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<EndReason>,
    /// Request schema version of the creating request.
    pub schema_version: String,
    /// Id of the credential that created the session.
    pub actor_key_id: ActorKeyId,
    /// Correlation id of the creating request.
    pub creation_correlation_id: CorrelationId,
    /// Additional data stored by the agent.
    pub meta: Option<Map<String, Value>>,
}

impl Session {
    /// Records a heartbeat. The stored time never moves backwards.
    ///
    /// Fails with `session_ended` if the session is not active.
    pub fn beat(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.require_active()?;
        self.last_heartbeat_at = self.last_heartbeat_at.max(now);
        Ok(())
    }

    /// Resumes an active session: records a heartbeat and copies every field that is set in `facts`.
    pub fn resume(&mut self, now: Timestamp, facts: SessionFacts) -> Result<(), Fault> {
        self.beat(now)?;
        self.facts.update_from(facts);
        Ok(())
    }

    /// Ends an active session.
    pub fn end(&mut self, now: Timestamp, reason: EndReason) -> Result<(), Fault> {
        self.require_active()?;
        self.status = SessionStatus::Ended;
        self.ended_at = Some(now.max(self.last_heartbeat_at));
        self.end_reason = Some(reason);
        Ok(())
    }

    /// Marks a stale session as abandoned. Its end time is its last heartbeat.
    pub fn abandon(&mut self) {
        self.status = SessionStatus::Abandoned;
        self.ended_at = Some(self.last_heartbeat_at);
        self.end_reason = Some(EndReason::Stale);
    }

    /// Returns true if the last heartbeat is older than the policy allows.
    pub fn is_stale(&self, now: Timestamp, policy: &Liveness) -> bool {
        self.last_heartbeat_at < policy.stale_before(now)
    }

    /// Rejects a session that is not active.
    pub fn require_active(&self) -> Result<(), Fault> {
        if self.status == SessionStatus::Active {
            return Ok(());
        }
        let (status, id) = (self.status.as_str(), self.id);
        Err(Fault::new(ErrorCode::SessionEnded, format!("session {id} is {status}"))
            .hint("start a new session with session_start (POST /sod, baton session start)")
            .details(json!({
                "session_id": id, "status": status, "ended_at": self.ended_at, "end_reason": self.end_reason,
            })))
    }
}

/// Time limits for sessions without heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liveness {
    /// Time without a heartbeat after which a session is stale.
    pub stale_after: Duration,
    /// Further time after which cleanup abandons a stale session.
    pub abandon_after: Duration,
}

impl Liveness {
    /// Returns the time before which a last heartbeat is stale.
    pub fn stale_before(&self, now: Timestamp) -> Timestamp {
        now.minus(self.stale_after)
    }

    /// Returns the time before which a last heartbeat makes cleanup abandon the session.
    pub fn abandon_before(&self, now: Timestamp) -> Timestamp {
        now.minus(self.stale_after.saturating_add(self.abandon_after))
    }
}

impl Default for Liveness {
    fn default() -> Self {
        Self { stale_after: Duration::from_secs(45 * 60), abandon_after: Duration::from_secs(24 * 60 * 60) }
    }
}

/// Heartbeat interval that clients are asked to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatPolicy {
    /// Mean interval.
    pub interval_seconds: u32,
    /// Maximum deviation from the mean interval, inclusive.
    pub jitter_seconds: u32,
}

impl HeartbeatPolicy {
    /// Returns the seconds until the next heartbeat, chosen uniformly from the range with the given random bits.
    pub fn interval(&self, random: u64) -> u32 {
        let jitter = self.jitter_seconds.min(self.interval_seconds.saturating_sub(1));
        let width = u64::from(jitter) * 2 + 1;
        let offset = u32::try_from(random % width).unwrap_or(0);
        self.interval_seconds - jitter + offset
    }
}

impl Default for HeartbeatPolicy {
    fn default() -> Self {
        Self { interval_seconds: 600, jitter_seconds: 120 }
    }
}

/// How starting a session affects the active sessions with the same tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartDecision {
    /// Session to resume. `None` if a new session must be created.
    pub resume: Option<SessionId>,
    /// Sessions replaced by a more recent one.
    pub supersede: Vec<SessionId>,
    /// Stale sessions.
    pub abandon: Vec<SessionId>,
}

impl StartDecision {
    /// Decides for all active sessions of a tuple: stale ones are abandoned, the most recent other one is resumed, the
    /// rest are superseded.
    pub fn over(active: &[Session], now: Timestamp, liveness: &Liveness) -> Self {
        let newest = active.iter().max_by_key(|session| (session.last_heartbeat_at, session.id));
        let mut decision = Self { resume: None, supersede: Vec::new(), abandon: Vec::new() };
        for session in active {
            if session.is_stale(now, liveness) {
                decision.abandon.push(session.id);
            } else if newest.is_some_and(|newest| newest.id == session.id) {
                decision.resume = Some(session.id);
            } else {
                decision.supersede.push(session.id);
            }
        }
        decision
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
