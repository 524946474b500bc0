//! Checkpoints: saved contexts, views within a budget, and differences between contexts.
//!
//! Owns workflow ids, checkpoint metadata, the delta chains between checkpoints, the run-time keys that are never
//! saved, views and structural differences. Storage and compression are elsewhere.

mod allot;
mod condense;
mod context_text;
mod diff;
mod ids;
mod layout;
mod saved;
mod series;
mod stored;
mod view;

pub use context_text::ContextText;
pub use diff::{Change, ChangeKind, Diff, DiffLimits};
pub use ids::{CheckpointRef, WorkflowId, WorkflowIdError};
pub use saved::SavedContext;
pub use series::{Place, SERIES_LENGTH, needed_positions};
pub use stored::{Checkpoint, CheckpointStatus, Labels, Workflow};
pub use view::{Budget, Level, Omission, OmissionKind, Overflow, Unlisted, View, ViewOptions};
