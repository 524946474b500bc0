//! Rows of sessions.

use std::collections::HashMap;

use baton_core::{
    Agent, ClientSessionId, Repo, Session, SessionFacts, SessionId, SessionStatus, SessionTuple, Timestamp,
    Track, TrackFilter, Ulid, Venture,
};

use crate::column::Param;
use crate::error::StoreError;
use crate::page::Page;
use crate::record::{Record, record, select};
use crate::sql::QueryBuilder;
use crate::tx::{Lock, Tx};

/// Filter for lists of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    pub venture: Option<Venture>,
    /// Ventures that the caller may see; absent if the caller may see all.
    pub ventures: Option<Vec<Venture>>,
    /// Repository of the session.
    pub repo: Option<Repo>,
    /// Track of the session, or sessions without a track.
    pub track: Option<TrackFilter>,
    pub agent: Option<Agent>,
    /// Earliest time of the last heartbeat.
    pub alive_since: Option<Timestamp>,
}

impl SessionFilter {
    /// Adds the conditions of the filter, the order and the limit to a query that ends with a condition.
    fn add_to<'a>(&'a self, query: &mut QueryBuilder<'a>, limit: u32) {
        query.with_some(" AND venture = $?", self.venture.as_ref());
        query.in_ventures("venture", self.ventures.as_deref());
        query.with_some(" AND repo = $?", self.repo.as_ref());
        match self.track {
            Some(TrackFilter::Track(track)) => _ = query.with(" AND track = $?", track),
            Some(TrackFilter::Untracked) => _ = query.text(" AND track IS NULL"),
            None => {}
        }
        query.with_some(" AND agent = $?", self.agent.as_ref());
        query.with_some(" AND last_heartbeat_at >= $?", self.alive_since);
        query.with(" ORDER BY id DESC LIMIT $?", limit);
    }
}

/// Numbers of sessions by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounts {
    /// Number of active sessions, stale ones included.
    pub active: u64,
    /// Number of sessions that were ended.
    pub ended: u64,
    /// Number of abandoned sessions.
    pub abandoned: u64,
}

record! {
    "sessions", Session {
        id, status, created_at, last_heartbeat_at, ended_at, end_reason, schema_version, actor_key_id,
        creation_correlation_id, meta as meta_json,
    }
    tuple: SessionTuple { agent, client_session_id, venture, repo, track }
    facts: SessionFacts { client, client_version, host, issue_number, branch, commit_sha }
}

/// Condition on the tuple of a session. An absent track or chat is compared as a value, as in the index.
const OF_TUPLE: &str = "WHERE agent = $1 AND venture = $2 AND repo = $3 AND coalesce(track, -1) = $4 \
     AND coalesce(client_session_id, '') = $5";

fn tuple_params(tuple: &SessionTuple) -> [Param<'_>; 5] {
    let SessionTuple { agent, venture, repo, track, client_session_id } = tuple;
    let chat = client_session_id.as_ref().map_or("", |id| id.as_str());
    [agent.into(), venture.into(), repo.into(), track.map_or(-1, Track::number).into(), chat.into()]
}

impl dyn Tx + '_ {
    /// Finds the active sessions of a tuple. Until this transaction ends, other starts of that tuple and other changes
    /// of those sessions wait.
    pub fn lock_active_sessions(&mut self, tuple: &SessionTuple) -> Result<Vec<Session>, StoreError> {
        let SessionTuple { agent, venture, repo, track, client_session_id } = tuple;
        let track = track.map_or(-1, Track::number);
        let client_session_id = client_session_id.as_ref().map_or("", |id| id.as_str());
        self.lock(Lock::SessionTuple, &format!("{agent} {venture} {repo} {track} {client_session_id}"))?;
        // The lock above serializes starts; an end, an update or a heartbeat locks only the row.
        let lock = self.pick("", " FOR UPDATE");
        self.records(&format!("{OF_TUPLE} AND status = 'active'{lock}"), &tuple_params(tuple))
    }

    /// Returns the highest id of all sessions.
    pub fn newest_session_id(&mut self) -> Result<Option<SessionId>, StoreError> {
        self.query_one("SELECT id FROM sessions ORDER BY id DESC LIMIT 1", &[])
    }

    /// Finds the latest session of a tuple, in any status.
    pub fn latest_session(&mut self, tuple: &SessionTuple) -> Result<Option<Session>, StoreError> {
        self.record(&format!("{OF_TUPLE} ORDER BY id DESC LIMIT 1"), &tuple_params(tuple))
    }

    /// Returns the corrected repository of the chat in `tuple`, if the repository of its latest session was corrected.
    pub fn corrected_repo(&mut self, tuple: &SessionTuple) -> Result<Option<Repo>, StoreError> {
        self.query_one(
            "SELECT repo FROM sessions WHERE agent = $1 AND venture = $2 AND corrected_from = $3 \
             AND coalesce(track, -1) = $4 AND coalesce(client_session_id, '') = $5 ORDER BY id DESC LIMIT 1",
            &tuple_params(tuple),
        )
    }

    /// Changes the repository of a session, of its items and of their marks. The items are indexed again.
    pub fn correct_session_repo(&mut self, id: SessionId, repo: &Repo) -> Result<(), StoreError> {
        for sql in [
            "UPDATE sessions SET corrected_from = coalesce(corrected_from, repo), repo = $1 WHERE id = $2",
            "UPDATE handoffs SET repo = $1 WHERE session_id = $2",
            "UPDATE observations SET repo = $1 WHERE session_id = $2",
            "UPDATE notes SET repo = $1 WHERE session_id = $2",
            "UPDATE pending_queue SET repo = $1 WHERE session_id = $2 AND status IN ('raw', 'processing')",
            "UPDATE item_marks SET repo = $1 WHERE item IN (SELECT 'turn_' || id FROM chat_turns WHERE session_id = $2 \
             UNION ALL SELECT id FROM observations WHERE session_id = $2 \
             UNION ALL SELECT id FROM handoffs WHERE session_id = $2 \
             UNION ALL SELECT id FROM notes WHERE session_id = $2 \
             UNION ALL SELECT session_id FROM summaries WHERE session_id = $2)",
        ] {
            self.run(sql, &[repo.into(), id.into()])?;
        }
        self.enqueue_session(id)
    }

    /// Returns true if the session has a turn, a tool use or a note.
    pub fn has_captures(&mut self, id: SessionId) -> Result<bool, StoreError> {
        self.exists(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM chat_turns WHERE session_id = $1) \
             OR EXISTS (SELECT 1 FROM observations WHERE session_id = $1) \
             OR EXISTS (SELECT 1 FROM notes WHERE session_id = $1) \
             OR EXISTS (SELECT 1 FROM pending_queue WHERE session_id = $1 AND status IN ('raw', 'processing'))",
            &[id.into()],
        )
    }

    /// Finds the earliest session of a chat, other than `except`.
    pub fn first_session_of_chat(
        &mut self,
        venture: &Venture,
        chat: &ClientSessionId,
        except: SessionId,
    ) -> Result<Option<Session>, StoreError> {
        self.record(
            "WHERE client_session_id = $1 AND venture = $2 AND id <> $3 ORDER BY id LIMIT 1",
            &[chat.into(), venture.into(), except.into()],
        )
    }

    /// Lists the latest sessions of a repository in any status, newest first.
    pub fn recent_sessions(
        &mut self,
        venture: &Venture,
        repo: &Repo,
        limit: u32,
    ) -> Result<Vec<Session>, StoreError> {
        self.records(
            "WHERE venture = $1 AND repo = $2 ORDER BY id DESC LIMIT $3",
            &[venture.into(), repo.into(), limit.into()],
        )
    }

    /// Finds a session.
    pub fn session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        self.record("WHERE id = $1", &[id.into()])
    }

    /// Returns the branches of sessions that have one.
    pub fn branches_of_sessions(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<HashMap<SessionId, String>, StoreError> {
        let select = "SELECT id, branch FROM sessions WHERE id";
        Ok(self.query_among(select, sessions, " AND branch IS NOT NULL")?.into_iter().collect())
    }

    /// Finds a session and locks it against other changes until this transaction ends.
    pub fn lock_session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        let lock = self.pick("", " FOR UPDATE");
        self.record(&format!("WHERE id = $1{lock}"), &[id.into()])
    }

    /// Adds a session.
    pub fn insert_session(&mut self, session: &Session) -> Result<(), StoreError> {
        self.insert("sessions", session.values()?, "")
    }

    /// Updates a session, except the columns that never change (id, tuple, creation).
    pub fn update_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let changing = "status, last_heartbeat_at, ended_at, end_reason, meta_json, client, client_version, host, \
             issue_number, branch, commit_sha";
        self.update(session, changing, "id")
    }

    /// Updates only the last heartbeat, and only to a later time.
    pub fn beat_session(&mut self, id: SessionId, at: Timestamp) -> Result<(), StoreError> {
        self.run(
            "UPDATE sessions SET last_heartbeat_at = $1 WHERE id = $2 AND last_heartbeat_at < $1",
            &[at.into(), id.into()],
        )
    }

    /// Records that a start of the session is answered with context. Returns false if one was answered after `since`.
    pub fn claim_context_start(
        &mut self,
        id: SessionId,
        at: Timestamp,
        since: Timestamp,
    ) -> Result<bool, StoreError> {
        let changed = self.execute(
            "UPDATE sessions SET context_given_at = $1 \
             WHERE id = $2 AND (context_given_at IS NULL OR context_given_at <= $3)",
            &[at.into(), id.into(), since.into()],
        )?;
        Ok(changed == 1)
    }

    /// Counts sessions by status. Reads one index entry per session.
    pub fn count_sessions(&mut self) -> Result<SessionCounts, StoreError> {
        let mut count = |sql: &str| self.number(sql, &[]);
        // Literal conditions, so that each count uses its partial index.
        let active = count("SELECT count(*) FROM sessions WHERE status = 'active'")?;
        let abandoned = count("SELECT count(*) FROM sessions WHERE status = 'abandoned'")?;
        let all = count("SELECT count(*) FROM sessions")?;
        Ok(SessionCounts { active, ended: all.saturating_sub(active + abandoned), abandoned })
    }

    /// Lists active sessions, newest first.
    pub fn active_sessions(
        &mut self,
        filter: &SessionFilter,
        page: Page,
    ) -> Result<Vec<Session>, StoreError> {
        let mut query = QueryBuilder::new(&select::<Session>("WHERE status = 'active'"));
        query.with(" AND id < $?", page.below(SessionId::PREFIX));
        filter.add_to(&mut query, page.limit);
        self.query(query.sql(), query.params())
    }

    /// Lists sessions of one status or of every status, newest first.
    pub fn sessions(
        &mut self,
        status: Option<SessionStatus>,
        filter: &SessionFilter,
        page: Page,
    ) -> Result<Vec<Session>, StoreError> {
        let mut query = QueryBuilder::new(&select::<Session>("WHERE "));
        query.with("id < $?", page.below(SessionId::PREFIX));
        query.with_some(" AND status = $?", status);
        filter.add_to(&mut query, page.limit);
        self.query(query.sql(), query.params())
    }

    /// Counts the sessions that started on each day since a time, of all ventures or of these. Days are numbered from
    /// 1970-01-01.
    pub fn sessions_by_day(
        &mut self,
        ventures: Option<&[Venture]>,
        since: Timestamp,
    ) -> Result<Vec<(i64, u64)>, StoreError> {
        let mut query = QueryBuilder::new("SELECT created_at / 86400000, count(*) FROM sessions WHERE");
        query.with(" created_at >= $?", since);
        query.among_ventures("venture", ventures).text(" GROUP BY 1");
        self.query(query.sql(), query.params())
    }

    /// Lists the ventures that have sessions.
    pub fn session_ventures(&mut self) -> Result<Vec<Venture>, StoreError> {
        self.ventures_in("sessions")
    }

    /// Finds active sessions whose last heartbeat is before a time, oldest heartbeat first, and locks them.
    pub fn lock_stale_sessions(&mut self, before: Timestamp, limit: u32) -> Result<Vec<Session>, StoreError> {
        // Session ids contain their creation time, and a session created later cannot have an older heartbeat: the
        // index skips most active sessions.
        let rest = self.pick(
            "INDEXED BY sessions_active_by_venture WHERE status = 'active' AND id < $1 \
             AND last_heartbeat_at < $2 ORDER BY last_heartbeat_at LIMIT $3",
            "WHERE status = 'active' AND id < $1 AND last_heartbeat_at < $2 ORDER BY last_heartbeat_at \
             LIMIT $3 FOR UPDATE SKIP LOCKED",
        );
        let begun = SessionId::new(Ulid::from_parts(u64::try_from(before.as_millis()).unwrap_or(0), 0));
        self.records(rest, &[begun.into(), before.into(), limit.into()])
    }
}
