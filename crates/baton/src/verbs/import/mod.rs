//! `baton import …`: adds records of another store, of another program, or of chats from before Baton was installed.

mod claude_mem;
mod cursor;
mod discover;
mod folder_repository;
mod invalid;
mod lines;
mod observations;
mod opencode;
mod records;
mod source;
mod transcripts;

use std::path::PathBuf;

use baton_observation::transcript::TranscriptFormat;
use clap::{Args, Subcommand};

use crate::config::Config;
use crate::output::{Answer, Failure};
use crate::verbs::archive;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton import claude-code                  # all chats below ~/.claude/projects
  $ baton import codex ~/.codex/sessions/2026
  $ baton import claude-mem ~/.claude-mem/claude-mem.db
  $ baton import observations notes.jsonl --repo acme/webshop
  $ baton import all baton.backup";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
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
    /// Import chats that Gemini CLI recorded
    #[command(after_help = "Example:\n  $ baton import gemini")]
    Gemini(TranscriptArgs),
    /// Import chats that OpenCode recorded
    #[command(after_help = "Example:\n  $ baton import opencode")]
    Opencode(TranscriptArgs),
    /// Import chats that Cursor recorded
    #[command(
        after_help = "Example:\n  $ baton import cursor ~/.config/Cursor/User/globalStorage/state.vscdb"
    )]
    Cursor(TranscriptArgs),
    /// Import the observations, summaries and prompts of claude-mem
    #[command(after_help = "Example:\n  $ baton import claude-mem ~/.claude-mem/claude-mem.db")]
    ClaudeMem(claude_mem::ClaudeMemArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TranscriptArgs {
    /// File or database of the client, or folder to search [default: the client's own folder]
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
        ImportCommand::Gemini(args) => transcripts::import(TranscriptFormat::Gemini, args, config),
        ImportCommand::Opencode(args) => transcripts::import(TranscriptFormat::OpenCode, args, config),
        ImportCommand::Cursor(args) => transcripts::import(TranscriptFormat::Cursor, args, config),
        ImportCommand::ClaudeMem(args) => claude_mem::import(args, config),
    }
}
