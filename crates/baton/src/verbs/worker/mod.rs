//! `baton worker …`: a process in the background that turns what hooks captured into observations.

mod autostart;
mod client;
mod process;
mod seat;

use clap::{Args, Subcommand};

use crate::config::Config;
use crate::output::{Answer, Failure};

pub(crate) use autostart::{announce_server, start_if_absent};
pub(crate) use client::health;
pub(crate) use process::{run_once as drain, spawn_beside};
pub(crate) use seat::{Occupancy, Seat, socket_of};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    /// Start a worker in the background, unless there is one
    Start,
    /// Stop the worker
    Stop,
    /// Tell whether there is a worker, and how it is
    Status,
    /// Work in the foreground
    Run(RunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Do what is due now, then leave
    #[arg(long)]
    once: bool,
    /// Become a process of its own, apart from the terminal
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
