//! Rows of sessions.

use std::collections::HashMap;

use baton_core::{
    Agent, ClientSessionId, EndReason, Repo, Session, SessionFacts, SessionId, SessionStatus, SessionTuple,
    Timestamp, Track, TrackFilter, Ulid, Venture,
};

use crate::error::StoreError;
use crate::page::Page;
use crate::sql::{Columns, Lock, QueryBuilder, RowReader, json};
use crate::tx::Tx;

/// Filter for lists of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Venture of the session.
    pub venture: Option<Venture>,
    /// Ventures that the caller may see; absent if the caller may see all.
    pub ventures: Option<Vec<Venture>>,
    /// Repository of the session.
    pub repo: Option<Repo>,
    /// Track of the session, or sessions without a track.
    pub track: Option<TrackFilter>,
    /// Agent of the session.
    pub agent: Option<Agent>,
    /// Earliest time of the last heartbeat.
    pub alive_since: Option<Timestamp>,
}

impl SessionFilter {
    /// Adds the conditions of the filter, the order and the limit to a query that ends with a condition.
    fn add_to<'a>(&'a self, query: &mut QueryBuilder<'a>, limit: u32) {
        query.with_some(" AND venture = $?", self.venture.as_ref().map(|venture| venture.as_str()));
        query.in_ventures("venture", self.ventures.as_deref());
        query.with_some(" AND repo = $?", self.repo.as_ref().map(|repo| repo.as_str()));
        match self.track {
            Some(TrackFilter::Track(track)) => {
                query.with(" AND track = $?", track.number());
            }
            Some(TrackFilter::Untracked) => {
                query.text(" AND track IS NULL");
            }
            None => {}
        }
        query.with_some(" AND agent = $?", self.agent.as_ref().map(|agent| agent.as_str()));
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

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, agent, client, client_version, client_session_id, host, venture, repo, track, \
             issue_number, branch, commit_sha, status, created_at, last_heartbeat_at, ended_at, end_reason, \
             schema_version, actor_key_id, creation_correlation_id, meta_json FROM sessions ",
            $rest
        )
    };
}

fn read(columns: &dyn Columns) -> Result<Session, StoreError> {
    let row = RowReader { table: "sessions", columns };
    let meta = row
        .opt_text(20)?
        .map(|text| serde_json::from_str(&text).map_err(|problem| row.wrong(20, problem)))
        .transpose()?;
    Ok(Session {
        id: row.parsed(0)?,
        tuple: SessionTuple {
            agent: row.parsed(1)?,
            client_session_id: row.opt_parsed(4)?,
            venture: row.parsed(6)?,
            repo: row.parsed(7)?,
            track: row.opt_track(8)?,
        },
        facts: SessionFacts {
            client: row.opt_text(2)?,
            client_version: row.opt_text(3)?,
            host: row.opt_text(5)?,
            issue_number: row.opt_int(9)?,
            branch: row.opt_text(10)?,
            commit_sha: row.opt_text(11)?,
        },
        status: SessionStatus::from_wire(&row.text(12)?).ok_or_else(|| row.wrong(12, "unknown status"))?,
        created_at: row.time(13)?,
        last_heartbeat_at: row.time(14)?,
        ended_at: row.opt_time(15)?,
        end_reason: row
            .opt_text(16)?
            .map(|text| EndReason::from_wire(&text).ok_or_else(|| row.wrong(16, "unknown end reason")))
            .transpose()?,
        schema_version: row.text(17)?,
        actor_key_id: row.parsed(18)?,
        creation_correlation_id: row.parsed(19)?,
        meta,
    })
}

fn read_day(columns: &dyn Columns) -> Result<(i64, u64), StoreError> {
    let row = RowReader { table: "sessions", columns };
    Ok((row.int(0)?, row.unsigned(1)?))
}

fn meta_json(session: &Session) -> Result<Option<String>, StoreError> {
    session.meta.as_ref().map(|meta| json("sessions", meta)).transpose()
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
        let sql = self.pick(
            select!(
                "WHERE agent = $1 AND venture = $2 AND repo = $3 AND coalesce(track, -1) = $4 \
                 AND coalesce(client_session_id, '') = $5 AND status = 'active'"
            ),
            select!(
                "WHERE agent = $1 AND venture = $2 AND repo = $3 AND coalesce(track, -1) = $4 \
                 AND coalesce(client_session_id, '') = $5 AND status = 'active' FOR UPDATE"
            ),
        );
        self.query(
            sql,
            &[
                agent.as_str().into(),
                venture.as_str().into(),
                repo.as_str().into(),
                track.into(),
                client_session_id.into(),
            ],
            &mut read,
        )
    }

    /// Returns the highest id of all sessions.
    pub fn newest_session_id(&mut self) -> Result<Option<SessionId>, StoreError> {
        self.query_one("SELECT id FROM sessions ORDER BY id DESC LIMIT 1", &[], &mut |columns| {
            RowReader { table: "sessions", columns }.parsed(0)
        })
    }

    /// Finds the latest session of a tuple, in any status.
    pub fn latest_session(&mut self, tuple: &SessionTuple) -> Result<Option<Session>, StoreError> {
        let SessionTuple { agent, venture, repo, track, client_session_id } = tuple;
        self.query_one(
            select!(
                "WHERE agent = $1 AND venture = $2 AND repo = $3 AND coalesce(track, -1) = $4 \
                 AND coalesce(client_session_id, '') = $5 ORDER BY id DESC LIMIT 1"
            ),
            &[
                agent.as_str().into(),
                venture.as_str().into(),
                repo.as_str().into(),
                track.map_or(-1, Track::number).into(),
                client_session_id.as_ref().map_or("", |id| id.as_str()).into(),
            ],
            &mut read,
        )
    }

    /// Returns the corrected repository of the chat in `tuple`, if the repository of its latest session was corrected.
    pub fn corrected_repo(&mut self, tuple: &SessionTuple) -> Result<Option<Repo>, StoreError> {
        let SessionTuple { agent, venture, repo, track, client_session_id } = tuple;
        self.query_one(
            "SELECT repo FROM sessions WHERE corrected_from = $1 AND agent = $2 AND venture = $3 \
             AND coalesce(track, -1) = $4 AND coalesce(client_session_id, '') = $5 ORDER BY id DESC LIMIT 1",
            &[
                repo.as_str().into(),
                agent.as_str().into(),
                venture.as_str().into(),
                track.map_or(-1, Track::number).into(),
                client_session_id.as_ref().map_or("", |id| id.as_str()).into(),
            ],
            &mut |columns| RowReader { table: "sessions", columns }.parsed(0),
        )
    }

    /// Changes the repository of a session and of its handoffs, notes, observations and pending tool uses.
    pub fn correct_session_repo(&mut self, id: SessionId, repo: &Repo) -> Result<(), StoreError> {
        for sql in [
            "UPDATE sessions SET corrected_from = coalesce(corrected_from, repo), repo = $1 WHERE id = $2",
            "UPDATE handoffs SET repo = $1 WHERE session_id = $2",
            "UPDATE observations SET repo = $1 WHERE session_id = $2",
            "UPDATE notes SET repo = $1 WHERE session_id = $2",
            "UPDATE pending_queue SET repo = $1 WHERE session_id = $2 AND status IN ('raw', 'processing')",
        ] {
            self.run(sql, &[repo.as_str().into(), (&id.to_string()).into()])?;
        }
        Ok(())
    }

    /// Returns true if the session has a turn, a tool use or a note.
    pub fn has_captures(&mut self, id: SessionId) -> Result<bool, StoreError> {
        let found = self.query_one(
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM chat_turns WHERE session_id = $1) \
             OR EXISTS (SELECT 1 FROM observations WHERE session_id = $1) \
             OR EXISTS (SELECT 1 FROM notes WHERE session_id = $1) \
             OR EXISTS (SELECT 1 FROM pending_queue WHERE session_id = $1 AND status IN ('raw', 'processing'))",
            &[(&id.to_string()).into()],
            &mut |_| Ok(()),
        )?;
        Ok(found.is_some())
    }

    /// Finds the earliest session of a chat, other than `except`.
    pub fn first_session_of_chat(
        &mut self,
        venture: &Venture,
        chat: &ClientSessionId,
        except: SessionId,
    ) -> Result<Option<Session>, StoreError> {
        self.query_one(
            select!("WHERE client_session_id = $1 AND venture = $2 AND id <> $3 ORDER BY id LIMIT 1"),
            &[chat.as_str().into(), venture.as_str().into(), (&except.to_string()).into()],
            &mut read,
        )
    }

    /// Lists the latest sessions of a repository in any status, newest first.
    pub fn recent_sessions(
        &mut self,
        venture: &Venture,
        repo: &Repo,
        limit: u32,
    ) -> Result<Vec<Session>, StoreError> {
        self.query(
            select!("WHERE venture = $1 AND repo = $2 ORDER BY id DESC LIMIT $3"),
            &[venture.as_str().into(), repo.as_str().into(), limit.into()],
            &mut read,
        )
    }

    /// Finds a session.
    pub fn session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        self.query_one(select!("WHERE id = $1"), &[(&id.to_string()).into()], &mut read)
    }

    /// Returns the branches of sessions that have one.
    pub fn branches_of_sessions(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<HashMap<SessionId, String>, StoreError> {
        let select = "SELECT id, branch FROM sessions WHERE id";
        let found = self.query_among(select, sessions, " AND branch IS NOT NULL", &mut |columns| {
            let row = RowReader { table: "sessions", columns };
            Ok((row.parsed(0)?, row.text(1)?))
        })?;
        Ok(found.into_iter().collect())
    }

    /// Finds a session and locks it against other changes until this transaction ends.
    pub fn lock_session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        let sql = self.pick(select!("WHERE id = $1"), select!("WHERE id = $1 FOR UPDATE"));
        self.query_one(sql, &[(&id.to_string()).into()], &mut read)
    }

    /// Adds a session.
    pub fn insert_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let Session { id, tuple, facts, .. } = session;
        self.run(
            "INSERT INTO sessions (id, agent, client, client_version, client_session_id, host, venture, repo, \
             track, issue_number, branch, commit_sha, status, created_at, last_heartbeat_at, ended_at, \
             end_reason, schema_version, actor_key_id, creation_correlation_id, meta_json) VALUES \
             ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
            &[
                (&id.to_string()).into(),
                tuple.agent.as_str().into(),
                facts.client.as_ref().into(),
                facts.client_version.as_ref().into(),
                tuple.client_session_id.as_ref().map(|id| id.as_str()).into(),
                facts.host.as_ref().into(),
                tuple.venture.as_str().into(),
                tuple.repo.as_str().into(),
                tuple.track.map(Track::number).into(),
                facts.issue_number.into(),
                facts.branch.as_ref().into(),
                facts.commit_sha.as_ref().into(),
                session.status.as_str().into(),
                session.created_at.into(),
                session.last_heartbeat_at.into(),
                session.ended_at.into(),
                session.end_reason.map(EndReason::as_str).into(),
                (&session.schema_version).into(),
                session.actor_key_id.as_str().into(),
                session.creation_correlation_id.as_str().into(),
                meta_json(session)?.as_ref().into(),
            ],
        )
    }

    /// Updates a session, except the columns that never change (id, tuple, creation).
    pub fn update_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let facts = &session.facts;
        self.run(
            "UPDATE sessions SET client = $1, client_version = $2, host = $3, issue_number = $4, branch = $5, \
             commit_sha = $6, status = $7, last_heartbeat_at = $8, ended_at = $9, end_reason = $10, \
             meta_json = $11 WHERE id = $12",
            &[
                facts.client.as_ref().into(),
                facts.client_version.as_ref().into(),
                facts.host.as_ref().into(),
                facts.issue_number.into(),
                facts.branch.as_ref().into(),
                facts.commit_sha.as_ref().into(),
                session.status.as_str().into(),
                session.last_heartbeat_at.into(),
                session.ended_at.into(),
                session.end_reason.map(EndReason::as_str).into(),
                meta_json(session)?.as_ref().into(),
                (&session.id.to_string()).into(),
            ],
        )
    }

    /// Updates only the last heartbeat, and only to a later time.
    pub fn beat_session(&mut self, id: SessionId, at: Timestamp) -> Result<(), StoreError> {
        self.run(
            "UPDATE sessions SET last_heartbeat_at = $1 WHERE id = $2 AND last_heartbeat_at < $1",
            &[at.into(), (&id.to_string()).into()],
        )
    }

    /// Records that a start of the session is answered with context. Returns false if one was answered after `since`.
    pub fn give_context(
        &mut self,
        id: SessionId,
        at: Timestamp,
        since: Timestamp,
    ) -> Result<bool, StoreError> {
        let changed = self.execute(
            "UPDATE sessions SET context_given_at = $1 \
             WHERE id = $2 AND (context_given_at IS NULL OR context_given_at <= $3)",
            &[at.into(), (&id.to_string()).into(), since.into()],
        )?;
        Ok(changed == 1)
    }

    /// Counts sessions by status. Reads one index entry per session.
    pub fn count_sessions(&mut self) -> Result<SessionCounts, StoreError> {
        let mut count = |sql: &str| self.number("sessions", sql, &[]);
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
        let below = page.below(SessionId::PREFIX);
        let mut query = QueryBuilder::new(select!("WHERE status = 'active'"));
        query.with(" AND id < $?", &below);
        filter.add_to(&mut query, page.limit);
        self.query(query.sql(), query.params(), &mut read)
    }

    /// Lists sessions of one status or of every status, newest first.
    pub fn sessions(
        &mut self,
        status: Option<SessionStatus>,
        filter: &SessionFilter,
        page: Page,
    ) -> Result<Vec<Session>, StoreError> {
        let below = page.below(SessionId::PREFIX);
        let mut query = QueryBuilder::new(select!("WHERE"));
        query.with(" id < $?", &below);
        query.with_some(" AND status = $?", status.map(|status| status.as_str()));
        filter.add_to(&mut query, page.limit);
        self.query(query.sql(), query.params(), &mut read)
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
        if let Some(ventures) = ventures {
            query.text(" AND ").among("venture", ventures.iter().map(Venture::as_str));
        }
        query.text(" GROUP BY 1");
        self.query(query.sql(), query.params(), &mut read_day)
    }

    /// Counts the turns that started on each day, like `sessions_by_day`.
    pub fn turns_by_day(
        &mut self,
        ventures: Option<&[Venture]>,
        since: Timestamp,
    ) -> Result<Vec<(i64, u64)>, StoreError> {
        let mut query = QueryBuilder::new("SELECT started_at / 86400000, count(*) FROM chat_turns WHERE");
        query.with(" started_at >= $?", since);
        if let Some(ventures) = ventures {
            query
                .text(" AND session_id IN (SELECT id FROM sessions WHERE ")
                .among("venture", ventures.iter().map(Venture::as_str))
                .text(")");
        }
        query.text(" GROUP BY 1");
        self.query(query.sql(), query.params(), &mut read_day)
    }

    /// Lists the ventures that have sessions.
    pub fn session_ventures(&mut self) -> Result<Vec<Venture>, StoreError> {
        // One index lookup for each venture.
        self.query(
            "WITH RECURSIVE known (venture) AS (SELECT min(venture) FROM sessions UNION ALL \
             SELECT (SELECT min(venture) FROM sessions WHERE venture > known.venture) FROM known \
             WHERE known.venture IS NOT NULL) SELECT venture FROM known WHERE venture IS NOT NULL",
            &[],
            &mut |columns| RowReader { table: "sessions", columns }.parsed(0),
        )
    }

    /// Finds active sessions whose last heartbeat is before a time, oldest heartbeat first, and locks them.
    pub fn lock_silent_sessions(
        &mut self,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<Session>, StoreError> {
        // Session ids contain their creation time, and a session created later cannot have an older heartbeat: the
        // index skips most active sessions.
        let sql = self.pick(
            select!(
                "INDEXED BY sessions_active_by_venture WHERE status = 'active' AND id < $1 \
                 AND last_heartbeat_at < $2 ORDER BY last_heartbeat_at LIMIT $3"
            ),
            select!(
                "WHERE status = 'active' AND id < $1 AND last_heartbeat_at < $2 ORDER BY last_heartbeat_at \
                 LIMIT $3 FOR UPDATE SKIP LOCKED"
            ),
        );
        let begun = SessionId::new(Ulid::from_parts(u64::try_from(before.as_millis()).unwrap_or(0), 0));
        self.query(sql, &[(&begun.to_string()).into(), before.into(), limit.into()], &mut read)
    }
}
