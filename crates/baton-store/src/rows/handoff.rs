//! Rows of handoffs.

use baton_core::recall::ItemKind;
use baton_core::{Agent, Handoff, HandoffAuthor, HandoffId, Repo, SessionId, Timestamp, Track, Venture};

use super::mark::and_visible;
use crate::error::StoreError;
use crate::page::Page;
use crate::sql::{Columns, QueryBuilder, RowReader};
use crate::tx::Tx;

/// Filter for handoffs that were not withdrawn, rejected or superseded. Absent conditions match every handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffFilter {
    /// Venture of the handoff.
    pub venture: Venture,
    /// Repository of the handoff.
    pub repo: Option<Repo>,
    /// Track of the handoff; `Some(None)` matches handoffs without a track.
    pub track: Option<Option<Track>>,
    /// Issue number of the handoff.
    pub issue_number: Option<i64>,
    /// Agent that created the handoff.
    pub from_agent: Option<Agent>,
    /// Agent that the handoff is addressed to.
    pub to_agent: Option<Agent>,
    /// Author of the handoff.
    pub written_by: Option<HandoffAuthor>,
}

impl HandoffFilter {
    /// Matches every handoff of a venture.
    pub const fn of(venture: Venture) -> Self {
        Self {
            venture,
            repo: None,
            track: None,
            issue_number: None,
            from_agent: None,
            to_agent: None,
            written_by: None,
        }
    }
}

/// Who acknowledges a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Agent that takes over the work.
    pub agent: Agent,
    /// Session that continues the work, if it is known.
    pub session_id: Option<SessionId>,
    /// Time of the acknowledgement.
    pub at: Timestamp,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, session_id, venture, repo, track, issue_number, branch, commit_sha, from_agent, to_agent, \
             status_label, summary, payload_json, payload_hash, schema_version, ends_session, late, acknowledged_at, \
             acknowledged_by, created_at, actor_key_id, creation_correlation_id, written_by, workflow_id, \
             checkpoint_id, automatic_json, incomplete, withdrawn_at, acknowledged_session_id FROM handoffs ",
            $rest
        )
    };
}

fn read(columns: &dyn Columns) -> Result<Handoff, StoreError> {
    let row = RowReader { table: "handoffs", columns };
    Ok(Handoff {
        id: row.parsed(0)?,
        session_id: row.parsed(1)?,
        venture: row.parsed(2)?,
        repo: row.parsed(3)?,
        track: row.opt_track(4)?,
        issue_number: row.opt_int(5)?,
        branch: row.opt_text(6)?,
        commit_sha: row.opt_text(7)?,
        from_agent: row.parsed(8)?,
        to_agent: row.opt_parsed(9)?,
        status_label: row.opt_text(10)?,
        summary: row.text(11)?,
        payload_json: row.text(12)?,
        payload_hash: row.hash(13)?,
        schema_version: row.text(14)?,
        ends_session: row.bool(15)?,
        late: row.bool(16)?,
        acknowledged_at: row.opt_time(17)?,
        acknowledged_by: row.opt_parsed(18)?,
        created_at: row.time(19)?,
        actor_key_id: row.parsed(20)?,
        creation_correlation_id: row.parsed(21)?,
        written_by: HandoffAuthor::from_wire(&row.text(22)?)
            .ok_or_else(|| row.wrong(22, "unknown author"))?,
        workflow_id: row.opt_parsed(23)?,
        checkpoint_id: row.opt_parsed(24)?,
        automatic_json: row.opt_text(25)?,
        incomplete: row.bool(26)?,
        withdrawn_at: row.opt_time(27)?,
        acknowledged_session_id: row.opt_parsed(28)?,
    })
}

impl dyn Tx + '_ {
    /// Returns the highest id of all handoffs.
    pub fn newest_handoff_id(&mut self) -> Result<Option<HandoffId>, StoreError> {
        self.query_one("SELECT id FROM handoffs ORDER BY id DESC LIMIT 1", &[], &mut |columns| {
            RowReader { table: "handoffs", columns }.parsed(0)
        })
    }

    /// Finds a handoff.
    pub fn handoff(&mut self, id: HandoffId) -> Result<Option<Handoff>, StoreError> {
        self.query_one(select!("WHERE id = $1"), &[(&id.to_string()).into()], &mut read)
    }

    /// Finds the handoff that ended a session and was not withdrawn.
    pub fn ending_handoff(&mut self, session: SessionId) -> Result<Option<Handoff>, StoreError> {
        let sql = self.pick(
            select!("WHERE session_id = $1 AND ends_session = 1 AND withdrawn_at IS NULL"),
            select!("WHERE session_id = $1 AND ends_session AND withdrawn_at IS NULL"),
        );
        self.query_one(sql, &[(&session.to_string()).into()], &mut read)
    }

    /// Finds the latest handoff of a session that was not withdrawn.
    pub fn latest_handoff_of(&mut self, session: SessionId) -> Result<Option<Handoff>, StoreError> {
        let sql = select!("WHERE session_id = $1 AND withdrawn_at IS NULL ORDER BY id DESC LIMIT 1");
        self.query_one(sql, &[(&session.to_string()).into()], &mut read)
    }

    /// Lists all handoffs of a session, newest first.
    pub fn handoffs_of(&mut self, session: SessionId) -> Result<Vec<Handoff>, StoreError> {
        let sql = select!("WHERE session_id = $1 ORDER BY id DESC");
        self.query(sql, &[(&session.to_string()).into()], &mut read)
    }

    /// Adds a handoff.
    pub fn insert_handoff(&mut self, handoff: &Handoff) -> Result<(), StoreError> {
        let size = i64::try_from(handoff.payload_json.len()).unwrap_or(i64::MAX);
        self.run(
            "INSERT INTO handoffs (id, session_id, venture, repo, track, issue_number, branch, commit_sha, \
             from_agent, to_agent, status_label, summary, payload_json, payload_hash, payload_size_bytes, \
             schema_version, ends_session, late, acknowledged_at, acknowledged_by, created_at, actor_key_id, \
             creation_correlation_id, written_by, workflow_id, checkpoint_id, automatic_json, incomplete, \
             withdrawn_at, acknowledged_session_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, \
             $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30)",
            &[
                (&handoff.id.to_string()).into(),
                (&handoff.session_id.to_string()).into(),
                handoff.venture.as_str().into(),
                handoff.repo.as_str().into(),
                handoff.track.map(Track::number).into(),
                handoff.issue_number.into(),
                handoff.branch.as_ref().into(),
                handoff.commit_sha.as_ref().into(),
                handoff.from_agent.as_str().into(),
                handoff.to_agent.as_ref().map(Agent::as_str).into(),
                handoff.status_label.as_ref().into(),
                (&handoff.summary).into(),
                (&handoff.payload_json).into(),
                (&handoff.payload_hash.to_string()).into(),
                size.into(),
                (&handoff.schema_version).into(),
                handoff.ends_session.into(),
                handoff.late.into(),
                handoff.acknowledged_at.into(),
                handoff.acknowledged_by.as_ref().map(Agent::as_str).into(),
                handoff.created_at.into(),
                handoff.actor_key_id.as_str().into(),
                handoff.creation_correlation_id.as_str().into(),
                handoff.written_by.as_str().into(),
                handoff.workflow_id.as_ref().map(|id| id.as_str()).into(),
                handoff.checkpoint_id.map(|id| id.to_string()).as_ref().into(),
                handoff.automatic_json.as_ref().into(),
                handoff.incomplete.into(),
                handoff.withdrawn_at.into(),
                handoff.acknowledged_session_id.map(|id| id.to_string()).as_ref().into(),
            ],
        )?;
        self.enqueue_for_index(ItemKind::Handoff, &handoff.id.to_string())
    }

    /// Updates the content of a handoff: summary, payload, automatic content and whether it is incomplete.
    pub fn update_handoff(&mut self, handoff: &Handoff) -> Result<(), StoreError> {
        let size = i64::try_from(handoff.payload_json.len()).unwrap_or(i64::MAX);
        self.run(
            "UPDATE handoffs SET summary = $1, payload_json = $2, payload_hash = $3, payload_size_bytes = $4, \
             automatic_json = $5, incomplete = $6 WHERE id = $7",
            &[
                (&handoff.summary).into(),
                (&handoff.payload_json).into(),
                (&handoff.payload_hash.to_string()).into(),
                size.into(),
                handoff.automatic_json.as_ref().into(),
                handoff.incomplete.into(),
                (&handoff.id.to_string()).into(),
            ],
        )?;
        self.enqueue_for_index(ItemKind::Handoff, &handoff.id.to_string())
    }

    /// Withdraws a handoff. A handoff that was withdrawn before keeps its first time.
    pub fn withdraw_handoff(&mut self, id: HandoffId, at: Timestamp) -> Result<(), StoreError> {
        self.run(
            "UPDATE handoffs SET withdrawn_at = $1 WHERE id = $2 AND withdrawn_at IS NULL",
            &[at.into(), (&id.to_string()).into()],
        )?;
        self.delete_documents(ItemKind::Handoff, &[id.to_string()])
    }

    /// Records that an agent acknowledged a handoff. Returns false if it was acknowledged before.
    pub fn acknowledge_handoff(&mut self, id: HandoffId, by: &Acknowledgement) -> Result<bool, StoreError> {
        let changed = self.execute(
            "UPDATE handoffs SET acknowledged_at = $1, acknowledged_by = $2, acknowledged_session_id = $3 \
             WHERE id = $4 AND acknowledged_at IS NULL",
            &[
                by.at.into(),
                by.agent.as_str().into(),
                by.session_id.map(|id| id.to_string()).as_ref().into(),
                (&id.to_string()).into(),
            ],
        )?;
        Ok(changed == 1)
    }

    /// Lists handoffs, newest first.
    pub fn handoffs(&mut self, filter: &HandoffFilter, page: Page) -> Result<Vec<Handoff>, StoreError> {
        let below = page.below(HandoffId::PREFIX);
        let mut query = QueryBuilder::new(select!("WHERE"));
        query
            .text(" withdrawn_at IS NULL")
            .with(" AND venture = $?", filter.venture.as_str())
            .with(" AND id < $?", &below);
        query.with_some(" AND repo = $?", filter.repo.as_ref().map(|repo| repo.as_str()));
        match filter.track {
            Some(Some(track)) => _ = query.with(" AND track = $?", track.number()),
            Some(None) => _ = query.text(" AND track IS NULL"),
            None => {}
        }
        query.with_some(" AND issue_number = $?", filter.issue_number);
        query.with_some(" AND from_agent = $?", filter.from_agent.as_ref().map(|agent| agent.as_str()));
        query.with_some(" AND to_agent = $?", filter.to_agent.as_ref().map(|agent| agent.as_str()));
        query.with_some(" AND written_by = $?", filter.written_by.map(|author| author.as_str()));
        query.text(and_visible!("handoffs.id")).with(" ORDER BY id DESC LIMIT $?", page.limit);
        self.query(query.sql(), query.params(), &mut read)
    }
}
