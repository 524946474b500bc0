//! Baton: keeps the context of coding agents alive across chats, agents, crashes and machines.
//!
//! The binary owns the command line, the configuration, the terminal and the process. What Baton can do is in
//! `baton-app`; how it looks on the network is in `baton-server`.

mod backend;
mod checkout;
mod checkpoints;
mod cli;
mod config;
mod data_dir;
mod encryption;
mod exit;
mod keys;
mod logging;
mod output;
mod verbs;

use std::process::ExitCode;

/// A server allocates a few hundred times a call, on several threads; the system's allocator spends a sixth of a busy
/// server's time on that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run().into()
}
