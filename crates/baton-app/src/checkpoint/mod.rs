//! Checkpoint operations: save, load, list, compare, explain and delete the contexts of workflows.
//!
//! The wire name of a workflow id is `sessionId`, as in the specification of the tools.

mod check;
mod delete;
mod diff;
mod explain;
mod find;
mod list;
mod load;
mod mark_critical;
mod new_checkpoint;
mod reseal;
mod retention;
mod save;
mod series;
mod spooled;
mod view;
mod workflows;

pub use crate::context_storage::{ContextStorage, KEY_CACHE_TTL, Keys, NoKeys, Sealing};
pub(crate) use check::{Checked, check};
pub(crate) use delete::delete_checkpoint;
pub use delete::{DeleteCheckpoint, DeleteCheckpointOutput};
pub use diff::{DiffCheckpoints, DiffCheckpointsOutput};
pub use explain::{ExplainContext, ExplainContextOutput};
pub use list::{ListCheckpoints, ListCheckpointsOutput};
pub use load::{LoadCheckpoint, LoadCheckpointOutput, ViewReport};
pub use mark_critical::{MarkCritical, MarkCriticalOutput, MarkStatus};
pub use reseal::{ResealCheckpoints, ResealCheckpointsOutput};
pub(crate) use retention::apply_retention;
pub use save::{SaveCheckpoint, SaveCheckpointOutput, SaveStatus};
pub use view::{CheckpointMetadata, CheckpointView};
pub(crate) use workflows::workflow_of;
pub use workflows::{ListWorkflows, ListWorkflowsOutput, WorkflowView};
