//! Sessions: one run of one agent, alive or not, and the rules of its life.
//!
//! Owns what a start, a heartbeat, an end and a sweep decide. Does not own where sessions are kept or what time it is.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actor::ActorKeyId;
use crate::error::{ErrorCode, Fault};
use crate::id::SessionId;
use crate::name::{Agent, ClientSessionId, CorrelationId, Repo, Track, Venture};
use crate::time::Timestamp;

/// Whether a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SessionStatus {
    /// It goes on.
    Active,
    /// It was ended.
    Ended,
    /// It fell silent and was given up.
    Abandoned,
}

impl SessionStatus {
    /// Gives the stored and wire spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Ended => "ended",
            Self::Abandoned => "abandoned",
        }
    }

    /// Finds the status of a spelling.
    pub fn from_wire(text: &str) -> Option<Self> {
        [Self::Active, Self::Ended, Self::Abandoned].into_iter().find(|status| status.as_str() == text)
    }
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum EndReason {
    /// Its agent ended it.
    Manual,
    /// It fell silent.
    Stale,
    /// A newer one took its place.
    Superseded,
    /// It failed.
    Error,
}

impl EndReason {
    /// Gives the stored and wire spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Stale => "stale",
            Self::Superseded => "superseded",
            Self::Error => "error",
        }
    }

    /// Finds the reason of a spelling.
    pub fn from_wire(text: &str) -> Option<Self> {
        [Self::Manual, Self::Stale, Self::Superseded, Self::Error]
            .into_iter()
            .find(|reason| reason.as_str() == text)
    }
}

/// What makes two starts mean the same session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionTuple {
    /// Who works.
    pub agent: Agent,
    /// For which undertaking.
    pub venture: Venture,
    /// In which repository.
    pub repo: Repo,
    /// In which lane; none is a lane of its own.
    pub track: Option<Track>,
    /// In which chat of the agent's client; none is a chat of its own.
    pub client_session_id: Option<ClientSessionId>,
}

/// What a session may say about itself, at its start and later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFacts {
    /// The program that the agent runs in.
    pub client: Option<String>,
    /// Its version.
    pub client_version: Option<String>,
    /// The machine.
    pub host: Option<String>,
    /// The issue that is worked on.
    pub issue_number: Option<i64>,
    /// The branch.
    pub branch: Option<String>,
    /// The commit.
    pub commit_sha: Option<String>,
}

impl SessionFacts {
    /// Takes over every fact that `newer` has.
    fn fill_from(&mut self, newer: Self) {
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
    /// Its id.
    pub id: SessionId,
    /// What makes it this session and no other.
    pub tuple: SessionTuple,
    /// What it said about itself.
    pub facts: SessionFacts,
    /// Whether it goes on.
    pub status: SessionStatus,
    /// When it was made, which is also when it started.
    pub created_at: Timestamp,
    /// Its last sign of life; staleness follows from this alone.
    pub last_heartbeat_at: Timestamp,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// Why it is over.
    pub end_reason: Option<EndReason>,
    /// The version of the wire shape it was made with.
    pub schema_version: String,
    /// The credential that made it.
    pub actor_key_id: ActorKeyId,
    /// The request that made it.
    pub creation_correlation_id: CorrelationId,
    /// Whatever else its agent keeps with it.
    pub meta: Option<Map<String, Value>>,
}

impl Session {
    /// Takes a sign of life: the heartbeat moves forward, never back.
    ///
    /// Fails with `session_ended` when the session is over.
    pub fn beat(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.require_active()?;
        self.last_heartbeat_at = self.last_heartbeat_at.max(now);
        Ok(())
    }

    /// Goes on with a session that was started before: a sign of life, and whatever is newly known.
    pub fn resume(&mut self, now: Timestamp, facts: SessionFacts) -> Result<(), Fault> {
        self.beat(now)?;
        self.facts.fill_from(facts);
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

    /// Gives up a session that fell silent: it was over at its last sign of life.
    pub fn abandon(&mut self) {
        self.status = SessionStatus::Abandoned;
        self.ended_at = Some(self.last_heartbeat_at);
        self.end_reason = Some(EndReason::Stale);
    }

    /// Tells whether the session has been silent for too long.
    pub fn is_stale(&self, now: Timestamp, policy: &Liveness) -> bool {
        self.last_heartbeat_at < policy.stale_before(now)
    }

    /// Refuses a session that is over.
    pub fn require_active(&self) -> Result<(), Fault> {
        if self.status == SessionStatus::Active {
            return Ok(());
        }
        let (status, id) = (self.status.as_str(), self.id);
        Err(Fault::new(ErrorCode::SessionEnded, format!("session {id} is {status}"))
            .hint("start a new session with session.start (POST /sod, baton session start)")
            .details(json!({
                "session_id": id, "status": status, "ended_at": self.ended_at, "end_reason": self.end_reason,
            })))
    }
}

/// How long silence is bearable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liveness {
    /// A session silent for longer is stale.
    pub stale_after: Duration,
    /// A session stale for longer is given up by the sweeper.
    pub abandon_after: Duration,
}

impl Liveness {
    /// Gives the moment before which a last heartbeat is stale.
    pub fn stale_before(&self, now: Timestamp) -> Timestamp {
        now.minus(self.stale_after)
    }

    /// Gives the moment before which a last heartbeat makes the sweeper give a session up.
    pub fn abandon_before(&self, now: Timestamp) -> Timestamp {
        now.minus(self.stale_after.saturating_add(self.abandon_after))
    }
}

impl Default for Liveness {
    fn default() -> Self {
        Self { stale_after: Duration::from_secs(45 * 60), abandon_after: Duration::from_secs(24 * 60 * 60) }
    }
}

/// When clients are asked to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatPolicy {
    /// The middle of the interval.
    pub interval_seconds: u32,
    /// How far an interval may lie from the middle, either way and inclusive.
    pub jitter_seconds: u32,
}

impl HeartbeatPolicy {
    /// Picks the seconds until the next heartbeat, evenly from the whole range, given random bits.
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

/// What a start does with the active sessions of its tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartDecision {
    /// The session to go on with; a new one is made when there is none.
    pub resume: Option<SessionId>,
    /// Sessions that a more recent one replaces.
    pub supersede: Vec<SessionId>,
    /// Sessions that fell silent.
    pub abandon: Vec<SessionId>,
}

impl StartDecision {
    /// Decides from every active session of the tuple: the most recent is kept if it is not stale, the others go.
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
