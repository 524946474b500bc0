//! Operations on the task index, one file per operation. Task contexts are files in the checkout and belong to
//! `baton-task`.

mod list;
mod record;
mod show;

pub use crate::machine::{TaskDiff, TaskFiles};
pub use list::{ListTasks, ListTasksOutput};
pub use record::{RecordTask, RecordTaskOutput};
pub use show::{ShowTask, ShowTaskOutput};
