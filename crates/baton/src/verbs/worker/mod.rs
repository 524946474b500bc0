//! `baton worker …`: a background process that turns captured tool uses into observations.

mod autostart;
mod client;
mod process;
mod server_lock;
mod worker_lock;

use clap::{Args, Subcommand};

use crate::config::Config;
use crate::output::{Answer, Failure};

pub(crate) use autostart::start_if_absent;
pub(crate) use client::health;
pub(crate) use process::spawn_in_process;
pub(crate) use server_lock::{announce_server, has_server_with_worker};
pub(crate) use worker_lock::{LockState, WorkerLock, socket_of};

pub(crate) const EXAMPLES: &str = "\
A hook starts the worker when it is needed (worker.autostart).

Examples:
  $ baton worker status
  $ baton worker run --once
  $ baton worker start";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum WorkerCommand {
    /// Start the worker in the background, unless it is running
    #[command(after_help = "Example:\n  $ baton worker start")]
    Start,
    /// Stop the worker
    #[command(after_help = "Example:\n  $ baton worker stop")]
    Stop,
    /// Show whether the worker is running, and its counters
    #[command(after_help = "Example:\n  $ baton worker status")]
    Status,
    /// Run the worker in the foreground
    #[command(after_help = "Example:\n  $ baton worker run --once")]
    Run(RunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Process due items once and exit
    #[arg(long)]
    once: bool,
    /// Detach from the terminal
    #[arg(long, hide = true)]
    detached: bool,
}

pub(crate) fn run(command: &WorkerCommand, config: &Config) -> Result<Answer, Failure> {
    match command {
        WorkerCommand::Start => process::start(config),
        WorkerCommand::Stop => process::stop(config),
        WorkerCommand::Status => process::status(config),
        WorkerCommand::Run(args) if args.once => process::run_once(config),
        WorkerCommand::Run(args) => process::run(config, args.detached),
    }
}
