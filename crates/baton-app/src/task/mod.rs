//! Operations on the task index, one file per operation. Task contexts are files in the checkout and belong to
//! `baton-task`.

mod files;
mod list;
mod record;
mod show;

pub use files::{TaskDiff, TaskFiles};
pub use list::{ListTasks, ListTasksOutput};
pub use record::{RecordTask, RecordTaskOutput};
pub use show::{ShowTask, ShowTaskOutput};
