//! What is known of a workflow and of its checkpoints beside the contexts themselves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::WorkflowId;
use super::series::Place;
use crate::canonical::Sha256Hash;
use crate::error::Fault;
use crate::id::{CheckpointId, SessionId};
use crate::name::{Agent, Label, Repo, Venture};
use crate::time::Timestamp;

/// A named series of checkpoints that outlives chats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// The undertaking that it belongs to.
    pub venture: Venture,
    /// Its id, unique within the venture.
    pub id: WorkflowId,
    /// What it calls itself.
    pub name: Option<String>,
    /// The repository that it works in.
    pub repo: Option<Repo>,
    /// When its first checkpoint was saved.
    pub created_at: Timestamp,
    /// When its last checkpoint was saved.
    pub last_saved_at: Timestamp,
    /// When it was last saved or loaded.
    pub last_accessed_at: Timestamp,
    /// How many checkpoints it has.
    pub checkpoint_count: u64,
    /// How many of them have no name and may be dropped.
    pub unnamed_count: u64,
    /// How many bytes they take.
    pub stored_bytes: u64,
    /// The keys that were marked as critical.
    pub critical_keys: Vec<String>,
}

/// A saved context, without the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its id.
    pub id: CheckpointId,
    /// The undertaking of its workflow.
    pub venture: Venture,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// Where it stands in its workflow.
    pub place: Place,
    /// Whether it can be loaded.
    pub status: CheckpointStatus,
    /// What it is called.
    pub labels: Labels,
    /// The session that saved it.
    pub session_id: Option<SessionId>,
    /// The agent that saved it.
    pub agent: Option<Agent>,
    /// When it was saved.
    pub created_at: Timestamp,
    /// How many bytes the context has as canonical JSON.
    pub context_bytes: u64,
    /// The hash of those bytes.
    pub context_hash: Sha256Hash,
    /// Whether `_contextSize` is to be put back when it is loaded.
    pub restores_size: bool,
    /// How many bytes it takes where it is stored.
    pub stored_bytes: u64,
}

/// Whether a checkpoint can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CheckpointStatus {
    /// It can.
    Active,
    /// It was dropped; what others lean on is still kept.
    Archived,
    /// What is stored of it is damaged.
    Corrupt,
}

impl CheckpointStatus {
    /// Gives the stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Archived => "archived",
            Self::Corrupt => "corrupt",
        }
    }

    /// Finds the status of a spelling.
    pub fn from_wire(text: &str) -> Option<Self> {
        [Self::Active, Self::Archived, Self::Corrupt].into_iter().find(|status| status.as_str() == text)
    }
}

/// What a checkpoint is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Labels {
    /// A name; checkpoints with one are kept until they are deleted by hand.
    #[serde(default)]
    pub name: Option<Label>,
    /// Words to find it by.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub tags: Vec<Label>,
}

impl Labels {
    /// How many tags a checkpoint may have.
    pub const MAX_TAGS: usize = 32;

    /// Refuses more tags than that.
    pub fn require_few(&self) -> Result<(), Fault> {
        if self.tags.len() > Self::MAX_TAGS {
            return Err(Fault::invalid("metadata.tags", format!("must be at most {} tags", Self::MAX_TAGS)));
        }
        Ok(())
    }
}
