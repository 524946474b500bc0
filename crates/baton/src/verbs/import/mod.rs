//! `baton import …`: adds records of another store, of another program, or of chats from before Baton was installed.

mod discover;
mod invalid;
mod lines;
mod observations;
mod place;
mod transcripts;

use std::path::PathBuf;

use baton_core::transcript::TranscriptFormat;
use clap::{Args, Subcommand};

use crate::config::Config;
use crate::output::{Answer, Failure};
use crate::verbs::archive;

pub(crate) use discover::transcript_folder;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton import claude-code                  # all chats below ~/.claude/projects
  $ baton import codex ~/.codex/sessions/2026
  $ baton import observations notes.jsonl --repo acme/webshop
  $ baton import all baton.backup";

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Import all records of a backup or export
    #[command(after_help = "Example:\n  $ baton import all baton.backup")]
    All(archive::AllArgs),
    /// Import finished observations, one JSON object per line
    #[command(after_help = observations::FORMAT)]
    Observations(observations::ObservationsArgs),
    /// Import chats that Claude Code recorded
    #[command(after_help = "Example:\n  $ baton import claude-code")]
    ClaudeCode(TranscriptArgs),
    /// Import chats that Codex recorded
    #[command(after_help = "Example:\n  $ baton import codex ~/.codex/sessions/2026")]
    Codex(TranscriptArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TranscriptArgs {
    /// Transcript file, or folder to search for transcripts [default: the client's own folder]
    path: Option<PathBuf>,
    /// Repository of all chats [default: derived from the folder of each chat]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Agent name [default: session.agent, else derived from the client]
    #[arg(long)]
    agent: Option<String>,
    /// Venture [default: session.venture]
    #[arg(long)]
    venture: Option<String>,
}

pub(crate) fn run(command: &ImportCommand, config: &Config) -> Result<Answer, Failure> {
    match command {
        ImportCommand::All(args) => archive::import_all(args, config),
        ImportCommand::Observations(args) => observations::import(args, config),
        ImportCommand::ClaudeCode(args) => transcripts::import(TranscriptFormat::ClaudeCode, args, config),
        ImportCommand::Codex(args) => transcripts::import(TranscriptFormat::Codex, args, config),
    }
}
