//! Checkpoints: saved contexts, what is kept of them in a small view, and how two of them differ.
//!
//! Owns the ids of workflows, the run-time keys that are never saved, budgeted views and structural differences. Does
//! not own where checkpoints are kept or how they are compressed.

mod allot;
mod condense;
mod diff;
mod ids;
mod layout;
mod runtime;
mod view;

pub use diff::{Change, ChangeKind, Diff, DiffLimits};
pub use ids::{WorkflowId, WorkflowIdError, workflow_name};
pub use runtime::{PersistableContext, RestoredContext, prepare_for_persistence, restore_from_persistence};
pub use view::{Budget, Level, Omission, OmissionKind, Overflow, View, ViewOptions};
