//! Observations and summaries as they look on the wire.

use baton_core::observation::{FunctionChange, Observation, Provenance};
use baton_core::{ObservationId, SessionId, Timestamp};
use baton_store::StoredSummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one use of a tool taught. What is absent is `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservationView {
    /// Its id.
    pub id: ObservationId,
    /// The session whose tool it was.
    pub session_id: SessionId,
    /// The undertaking.
    pub venture: String,
    /// The repository, `owner/name`.
    pub repo: String,
    /// The tool.
    pub tool_name: String,
    /// The agent's own id of this use.
    pub tool_use_id: Option<String>,
    /// What was done.
    pub title: String,
    /// What happened and why.
    pub summary: String,
    /// What is worth remembering beyond that.
    pub detail: Option<String>,
    /// Files that it speaks of, changed or only looked at.
    pub files: Vec<String>,
    /// Files that were changed.
    pub files_touched: Vec<String>,
    /// Functions that were changed.
    pub functions_changed: Vec<FunctionChange>,
    /// Who says so.
    pub provenance: Provenance,
    /// How long the raw output was.
    #[schemars(with = "i64")]
    pub raw_bytes: u64,
    /// The item of the queue that has the raw output, as long as it is kept.
    pub queue_id: i64,
    /// When the tool was used.
    pub captured_at: Timestamp,
    /// When that was understood.
    pub compressed_at: Timestamp,
}

/// What a session came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryView {
    /// What was accomplished.
    pub summary: String,
    /// The most important files that were changed.
    pub key_files: Vec<String>,
    /// Significant technical decisions.
    pub key_decisions: Vec<String>,
    /// How many observations it covers.
    #[schemars(with = "i64")]
    pub observations: u64,
    /// When it was made.
    pub made_at: Timestamp,
    /// Who made it, with all tokens that it cost so far.
    pub provenance: Provenance,
}

impl From<StoredSummary> for SummaryView {
    fn from(stored: StoredSummary) -> Self {
        let StoredSummary { summary, observations, made_at, provenance } = stored;
        Self {
            summary: summary.summary,
            key_files: summary.key_files,
            key_decisions: summary.key_decisions,
            observations,
            made_at,
            provenance,
        }
    }
}

impl From<Observation> for ObservationView {
    fn from(observation: Observation) -> Self {
        let Observation { compressed, .. } = observation;
        Self {
            id: observation.id,
            session_id: observation.session_id,
            venture: observation.venture.into(),
            repo: observation.repo.into(),
            tool_name: observation.tool_name,
            tool_use_id: observation.tool_use_id,
            title: compressed.title,
            summary: compressed.summary,
            detail: compressed.detail,
            files: observation.files,
            files_touched: compressed.files_touched,
            functions_changed: compressed.functions_changed,
            provenance: observation.provenance,
            raw_bytes: observation.raw_bytes,
            queue_id: observation.queue_id,
            captured_at: observation.captured_at,
            compressed_at: observation.compressed_at,
        }
    }
}
