//! Metadata of workflows and checkpoints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::WorkflowId;
use super::series::Place;
use crate::canonical::Sha256Hash;
use crate::error::Fault;
use crate::id::{CheckpointId, SessionId};
use crate::name::{Agent, Label, Repo, Venture};
use crate::time::Timestamp;
use crate::wire::wire_names;

/// A named series of checkpoints. It can span several chats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    pub venture: Venture,
    /// Workflow id, unique within the venture.
    pub id: WorkflowId,
    pub name: Option<String>,
    /// Repository of the workflow.
    pub repo: Option<Repo>,
    /// Time when the first checkpoint was saved.
    pub created_at: Timestamp,
    /// Time when the latest checkpoint was saved.
    pub last_saved_at: Timestamp,
    /// Time of the last save or load.
    pub last_accessed_at: Timestamp,
    pub checkpoint_count: u64,
    /// Number of checkpoints without a name, which retention may delete.
    pub unnamed_count: u64,
    /// Stored size of all checkpoints in bytes.
    pub stored_bytes: u64,
    /// Keys marked as critical.
    pub critical_keys: Vec<String>,
}

/// Metadata of a saved context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub id: CheckpointId,
    pub venture: Venture,
    pub workflow_id: WorkflowId,
    /// Position in the workflow.
    pub place: Place,
    pub status: CheckpointStatus,
    /// Name and tags.
    pub labels: Labels,
    /// Session that saved the checkpoint.
    pub session_id: Option<SessionId>,
    /// Agent that saved the checkpoint.
    pub agent: Option<Agent>,
    /// Time when the checkpoint was saved.
    pub created_at: Timestamp,
    /// Size of the context as canonical JSON, in bytes.
    pub context_bytes: u64,
    /// Hash of the canonical JSON.
    pub context_hash: Sha256Hash,
    /// True if `_contextSize` is restored when the checkpoint is loaded.
    pub restores_size: bool,
    /// Size as stored, in bytes.
    pub stored_bytes: u64,
}

/// Status of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[schemars(inline)]
pub enum CheckpointStatus {
    /// The checkpoint can be loaded.
    Active,
    /// The checkpoint was deleted; data that other checkpoints need is still stored.
    Archived,
    /// The stored data is damaged.
    Corrupt,
}

wire_names!(CheckpointStatus);

/// Name and tags of a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Labels {
    /// Name, for example `before the switch`. Named checkpoints are kept until they are deleted explicitly.
    #[serde(default)]
    pub name: Option<Label>,
    /// Tags, for example `auth`. At most 32.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub tags: Vec<Label>,
}

impl Labels {
    /// Maximum number of tags of a checkpoint.
    pub const MAX_TAGS: usize = 32;

    /// Rejects too many tags.
    pub fn require_tag_limit(&self) -> Result<(), Fault> {
        if self.tags.len() > Self::MAX_TAGS {
            return Err(Fault::invalid("metadata.tags", format!("must be at most {} tags", Self::MAX_TAGS)));
        }
        Ok(())
    }
}
