//! Task context in a checkout: the files below `.agent-output/`, their locks, and the operations offered by the CLI and
//! MCP.
//!
//! [`rules`] works without I/O; the rest of the crate reads and writes the files. It never runs git: a [`WorkingTree`]
//! provides the state of the checkout.

mod archive;
mod artifact;
mod catalog;
mod checkout_state;
mod command;
mod config;
mod content_scan;
mod draft;
mod durable;
mod environment;
mod folder;
mod gather;
mod lock;
mod named_file;
mod operation;
mod operations;
mod qa_recording;
mod restore;
pub mod rules;
mod secrets;
mod snapshot;
mod task_file;
mod task_state;
mod unsaved;
mod verification;
mod working_tree;
mod yaml;

pub use archive::task_state;
pub use catalog::catalog;
pub use environment::{CONTEXT_FILE, OBJECTS_FOLDER, OUTPUT_FOLDER, TaskEnvironment};
pub use operation::{AnyTaskOperation, OnCheckout, operation, run};
pub use operations::*;
pub use qa_recording::RecordQaOutput;
pub use task_state::TaskState;
pub use working_tree::{Inspector, Reading, UncommittedFile, WorkingTree};
