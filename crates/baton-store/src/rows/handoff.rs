//! Rows of handoffs.

use baton_core::recall::ItemKind;
use baton_core::{Agent, Handoff, HandoffAuthor, HandoffId, Repo, SessionId, Timestamp, Track, Venture};

use super::mark::and_visible;
use crate::error::StoreError;
use crate::page::Page;
use crate::record::{Record, record, select};
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// Filter for handoffs that were not withdrawn, rejected or superseded. Absent conditions match every handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffFilter {
    pub venture: Venture,
    /// Repository of the handoff.
    pub repo: Option<Repo>,
    /// Track of the handoff; `Some(None)` matches handoffs without a track.
    pub track: Option<Option<Track>>,
    pub issue_number: Option<i64>,
    /// Agent that created the handoff.
    pub from_agent: Option<Agent>,
    /// Agent that the handoff is addressed to.
    pub to_agent: Option<Agent>,
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

record! {
    "handoffs", Handoff {
        id, session_id, venture, repo, track, issue_number, branch, commit_sha, from_agent, to_agent, status_label,
        summary, payload_json, payload_hash, schema_version, ends_session, late, acknowledged_at, acknowledged_by,
        created_at, actor_key_id, creation_correlation_id, written_by, workflow_id, checkpoint_id, automatic_json,
        incomplete, withdrawn_at, acknowledged_session_id,
    }
}

fn payload_bytes(handoff: &Handoff) -> u64 {
    handoff.payload_json.len() as u64
}

impl dyn Tx + '_ {
    /// Returns the highest id of all handoffs.
    pub fn newest_handoff_id(&mut self) -> Result<Option<HandoffId>, StoreError> {
        self.query_one("SELECT id FROM handoffs ORDER BY id DESC LIMIT 1", &[])
    }

    /// Finds a handoff.
    pub fn handoff(&mut self, id: HandoffId) -> Result<Option<Handoff>, StoreError> {
        self.record("WHERE id = $1", &[id.into()])
    }

    /// Finds the handoff that ended a session and was not withdrawn.
    pub fn ending_handoff(&mut self, session: SessionId) -> Result<Option<Handoff>, StoreError> {
        let ends = self.pick("ends_session = 1", "ends_session");
        let rest = format!("WHERE session_id = $1 AND {ends} AND withdrawn_at IS NULL");
        self.record(&rest, &[session.into()])
    }

    /// Finds the latest handoff of a session that was not withdrawn.
    pub fn latest_handoff_of(&mut self, session: SessionId) -> Result<Option<Handoff>, StoreError> {
        let rest = "WHERE session_id = $1 AND withdrawn_at IS NULL ORDER BY id DESC LIMIT 1";
        self.record(rest, &[session.into()])
    }

    /// Lists all handoffs of a session, newest first.
    pub fn handoffs_of(&mut self, session: SessionId) -> Result<Vec<Handoff>, StoreError> {
        self.records("WHERE session_id = $1 ORDER BY id DESC", &[session.into()])
    }

    /// Adds a handoff.
    pub fn insert_handoff(&mut self, handoff: &Handoff) -> Result<(), StoreError> {
        let mut values = handoff.values()?;
        values.push(("payload_size_bytes", payload_bytes(handoff).into()));
        self.insert("handoffs", values, "")?;
        self.enqueue_for_index(ItemKind::Handoff, &handoff.id.to_string())
    }

    /// Updates the content of a handoff: summary, payload, automatic content and whether it is incomplete.
    pub fn update_handoff(&mut self, handoff: &Handoff) -> Result<(), StoreError> {
        self.run(
            "UPDATE handoffs SET summary = $1, payload_json = $2, payload_hash = $3, payload_size_bytes = $4, \
             automatic_json = $5, incomplete = $6 WHERE id = $7",
            &[
                (&handoff.summary).into(),
                (&handoff.payload_json).into(),
                handoff.payload_hash.into(),
                payload_bytes(handoff).into(),
                handoff.automatic_json.as_ref().into(),
                handoff.incomplete.into(),
                handoff.id.into(),
            ],
        )?;
        self.enqueue_for_index(ItemKind::Handoff, &handoff.id.to_string())
    }

    /// Withdraws a handoff. A handoff that was withdrawn before keeps its first time.
    pub fn withdraw_handoff(&mut self, id: HandoffId, at: Timestamp) -> Result<(), StoreError> {
        self.run(
            "UPDATE handoffs SET withdrawn_at = $1 WHERE id = $2 AND withdrawn_at IS NULL",
            &[at.into(), id.into()],
        )?;
        self.delete_documents(ItemKind::Handoff, &[id.to_string()])
    }

    /// Records that an agent acknowledged a handoff. Returns false if it was acknowledged before.
    pub fn acknowledge_handoff(&mut self, id: HandoffId, by: &Acknowledgement) -> Result<bool, StoreError> {
        let changed = self.execute(
            "UPDATE handoffs SET acknowledged_at = $1, acknowledged_by = $2, acknowledged_session_id = $3 \
             WHERE id = $4 AND acknowledged_at IS NULL",
            &[by.at.into(), (&by.agent).into(), by.session_id.into(), id.into()],
        )?;
        Ok(changed == 1)
    }

    /// Lists handoffs, newest first.
    pub fn handoffs(&mut self, filter: &HandoffFilter, page: Page) -> Result<Vec<Handoff>, StoreError> {
        let mut query = QueryBuilder::new(&select::<Handoff>("WHERE"));
        query
            .text(" withdrawn_at IS NULL")
            .with(" AND venture = $?", &filter.venture)
            .with(" AND id < $?", page.below(HandoffId::PREFIX));
        query.with_some(" AND repo = $?", filter.repo.as_ref());
        match filter.track {
            Some(Some(track)) => _ = query.with(" AND track = $?", track),
            Some(None) => _ = query.text(" AND track IS NULL"),
            None => {}
        }
        query.with_some(" AND issue_number = $?", filter.issue_number);
        query.with_some(" AND from_agent = $?", filter.from_agent.as_ref());
        query.with_some(" AND to_agent = $?", filter.to_agent.as_ref());
        query.with_some(" AND written_by = $?", filter.written_by);
        query.text(and_visible!("handoffs.id")).with(" ORDER BY id DESC LIMIT $?", page.limit);
        self.query(query.sql(), query.params())
    }

    pub fn delete_handoff(&mut self, id: HandoffId) -> Result<(), StoreError> {
        let id = id.to_string();
        self.run("DELETE FROM handoffs WHERE id = $1", &[(&id).into()])?;
        self.delete_documents(ItemKind::Handoff, &[id])
    }
}
