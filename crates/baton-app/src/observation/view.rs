//! Wire representation of observations.

use baton_core::observation::{FunctionChange, Observation, Provenance};
use baton_core::{ObservationId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Record of one tool use. Absent values are `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservationView {
    /// Observation id (`obs_…`).
    pub id: ObservationId,
    /// Session of the tool use.
    pub session_id: SessionId,
    /// Venture, for example `acme`.
    pub venture: String,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: String,
    /// Tool name, for example `Bash` or `Edit`.
    pub tool_name: String,
    /// Client's id of the tool use.
    pub tool_use_id: Option<String>,
    /// Title: what was done.
    pub title: String,
    /// What happened and why.
    pub summary: String,
    /// Further details, for example error messages or measured values.
    pub detail: Option<String>,
    /// Files mentioned, changed or read.
    pub files: Vec<String>,
    /// Paths of the files that the tool changed, for example `src/main.rs`.
    pub files_touched: Vec<String>,
    /// Functions that the tool changed, with their files.
    pub functions_changed: Vec<FunctionChange>,
    /// Compressor that created the observation.
    pub provenance: Provenance,
    /// Size of the raw output in bytes.
    #[schemars(with = "i64")]
    pub raw_bytes: u64,
    /// Queue item that holds the raw output while it is stored; null for an imported observation.
    pub queue_id: Option<i64>,
    /// Time when the tool was used.
    pub captured_at: Timestamp,
    /// Time when the observation was created.
    pub compressed_at: Timestamp,
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
            queue_id: Some(observation.queue_id).filter(|id| *id > 0),
            captured_at: observation.captured_at,
            compressed_at: observation.compressed_at,
        }
    }
}
