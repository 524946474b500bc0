//! Rows of chat turns.

use std::collections::{HashMap, HashSet};

use baton_core::observation::{Turn, TurnId, TurnStatus};
use baton_core::recall::ItemKind;
use baton_core::{SessionId, Timestamp, Venture};

use crate::error::StoreError;
use crate::record::{columns, record};
use crate::sql::QueryBuilder;
use crate::tx::Tx;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnd {
    /// How the turn ended.
    pub status: TurnStatus,
    /// Closing message of the agent.
    pub closing: Option<String>,
    /// Error that ended the turn.
    pub failure: Option<String>,
    /// Transcript of the chat, which has the closing message if the host did not send it.
    pub transcript_path: Option<String>,
    /// Time of the end.
    pub at: Timestamp,
}

/// Ids and start times of turns by session.
pub type TurnStarts = HashMap<SessionId, Vec<(TurnId, Timestamp)>>;

record! {
    "chat_turns", Turn {
        id, session_id, prompt, closing, status, failure, started_at, ended_at, compact_summary,
    }
}

/// Has the latest turn of a session indexed.
fn enqueue_latest(tx: &mut dyn Tx, session: SessionId) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO recall_pending (kind, item) SELECT 'turn', 'turn_' || max(id) FROM chat_turns \
         WHERE session_id = $1",
        &[session.into()],
    )
}

impl dyn Tx + '_ {
    /// Starts a turn. An open turn of the session becomes unfinished.
    pub fn start_turn(&mut self, session: SessionId, prompt: &str, at: Timestamp) -> Result<(), StoreError> {
        self.abandon_turn(session, at)?;
        self.run(
            "INSERT INTO chat_turns (session_id, prompt, status, started_at) VALUES ($1, $2, 'open', $3)",
            &[session.into(), prompt.into(), at.into()],
        )?;
        enqueue_latest(self, session)
    }

    /// Ends the latest turn of a session. A turn that has ended already keeps its closing message unless a new one is
    /// given. Without a turn, one without a request is added, so that the closing message is kept.
    pub fn end_turn(&mut self, session: SessionId, end: &TurnEnd) -> Result<(), StoreError> {
        let Some(latest) = self.turns(session, None, 1)?.pop() else {
            self.run(
                "INSERT INTO chat_turns (session_id, prompt, closing, status, failure, started_at, ended_at) \
                 VALUES ($1, '', $2, $3, $4, $5, $5)",
                &[
                    session.into(),
                    end.closing.as_deref().into(),
                    end.status.into(),
                    end.failure.as_deref().into(),
                    end.at.into(),
                ],
            )?;
            return enqueue_latest(self, session);
        };
        let closing = end.closing.as_deref().or(latest.closing.as_deref());
        let transcript = if closing.is_none() { end.transcript_path.as_deref() } else { None };
        self.run(
            "UPDATE chat_turns SET closing = $1, status = $2, failure = $3, ended_at = $4, transcript_path = $5 \
             WHERE id = $6",
            &[
                closing.into(),
                end.status.into(),
                end.failure.as_deref().into(),
                end.at.into(),
                transcript.into(),
                latest.id.into(),
            ],
        )?;
        self.enqueue_for_index(ItemKind::Turn, &latest.id.to_string())
    }

    /// Stores the summary of a compaction with the latest turn of a session. Without a turn, one without a request is
    /// added.
    pub fn add_compact_summary(
        &mut self,
        session: SessionId,
        summary: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        match self.turns(session, None, 1)?.pop() {
            Some(latest) => self.execute(
                "UPDATE chat_turns SET compact_summary = $1 WHERE id = $2",
                &[summary.into(), latest.id.into()],
            )?,
            None => self.execute(
                "INSERT INTO chat_turns (session_id, prompt, compact_summary, status, started_at) \
                 VALUES ($1, '', $2, 'open', $3)",
                &[session.into(), summary.into(), at.into()],
            )?,
        };
        Ok(())
    }

    /// Lists the turns of a session whose closing message has to be read from a transcript, with its path, newest first.
    pub fn turns_to_complete(
        &mut self,
        session: SessionId,
        limit: u32,
    ) -> Result<Vec<(Turn, String)>, StoreError> {
        let sql = format!(
            "SELECT {}, transcript_path FROM chat_turns WHERE session_id = $1 AND transcript_path IS NOT NULL \
             ORDER BY id DESC LIMIT $2",
            columns::<Turn>()
        );
        self.query(&sql, &[session.into(), limit.into()])
    }

    /// Stores the closing message that was read from a transcript; none if there was none. It is not read again.
    pub fn complete_turn(&mut self, id: TurnId, closing: Option<&str>) -> Result<(), StoreError> {
        self.run(
            "UPDATE chat_turns SET closing = coalesce(closing, $1), transcript_path = NULL WHERE id = $2",
            &[closing.into(), id.into()],
        )?;
        if closing.is_some() {
            self.enqueue_for_index(ItemKind::Turn, &id.to_string())?;
        }
        Ok(())
    }

    /// Finds the turn of a session at a time: the latest one that started by then.
    pub fn turn_at(&mut self, session: SessionId, at: Timestamp) -> Result<Option<Turn>, StoreError> {
        let rest = "WHERE session_id = $1 AND started_at <= $2 ORDER BY id DESC LIMIT 1";
        self.record(rest, &[session.into(), at.into()])
    }

    /// Marks the open turn of a session as unfinished.
    pub fn abandon_turn(&mut self, session: SessionId, at: Timestamp) -> Result<(), StoreError> {
        self.run(
            "UPDATE chat_turns SET status = 'unfinished', ended_at = $1 \
             WHERE session_id = $2 AND status = 'open'",
            &[at.into(), session.into()],
        )
    }

    /// Finds a turn.
    pub fn turn(&mut self, id: TurnId) -> Result<Option<Turn>, StoreError> {
        self.record("WHERE id = $1", &[id.into()])
    }

    /// Finds the first turn of a session after a turn.
    pub fn next_turn(&mut self, turn: &Turn) -> Result<Option<Turn>, StoreError> {
        let rest = "WHERE session_id = $1 AND id > $2 ORDER BY id LIMIT 1";
        self.record(rest, &[turn.session_id.into(), turn.id.into()])
    }

    /// Lists turns of a session, newest first, below an id.
    pub fn turns(
        &mut self,
        session: SessionId,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<Turn>, StoreError> {
        let rest = "WHERE session_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        let before = before.map_or(i64::MAX, TurnId::number);
        self.records(rest, &[session.into(), before.into(), limit.into()])
    }

    /// Returns which of the sessions have turns.
    pub fn sessions_with_turns(&mut self, sessions: &[SessionId]) -> Result<HashSet<SessionId>, StoreError> {
        let select = "SELECT DISTINCT session_id FROM chat_turns WHERE session_id";
        Ok(self.query_among(select, sessions, "")?.into_iter().collect())
    }

    /// Lists the ids and start times of the turns of sessions, oldest first.
    pub fn turn_starts_of(&mut self, sessions: &[SessionId]) -> Result<TurnStarts, StoreError> {
        let mut found = TurnStarts::new();
        let select = "SELECT session_id, id, started_at FROM chat_turns WHERE session_id";
        for (session, id, started_at) in self.query_among(select, sessions, " ORDER BY id")? {
            found.entry(session).or_default().push((id, started_at));
        }
        Ok(found)
    }

    /// Lists the ids and start times of the turns of a session, oldest first.
    pub fn turn_starts(&mut self, session: SessionId) -> Result<Vec<(TurnId, Timestamp)>, StoreError> {
        let sql = "SELECT id, started_at FROM chat_turns WHERE session_id = $1 ORDER BY id";
        self.query(sql, &[session.into()])
    }

    pub fn delete_turn(&mut self, id: TurnId) -> Result<(), StoreError> {
        self.run("DELETE FROM chat_turns WHERE id = $1", &[id.number().into()])?;
        self.delete_documents(ItemKind::Turn, &[id.to_string()])
    }

    /// Counts the turns that started on each day, like `sessions_by_day`.
    pub fn turns_by_day(
        &mut self,
        ventures: Option<&[Venture]>,
        since: Timestamp,
    ) -> Result<Vec<(i64, u64)>, StoreError> {
        let mut query = QueryBuilder::new("SELECT started_at / 86400000, count(*) FROM chat_turns WHERE");
        query.with(" started_at >= $?", since);
        if ventures.is_some() {
            query.text(" AND session_id IN (SELECT id FROM sessions WHERE 1 = 1");
            query.among_ventures("venture", ventures).text(")");
        }
        query.text(" GROUP BY 1");
        self.query(query.sql(), query.params())
    }
}
