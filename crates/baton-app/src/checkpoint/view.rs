//! How a checkpoint looks on the wire.

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, WorkflowId};
use baton_core::{Agent, CheckpointId, Label, SessionId, Sha256Hash, Timestamp, Venture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A checkpoint in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointView {
    /// Its id.
    pub checkpoint_id: CheckpointId,
    /// The id of its workflow.
    pub session_id: WorkflowId,
    /// When it was saved.
    pub created_at: Timestamp,
    /// How many bytes the context has.
    pub size_bytes: u64,
    /// What else is known of it.
    pub metadata: CheckpointMetadata,
}

/// What is known of a checkpoint beside its context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CheckpointMetadata {
    /// Its name.
    pub name: Option<Label>,
    /// Its tags.
    pub tags: Vec<Label>,
    /// Whether it can be loaded.
    pub status: CheckpointStatus,
    /// When it was saved.
    pub created_at: Timestamp,
    /// How many bytes the context has as canonical JSON.
    pub size_bytes: u64,
    /// How many bytes it takes where it is stored.
    pub stored_bytes: u64,
    /// The SHA-256 hash of the canonical JSON.
    pub context_hash: Sha256Hash,
    /// The undertaking of its workflow.
    pub venture: Venture,
    /// The session of the agent that saved it.
    pub agent_session_id: Option<SessionId>,
    /// The agent that saved it.
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
