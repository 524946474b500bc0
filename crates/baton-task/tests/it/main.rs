//! Task operations on a checkout whose working tree is implemented without git.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed test setup must panic")]

mod bad_input;
mod checkout;
mod drift;
mod lifecycle;
mod qa;
mod race;
mod relay;
mod task_files;
mod walked_tree;
mod workflow;
