//! Stored observations and the status of queue items.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compressed::CompressedObservation;
use crate::id::{ObservationId, SessionId};
use crate::name::{Repo, Venture};
use crate::time::Timestamp;
use crate::wire::wire_names;

/// Record of one tool use, with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Observation id, which contains the time of the tool use.
    pub id: ObservationId,
    /// Queue item that the observation was created from. It holds the raw output until retention deletes it.
    pub queue_id: i64,
    /// Session of the tool use.
    pub session_id: SessionId,
    pub venture: Venture,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Repo,
    /// Tool name, for example `Bash` or `Edit`.
    pub tool_name: String,
    /// Client's id of the tool use.
    pub tool_use_id: Option<String>,
    /// Content of the observation.
    pub compressed: CompressedObservation,
    /// Files mentioned, changed or read.
    pub files: Vec<String>,
    /// Compressor that created the observation.
    pub provenance: Provenance,
    /// Size of the raw output in bytes.
    pub raw_bytes: u64,
    /// Time when the tool was used.
    pub captured_at: Timestamp,
    /// Time when the observation was created.
    pub compressed_at: Timestamp,
}

/// Compressor that created an observation or summary, with its token usage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// `anthropic`, `openai`, `offline`, or `import` for imported observations.
    pub compressor: String,
    /// Model that wrote the text, for example `gpt-5-mini`; null if the offline rules did.
    pub model: Option<String>,
    /// Version of the prompt or rules, for example `compress-v1` or `offline-v1`.
    pub prompt_version: String,
    /// Number of prompt tokens.
    pub tokens_in: u64,
    /// Number of response tokens.
    pub tokens_out: u64,
}

/// Status of a queue item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum QueueStatus {
    /// The item is pending.
    Raw,
    /// A worker is processing the item.
    Processing,
    /// An observation was created.
    Done,
    /// Processing failed; the raw output is kept.
    Error,
}

wire_names!(QueueStatus);

impl QueueStatus {
    pub const ALL: [Self; 4] = [Self::Raw, Self::Processing, Self::Done, Self::Error];
}

/// Number of queue items by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueueStats {
    /// Number of pending items.
    pub raw: u64,
    /// Number of items in progress.
    pub processing: u64,
    /// Number of completed items whose raw output is still stored.
    pub done: u64,
    /// Number of failed items.
    pub error: u64,
}
