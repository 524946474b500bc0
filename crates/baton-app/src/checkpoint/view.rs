//! Wire format of checkpoints.

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, WorkflowId};
use baton_core::{Agent, CheckpointId, Label, SessionId, Sha256Hash, Timestamp, Venture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A checkpoint without its context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointView {
    /// Checkpoint id (`ckpt_…`).
    pub checkpoint_id: CheckpointId,
    /// Workflow id, for example `auth-migration`.
    pub session_id: WorkflowId,
    /// Time when the checkpoint was saved.
    pub created_at: Timestamp,
    /// Size of the context in bytes.
    pub size_bytes: u64,
    /// Name, tags, status, sizes and origin of the checkpoint.
    pub metadata: CheckpointMetadata,
}

/// Metadata of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CheckpointMetadata {
    /// Name of the checkpoint, for example `before the switch`, or null.
    pub name: Option<Label>,
    /// Tags of the checkpoint, for example `milestone`.
    pub tags: Vec<Label>,
    /// `active`, `archived` or `corrupt`.
    pub status: CheckpointStatus,
    /// Time when the checkpoint was saved.
    pub created_at: Timestamp,
    /// Size of the context as canonical JSON, in bytes.
    pub size_bytes: u64,
    /// Size as stored, in bytes.
    pub stored_bytes: u64,
    /// SHA-256 hash of the canonical JSON.
    pub context_hash: Sha256Hash,
    /// Venture of the workflow.
    pub venture: Venture,
    /// Session that saved the checkpoint.
    pub agent_session_id: Option<SessionId>,
    /// Agent that saved the checkpoint.
    pub agent: Option<Agent>,
}

impl From<Checkpoint> for CheckpointMetadata {
    fn from(checkpoint: Checkpoint) -> Self {
        Self {
            name: checkpoint.labels.name,
            tags: checkpoint.labels.tags,
            status: checkpoint.status,
            created_at: checkpoint.created_at,
            size_bytes: checkpoint.context_bytes,
            stored_bytes: checkpoint.stored_bytes,
            context_hash: checkpoint.context_hash,
            venture: checkpoint.venture,
            agent_session_id: checkpoint.session_id,
            agent: checkpoint.agent,
        }
    }
}

impl From<Checkpoint> for CheckpointView {
    fn from(checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint_id: checkpoint.id,
            session_id: checkpoint.workflow_id.clone(),
            created_at: checkpoint.created_at,
            size_bytes: checkpoint.context_bytes,
            metadata: checkpoint.into(),
        }
    }
}
