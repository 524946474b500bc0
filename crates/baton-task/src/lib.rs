//! Task context in a checkout: the files below `.agent-output/`, the lock over them, and the operations that every face
//! offers.
//!
//! Rules are `baton-core`'s; this crate reads and writes files. It never runs git: what it must know of a checkout it
//! asks a [`WorkingTree`].

mod artifact;
mod command;
mod config;
mod content_scan;
mod durable;
mod folder;
mod gather;
mod inside;
mod lock;
mod operation;
mod operations;
mod place;
mod qa_recording;
mod restore;
mod secrets;
mod shelf;
mod starting_state;
mod state;
mod task_file;
mod tree;
mod worktree;
mod yaml;

pub use operation::{AnyTaskOperation, Effect, TaskOperation, catalog, operation};
pub use operations::*;
pub use place::{CONTEXT_FILE, OBJECTS_FOLDER, OUTPUT_FOLDER, TaskPlace};
pub use state::{TaskState, task_state};
pub use tree::{Inspector, Reading, SnapshotFile, UncommittedFile, WorkingTree};
