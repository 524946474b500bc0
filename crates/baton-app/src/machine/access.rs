//! Access to the machine.

use std::fmt;
use std::path::Path;

use baton_core::Fault;
use baton_core::task::TaskId;

use super::{ListAgentsOutput, TaskFiles};

/// Access to the machine. The binary implements it.
pub trait Machine: fmt::Debug + Send + Sync {
    fn host(&self) -> String;

    /// Reads the files of a task in a checkout of this machine.
    ///
    /// # Errors
    ///
    /// `not_found` if the checkout has no files of the task, otherwise the errors of `task.get_context`.
    fn task_files(&self, checkout: &Path, id: &TaskId) -> Result<TaskFiles, Fault>;

    /// Returns the connections of the agents that are set up. With `probe`, the programs that agents use are started too.
    ///
    /// # Errors
    ///
    /// `internal` if the home folder is unknown.
    fn agents(&self, probe: bool) -> Result<ListAgentsOutput, Fault>;
}
