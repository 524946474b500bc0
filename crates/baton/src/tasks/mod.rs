//! The tasks of a checkout: git as their working tree, and their files for the dashboard.

mod checkout;
mod files;
mod git_tree;

pub(crate) use checkout::{Checkout, actor, task_environment};
pub(crate) use files::task_files;
