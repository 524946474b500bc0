//! Wire representation of summaries.

use baton_core::Timestamp;
use baton_core::observation::Provenance;
use baton_store::StoredSummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Summary of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryView {
    /// What the session accomplished, in a few sentences.
    pub summary: String,
    /// Most important changed files.
    pub key_files: Vec<String>,
    /// Technical decisions, for example `Store dates in UTC.`
    pub key_decisions: Vec<String>,
    /// Number of observations covered by the summary.
    #[schemars(with = "i64")]
    pub observations: u64,
    /// Time when the summary was created.
    pub made_at: Timestamp,
    /// Compressor that created the summary, with the total number of tokens used.
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
