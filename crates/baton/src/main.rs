//! Baton: keeps the context of coding agents across chats, agents, crashes and machines.
//!
//! The binary owns the command line, the configuration, the terminal and the process. `baton-app` has the operations,
//! `baton-server` the network interfaces.

mod backend;
mod checkout;
mod checkpoints;
mod cli;
mod config;
mod data_dir;
mod encryption;
mod exit;
mod hooks;
mod keys;
mod live_session;
mod logging;
mod machine;
mod maintenance;
mod observations;
mod open_files;
mod output;
mod progress;
mod setup;
mod short_id;
mod stop_signal;
mod terminal;
mod transcript;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run().into()
}
