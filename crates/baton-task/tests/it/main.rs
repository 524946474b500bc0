//! Tasks in a checkout whose tree is answered for by a plain walk over its files.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot look must fail loudly")]

mod bad_input;
mod checkout;
mod crash;
mod drift;
mod lifecycle;
mod qa;
mod race;
mod relay;
mod task_files;
mod walked_tree;
mod workflow;
