//! Rows of session summaries.

use std::collections::HashMap;

use baton_core::observation::{Provenance, SessionSummary};
use baton_core::recall::ItemKind;
use baton_core::{ObservationId, SessionId, Timestamp};

use crate::error::StoreError;
use crate::sql::{Columns, QueryBuilder, RowReader, json};
use crate::tx::Tx;

/// A stored session summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSummary {
    /// Time at which the summary was created.
    pub made_at: Timestamp,
    /// The summary.
    pub summary: SessionSummary,
    /// Number of observations that it covers.
    pub observations: u64,
    /// Compressor and model that created it.
    pub provenance: Provenance,
}

/// A summary to be stored, and its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSummary {
    /// The summary.
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
    pub fn says_nothing_new(&self) -> bool {
        let Provenance { tokens_in, tokens_out, .. } = self.stored.provenance;
        self.replaces.is_some() && self.covers.is_empty() && !self.is_rewritten && tokens_in + tokens_out == 0
    }
}

/// A claimed request for a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryClaim {
    /// The session.
    pub session_id: SessionId,
    /// Number of the claim. A write with an older number is rejected.
    pub fence: i64,
    /// Number of claims since the request.
    pub attempts: i64,
}

fn read_summary(columns: &dyn Columns) -> Result<StoredSummary, StoreError> {
    let row = RowReader { table: "summaries", columns };
    Ok(StoredSummary {
        made_at: row.time(0)?,
        summary: SessionSummary {
            summary: row.text(1)?,
            key_files: row.json(2)?,
            key_decisions: row.json(3)?,
        },
        observations: row.unsigned(4)?,
        provenance: Provenance {
            compressor: row.text(5)?,
            model: row.opt_text(6)?,
            prompt_version: row.text(7)?,
            tokens_in: row.unsigned(8)?,
            tokens_out: row.unsigned(9)?,
        },
    })
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
            &[(&session.to_string()).into(), now.into(), run_at.into()],
        )?;
        self.announce_queue()
    }

    /// Finds the summary of a session, if one was created.
    pub fn summary(&mut self, session: SessionId) -> Result<Option<StoredSummary>, StoreError> {
        self.query_one(
            "SELECT made_at, summary, key_files, key_decisions, observations, compressor, model, \
             prompt_version, tokens_in, tokens_out FROM summaries \
             WHERE session_id = $1 AND made_at IS NOT NULL",
            &[(&session.to_string()).into()],
            &mut read_summary,
        )
    }

    /// Returns the texts of the summaries of sessions.
    pub fn summary_texts(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<HashMap<SessionId, String>, StoreError> {
        let select = "SELECT session_id, summary FROM summaries WHERE session_id";
        let found = self.query_among(select, sessions, " AND made_at IS NOT NULL", &mut |columns| {
            let row = RowReader { table: "summaries", columns };
            Ok((row.parsed(0)?, row.text(1)?))
        })?;
        Ok(found.into_iter().collect())
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
        self.query(sql, &[lease_until.into(), now.into(), limit.into()], &mut |columns| {
            let row = RowReader { table: "summaries", columns };
            Ok(SummaryClaim { session_id: row.parsed(0)?, fence: row.int(1)?, attempts: row.int(2)? })
        })
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
            &[run_at.into(), error.into(), (&claim.session_id.to_string()).into(), claim.fence.into()],
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
        let NewSummary { stored: StoredSummary { summary: text, provenance, .. }, replaces, covers, .. } =
            summary;
        // If the summary was requested again meanwhile, `run_at` differs from the end of the lease and is kept.
        let changed = self.execute(
            "INSERT INTO summaries (session_id, made_at, summary, key_files, key_decisions, observations, \
             compressor, model, prompt_version, tokens_in, tokens_out) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
             ON CONFLICT (session_id) DO UPDATE SET made_at = $2, summary = $3, key_files = $4, \
             key_decisions = $5, observations = $6, compressor = $7, model = $8, \
             prompt_version = $9, tokens_in = summaries.tokens_in + $10, \
             tokens_out = summaries.tokens_out + $11, last_error = NULL, attempts = 0, lease_until = NULL, \
             run_at = CASE WHEN summaries.run_at = summaries.lease_until OR summaries.lease_until IS NULL \
             THEN NULL ELSE summaries.run_at END WHERE summaries.fence = coalesce($12, summaries.fence) \
             AND coalesce(summaries.made_at, -1) = $13",
            &[
                (&session.to_string()).into(),
                summary.stored.made_at.into(),
                (&text.summary).into(),
                (&json("summaries", &text.key_files)?).into(),
                (&json("summaries", &text.key_decisions)?).into(),
                summary.stored.observations.into(),
                (&provenance.compressor).into(),
                provenance.model.as_ref().into(),
                (&provenance.prompt_version).into(),
                provenance.tokens_in.into(),
                provenance.tokens_out.into(),
                fence.into(),
                replaces.map_or(-1, Timestamp::as_millis).into(),
            ],
        )?;
        if changed == 0 {
            return Ok(false);
        }
        let covered = json("summaries", &covers.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let sql = self.pick(
            "UPDATE observations SET summed_up = 1 WHERE id IN (SELECT value FROM json_each($1))",
            "UPDATE observations SET summed_up = TRUE \
             WHERE id IN (SELECT jsonb_array_elements_text(CAST($1 AS TEXT)::JSONB))",
        );
        self.run(sql, &[(&covered).into()])?;
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
    pub fn summaries_wake_at(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.query_one(
            "SELECT run_at FROM summaries WHERE run_at IS NOT NULL ORDER BY run_at LIMIT 1",
            &[],
            &mut |columns| RowReader { table: "summaries", columns }.time(0),
        )
    }
}
