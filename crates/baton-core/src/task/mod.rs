//! Names of tasks and their entry in the store.

mod name;
mod record;

pub use name::{Area, EvidenceKind, Role, TaskId, default_pipeline};
pub use record::{TaskRecord, TaskStatus};
