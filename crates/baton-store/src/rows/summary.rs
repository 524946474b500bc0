//! Rows of session summaries.

use std::collections::HashMap;

use baton_core::observation::{Provenance, SessionSummary};
use baton_core::recall::ItemKind;
use baton_core::{ObservationId, SessionId, Timestamp};

use crate::column::json;
use crate::error::StoreError;
use crate::record::{Record, record};
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// A stored session summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSummary {
    /// Time at which the summary was created.
    pub made_at: Timestamp,
    pub summary: SessionSummary,
    /// Number of observations that it covers.
    pub observations: u64,
    /// Compressor and model that created it.
    pub provenance: Provenance,
}

/// A summary to be stored, and its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSummary {
    pub stored: StoredSummary,
    /// Creation time of the summary that it replaces; `None` for the first summary.
    pub replaces: Option<Timestamp>,
    /// Observations that it covers in addition to those of the replaced summary.
    pub covers: Vec<ObservationId>,
    /// True if its text differs from the text of the replaced summary.
    pub is_rewritten: bool,
}

impl NewSummary {
    /// Returns true if its text and coverage equal those of the summary that it replaces, and no model was
    /// called for it.
    pub fn is_unchanged(&self) -> bool {
        let Provenance { tokens_in, tokens_out, .. } = self.stored.provenance;
        self.replaces.is_some() && self.covers.is_empty() && !self.is_rewritten && tokens_in + tokens_out == 0
    }
}

/// A claimed request for a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryClaim {
    pub session_id: SessionId,
    /// Number of the claim. A write with an older number is rejected.
    pub fence: i64,
    /// Number of claims since the request.
    pub attempts: i64,
}

record! {
    "summaries", SummaryClaim { session_id, fence, attempts }
}

record! {
    "summaries", StoredSummary { made_at, observations }
    summary: SessionSummary { summary, key_files, key_decisions }
    provenance: Provenance { compressor, model, prompt_version, tokens_in, tokens_out }
}

impl dyn Tx + '_ {
    /// Requests a summary of a session, to be created at `run_at` or later.
    pub fn request_summary(
        &mut self,
        session: SessionId,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.run(
            "INSERT INTO summaries (session_id, requested_at, run_at) VALUES ($1, $2, $3) \
             ON CONFLICT (session_id) DO UPDATE SET requested_at = $2, run_at = $3, attempts = 0",
            &[session.into(), now.into(), run_at.into()],
        )?;
        self.announce_queue()
    }

    /// Finds the summary of a session, if one was created.
    pub fn summary(&mut self, session: SessionId) -> Result<Option<StoredSummary>, StoreError> {
        self.record("WHERE session_id = $1 AND made_at IS NOT NULL", &[session.into()])
    }

    /// Returns the texts of the summaries of sessions.
    pub fn summary_texts(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<HashMap<SessionId, String>, StoreError> {
        let select = "SELECT session_id, summary FROM summaries WHERE session_id";
        Ok(self.query_among(select, sessions, " AND made_at IS NOT NULL")?.into_iter().collect())
    }

    /// Claims due summaries until `lease_until`.
    pub fn claim_summaries(
        &mut self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> Result<Vec<SummaryClaim>, StoreError> {
        // A claim sets `run_at` to the end of its lease, so that the summary becomes due again if the worker dies.
        let sql = self.pick(
            "UPDATE summaries SET run_at = $1, lease_until = $1, fence = fence + 1, attempts = attempts + 1 \
             WHERE session_id IN (SELECT session_id FROM summaries WHERE run_at <= $2 ORDER BY run_at LIMIT $3) \
             RETURNING session_id, fence, attempts",
            "WITH due AS MATERIALIZED (SELECT session_id FROM summaries WHERE run_at <= $2 ORDER BY run_at \
             LIMIT $3 FOR UPDATE SKIP LOCKED) \
             UPDATE summaries SET run_at = $1, lease_until = $1, fence = fence + 1, attempts = attempts + 1 \
             WHERE session_id IN (SELECT session_id FROM due) RETURNING session_id, fence, attempts",
        );
        self.query(sql, &[lease_until.into(), now.into(), limit.into()])
    }

    /// Postpones a claimed summary. Returns false if the claim is no longer the latest one. A summary that was
    /// requested again meanwhile stays due.
    pub fn postpone_summary(
        &mut self,
        claim: &SummaryClaim,
        run_at: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, StoreError> {
        let changed = self.execute(
            "UPDATE summaries SET run_at = CASE WHEN run_at = lease_until THEN $1 ELSE run_at END, \
             lease_until = NULL, last_error = $2 WHERE session_id = $3 AND fence = $4 AND lease_until IS NOT NULL",
            &[run_at.into(), error.into(), claim.session_id.into(), claim.fence.into()],
        )?;
        Ok(changed == 1)
    }

    /// Stores the summary of a session and marks the observations that it covers. Returns false if another summary was
    /// stored since the one that it continues, or if `fence` is given and the claim is no longer the latest one. A
    /// summary that was requested again meanwhile stays due.
    pub fn keep_summary(
        &mut self,
        session: SessionId,
        summary: &NewSummary,
        fence: Option<i64>,
    ) -> Result<bool, StoreError> {
        let NewSummary { stored, replaces, covers, .. } = summary;
        let mut values = stored.values()?;
        values.push(("session_id", session.into()));
        let mut query = QueryBuilder::insert("summaries", [values]);
        // If the summary was requested again meanwhile, `run_at` differs from the end of the lease and is kept.
        query.text(
            " ON CONFLICT (session_id) DO UPDATE SET made_at = excluded.made_at, summary = excluded.summary, \
             key_files = excluded.key_files, key_decisions = excluded.key_decisions, \
             observations = excluded.observations, compressor = excluded.compressor, model = excluded.model, \
             prompt_version = excluded.prompt_version, tokens_in = summaries.tokens_in + excluded.tokens_in, \
             tokens_out = summaries.tokens_out + excluded.tokens_out, last_error = NULL, attempts = 0, \
             lease_until = NULL, run_at = CASE WHEN summaries.run_at = summaries.lease_until \
             OR summaries.lease_until IS NULL THEN NULL ELSE summaries.run_at END",
        );
        query.with(" WHERE summaries.fence = coalesce($?, summaries.fence)", fence);
        query.with(" AND coalesce(summaries.made_at, -1) = $?", replaces.map_or(-1, Timestamp::as_millis));
        let changed = self.execute(query.sql(), query.params())?;
        if changed == 0 {
            return Ok(false);
        }
        let covered = json(&covers.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let sql = self.pick(
            "UPDATE observations SET summed_up = 1 WHERE id IN (SELECT value FROM json_each($1))",
            "UPDATE observations SET summed_up = TRUE \
             WHERE id IN (SELECT jsonb_array_elements_text(CAST($1 AS TEXT)::JSONB))",
        );
        self.run(sql, &[covered.into()])?;
        self.enqueue_for_index(ItemKind::Summary, &session.to_string())?;
        Ok(true)
    }

    /// Requests summaries again for sessions with failed items, which are about to be retried: of one item, or of all.
    pub fn renew_summaries(&mut self, item: Option<i64>, now: Timestamp) -> Result<(), StoreError> {
        let mut query = QueryBuilder::new("UPDATE summaries SET ");
        query.with("requested_at = $?", now).with(", run_at = $?", now);
        query.text(", attempts = 0 WHERE made_at IS NOT NULL AND session_id IN (SELECT session_id FROM pending_queue");
        query.text(" WHERE status = 'error'");
        query.with_some(" AND id = $?", item);
        query.text(")");
        self.run(query.sql(), query.params())
    }

    /// Returns the time at which the next summary is due.
    pub fn next_summary_due_at(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.query_one("SELECT run_at FROM summaries WHERE run_at IS NOT NULL ORDER BY run_at LIMIT 1", &[])
    }

    /// Deletes the text of a session's summary. A summary that is being made is not stored, and the next one covers the
    /// whole session again.
    pub fn delete_summary(&mut self, session: SessionId) -> Result<(), StoreError> {
        let session = session.to_string();
        self.run(
            "UPDATE summaries SET made_at = NULL, summary = NULL, key_files = NULL, key_decisions = NULL, \
             observations = 0, fence = fence + 1 WHERE session_id = $1",
            &[(&session).into()],
        )?;
        let sql = self.pick(
            "UPDATE observations SET summed_up = 0 WHERE session_id = $1 AND summed_up",
            "UPDATE observations SET summed_up = FALSE WHERE session_id = $1 AND summed_up",
        );
        self.run(sql, &[(&session).into()])?;
        self.delete_documents(ItemKind::Summary, &[session])
    }
}
