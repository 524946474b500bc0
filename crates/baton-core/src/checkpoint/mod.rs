//! Stored checkpoints and workflows: their ids, metadata and delta chains.

mod ids;
mod series;
mod stored;

pub use ids::{CheckpointRef, WorkflowId};
pub use series::{Place, SERIES_LENGTH, needed_positions};
pub use stored::{Checkpoint, CheckpointStatus, Labels, Workflow};
