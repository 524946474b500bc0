//! An observation as it is kept, with where it came from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compressed::CompressedObservation;
use crate::id::{ObservationId, SessionId};
use crate::name::{Repo, Venture};
use crate::time::Timestamp;

/// What one use of a tool taught, and where that comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Its id, which tells when the tool was used.
    pub id: ObservationId,
    /// The item of the queue that it was made from, where the raw output is kept for some time.
    pub queue_id: i64,
    /// The session whose tool it was.
    pub session_id: SessionId,
    /// The undertaking.
    pub venture: Venture,
    /// The repository.
    pub repo: Repo,
    /// The tool.
    pub tool_name: String,
    /// The agent's own id of this use.
    pub tool_use_id: Option<String>,
    /// What it taught.
    pub compressed: CompressedObservation,
    /// Files that it speaks of, changed or only looked at.
    pub files: Vec<String>,
    /// Who says so.
    pub provenance: Provenance,
    /// How long the raw output was.
    pub raw_bytes: u64,
    /// When the tool was used.
    pub captured_at: Timestamp,
    /// When that was understood.
    pub compressed_at: Timestamp,
}

/// Who made an observation or a summary, and what it cost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// `anthropic`, `openai` or `offline`.
    pub compressor: String,
    /// The model, if there was one.
    pub model: Option<String>,
    /// Which wording or rules: `compress-v1`, `offline-v1`.
    pub prompt_version: String,
    /// Tokens of the prompt.
    pub tokens_in: u64,
    /// Tokens of the answer.
    pub tokens_out: u64,
}

/// How far a captured tool use has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueStatus {
    /// It waits.
    Raw,
    /// Somebody works on it.
    Processing,
    /// It became an observation.
    Done,
    /// Nothing came of it; the raw output is kept.
    Error,
}

impl QueueStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Raw, Self::Processing, Self::Done, Self::Error];

    /// Gives its stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Error => "error",
        }
    }

    /// Reads a stored name.
    pub fn from_wire(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// How many captured tool uses have come how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueueStats {
    /// So many wait.
    pub raw: u64,
    /// So many are worked on.
    pub processing: u64,
    /// So many became observations and still have their raw output.
    pub done: u64,
    /// Of so many nothing came.
    pub error: u64,
}
