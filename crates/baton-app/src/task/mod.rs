//! The index of tasks, so that they can be found from anywhere: one file a verb. What a task is and how it goes from role
//! to role is `baton-task`'s, in the files of its checkout.

mod list;
mod record;

pub use list::{ListTasks, ListTasksOutput, ListTasksParams};
pub use record::{RecordTask, RecordTaskOutput, RecordTaskParams};
