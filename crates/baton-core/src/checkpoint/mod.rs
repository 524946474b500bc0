//! Checkpoints: saved contexts, what is kept of them in a small view, and how two of them differ.
//!
//! Owns the ids of workflows, what is known of a checkpoint, which one leans on which, the run-time keys that are never
//! saved, budgeted views and structural differences. Does not own where checkpoints are kept or how they are compressed.

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
