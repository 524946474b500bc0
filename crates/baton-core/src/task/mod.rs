//! Names of tasks, their entry in the store, and the working trees in which they are done.

mod name;
mod record;
mod tree;

pub use name::{Area, EvidenceKind, Role, TaskId, default_pipeline};
pub use record::{TaskRecord, TaskStatus};
pub use tree::{
    ChangeStatus, DiffStat, Head, Inspector, Submodule, TreeChange, TreeDiff, TreeState, UncommittedFile,
};
