//! Baton: keeps the context of coding agents across chats, agents, crashes and machines.
//!
//! The binary owns the command line, the configuration, the terminal and the process. `baton-app` has the operations,
//! `baton-server` the network interfaces.

mod app;
mod backend;
mod checkout;
mod checkpoints;
mod cli;
mod config;
mod connections;
mod data_dir;
mod encryption;
mod exit;
mod hooks;
mod host;
mod keys;
mod live_session;
mod logging;
mod machine;
mod maintenance;
mod observations;
mod open_files;
mod output;
mod progress;
mod remote;
mod setup;
mod short_id;
mod stop_signal;
mod store;
mod tasks;
mod terminal;
mod transcript;
mod verbs;

use std::process::ExitCode;

/// Version and the commit that it was built from.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BATON_COMMIT"), ")");

fn main() -> ExitCode {
    cli::run().into()
}
