//! Checkpoints: the context of a workflow, saved, found again, shown within a budget, compared and explained.
//!
//! On the wire a workflow's id is called `sessionId`, as the tools' specification has it; everywhere else it is a workflow.

mod check;
mod delete;
mod diff;
mod explain;
mod find;
mod keep;
mod list;
mod load;
mod mark_critical;
mod reseal;
mod room;
mod save;
mod series;
mod spooled;
mod usage;
mod vault;
mod view;
mod workflows;

pub(crate) use check::{Checked, check};
pub use delete::{DeleteCheckpoint, DeleteCheckpointOutput, DeleteCheckpointParams};
pub use diff::{DiffCheckpoints, DiffCheckpointsOutput, DiffCheckpointsParams};
pub use explain::{ExplainContext, ExplainContextOutput, ExplainContextParams};
pub use list::{ListCheckpoints, ListCheckpointsOutput, ListCheckpointsParams};
pub use load::{LoadCheckpoint, LoadCheckpointOutput, LoadCheckpointParams, ViewReport};
pub use mark_critical::{MarkCritical, MarkCriticalOutput, MarkCriticalParams, MarkStatus};
pub use reseal::{ResealCheckpoints, ResealCheckpointsOutput, ResealCheckpointsParams};
pub(crate) use room::shrink_unused;
pub use save::{SaveCheckpoint, SaveCheckpointOutput, SaveCheckpointParams, SaveStatus};
pub(crate) use spooled::spooled_save;
pub use vault::{KEYS_USED_FOR, Keys, NoKeys, Sealing, Vault};
pub use view::{CheckpointMetadata, CheckpointView};
pub use workflows::{ListWorkflows, ListWorkflowsOutput, ListWorkflowsParams, WorkflowView};
