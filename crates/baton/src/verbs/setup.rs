//! `baton setup`

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure, Format};
use crate::setup::{
    Action, Agent, Change, Records, Scope, SetupEnvironment, all, apply, changes_to_add, changes_to_remove,
    find,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton setup claude-code codex
  $ baton setup --all --dry-run
  $ baton setup cursor --scope project
  $ baton setup claude-code --remove";

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Agents to set up [default: ask for each installed agent]
    #[arg(value_name = "AGENT", value_parser = PossibleValuesParser::new(all().iter().map(|agent| agent.id)))]
    agents: Vec<String>,
    /// Set up all installed agents
    #[arg(long, conflicts_with = "agents")]
    all: bool,
    /// Files to write: of the user or of the current project
    #[arg(long, value_enum, default_value_t = Scope::User)]
    scope: Scope,
    /// Show the changes without writing them
    #[arg(long)]
    dry_run: bool,
    /// Remove what setup wrote, and restore the original files
    #[arg(long)]
    remove: bool,
}

pub(crate) fn run(args: &SetupArgs, format: Format, config: &Config) -> Result<Answer, Failure> {
    let environment = SetupEnvironment::of_process(args.scope, config)?;
    let records = Records::of(&config.data_dir);
    let agents = choose(args, &environment, format)?;
    let (mut reports, mut texts) = (Vec::new(), Vec::new());
    for (index, agent) in agents.iter().enumerate() {
        let changes = match args.remove {
            false => changes_to_add(agent, &environment, &records)?,
            true => changes_to_remove(agent, &agents[..=index], &environment, &records)?,
        };
        let notes = if args.remove { Vec::new() } else { (agent.notes)(&environment) };
        texts.push(describe(agent, args, &changes, &notes));
        reports.push(json!({ "agent": agent.id, "changes": changes, "notes": notes }));
        if !args.dry_run {
            apply(changes, &records)?;
        }
    }
    if !args.remove && !args.dry_run {
        texts.push("Run baton doctor to check the connections.".to_owned());
    }
    let data =
        json!({ "scope": args.scope, "dry_run": args.dry_run, "remove": args.remove, "agents": reports });
    Answer::new(&data, texts.join("\n\n"))
}

/// Returns the agents that were named, or those that are installed and the user chose.
fn choose(
    args: &SetupArgs,
    environment: &SetupEnvironment,
    format: Format,
) -> Result<Vec<&'static Agent>, Failure> {
    if !args.agents.is_empty() {
        return Ok(args.agents.iter().filter_map(|id| find(id)).collect());
    }
    let installed: Vec<&Agent> = all().iter().filter(|agent| (agent.is_installed)(environment)).collect();
    if installed.is_empty() {
        let ids: Vec<&str> = all().iter().map(|agent| agent.id).collect();
        return Err(Failure::new(Exit::NotFound, "not_found", "no installed agent was found")
            .hint(format!("name the agent: baton setup {}", ids.join("|"))));
    }
    if args.all {
        return Ok(installed);
    }
    let ids: Vec<&str> = installed.iter().map(|agent| agent.id).collect();
    if format == Format::Json || !std::io::stdin().is_terminal() {
        let message = format!("no agent given; installed agents: {}", ids.join(", "));
        return Err(
            Failure::usage(message).hint(format!("run baton setup {}, or baton setup --all", ids.join(" ")))
        );
    }
    let verb = if args.remove { "Remove Baton from" } else { "Set up" };
    Ok(installed.into_iter().filter(|agent| confirm(&format!("{verb} {}?", agent.name))).collect())
}

/// Asks a question on the terminal.
fn confirm(question: &str) -> bool {
    let mut stderr = std::io::stderr();
    let asked = write!(stderr, "{question} [Y/n] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = asked.and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    read.is_ok_and(|bytes| bytes > 0) && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes")
}

fn describe(agent: &Agent, args: &SetupArgs, changes: &[Change], notes: &[String]) -> String {
    let mut lines = vec![format!("{} ({} scope)", agent.name, args.scope)];
    if args.remove && changes.is_empty() {
        lines.push("  nothing to remove".to_owned());
    }
    for change in changes {
        lines.push(format!("  {:<9}  {}", change.action, change.path.display()));
        if matches!(change.action, Action::Update | Action::Restore) || args.dry_run {
            lines.extend(change.diff.lines().map(|line| format!("    {line}")));
        }
    }
    if args.dry_run {
        lines.push("  nothing was written (--dry-run)".to_owned());
    }
    lines.extend(notes.iter().map(|note| format!("  Note: {note}")));
    lines.join("\n")
}
