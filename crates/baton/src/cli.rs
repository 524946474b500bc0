//! The command line: what can be said, and who does it.

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::config::{Config, Flag, Sources};
use crate::exit::{self, Exit};
use crate::output::{Answer, Failure, Format, finish, print, warn};
use crate::verbs;
use crate::verbs::hook::QuickArgs;
use crate::{backend::Backend, logging};

/// The version, with the commit it was built from.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BATON_COMMIT"), ")");

/// Keeps the context of coding agents alive across chats, agents, crashes and machines.
#[derive(Debug, Parser)]
#[command(name = "baton", version = VERSION, after_help = exit::HELP, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What every verb takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Print for people or for machines
    #[arg(long, value_enum, default_value_t, global = true)]
    format: Format,
    /// Use this baton server instead of the local store
    #[arg(long, value_name = "URL", global = true)]
    server: Option<String>,
    /// Keep data in this folder
    #[arg(long, value_name = "FOLDER", global = true)]
    data_dir: Option<String>,
    /// Log at this level or filter
    #[arg(long, value_name = "LEVEL", global = true)]
    log: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start, keep alive, end and list sessions
    #[command(subcommand)]
    Session(Box<verbs::session::SessionCommand>),
    /// Read, list, write and take handoffs
    #[command(subcommand)]
    Handoff(verbs::handoff::HandoffCommand),
    /// Save, load, list, compare and explain the contexts of workflows
    #[command(subcommand)]
    Checkpoint(Box<verbs::checkpoint::CheckpointCommand>),
    /// Look after the keys that saved contexts are encrypted with
    #[command(subcommand)]
    Key(verbs::key::KeyCommand),
    /// Hand a task from role to role: what it is about, whose turn it is, what changed
    #[command(subcommand, after_help = verbs::task::WORKFLOW)]
    Task(verbs::task::TaskCommand),
    /// Take what an agent's hook sends on standard input
    Hook(verbs::hook::HookArgs),
    /// Turn what hooks captured into observations, in the background
    #[command(subcommand)]
    Worker(verbs::worker::WorkerCommand),
    /// Look after captured tool uses that wait, failed or are done
    #[command(subcommand)]
    Queue(verbs::queue::QueueCommand),
    /// List and show what tool uses taught
    #[command(subcommand)]
    Observation(verbs::observation::ObservationCommand),
    /// Sum up what a session came to, and close it
    Summarize(verbs::observation::SummarizeArgs),
    /// Make, list and revoke credentials of single agents
    #[command(subcommand)]
    Token(verbs::token::TokenCommand),
    /// Give up silent sessions, drop old logs, expired keys and unused checkpoints
    Cleanup,
    /// Write every record of the store to one verified file
    Backup(verbs::archive::BackupArgs),
    /// Replace the store with the content of a backup
    Restore(verbs::archive::RestoreArgs),
    /// Write every record of the store as JSON lines
    Export(verbs::archive::ExportArgs),
    /// Add records to the store
    #[command(subcommand)]
    Import(verbs::archive::ImportCommand),
    /// Serve the HTTP API
    Serve(verbs::serve::ServeArgs),
    /// Serve MCP on standard input and output
    Mcp,
    /// Play a whole relay on a throwaway store
    Demo,
    /// Say how things stand
    Status,
    /// Check the installation and say how to mend what is wrong
    Doctor(verbs::doctor::DoctorArgs),
    /// Show the configuration
    #[command(subcommand)]
    Config(verbs::config::ConfigCommand),
    /// Print a completion script for a shell
    Completions(verbs::completions::CompletionsArgs),
}

/// Runs the process.
pub(crate) fn run() -> Exit {
    // What is not text is left to the parser, which says so.
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map_while(|word| word.into_string().ok()).collect();
    if arguments.len() + 1 == std::env::args_os().len()
        && let Some(quick) = QuickArgs::read(arguments.iter().cloned())
    {
        return run_hook(quick, None);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // An agent must not be failed by its hook, whatever is wrong.
        Err(error) if is_hook_call() && error.exit_code() != 0 => {
            let message = error.render().to_string();
            if let Some(salvaged) = QuickArgs::salvage(arguments.into_iter()) {
                let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
                return run_hook(salvaged, Some(first.to_owned()));
            }
            verbs::hook::leave_word(&Sources::from_process(Vec::new()), "hook", message.trim());
            return Exit::Ok;
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return usage(&short_help(error)),
        Err(error) => return usage(&error),
    };
    if let Command::Hook(args) = &cli.command {
        verbs::hook::run(args, &Sources::from_process(flags(&cli)), None);
        return Exit::Ok;
    }
    finish(cli.global.format, dispatch(cli))
}

/// Renders help again without the global options, which `baton --help` lists.
fn short_help(help: clap::Error) -> clap::Error {
    let mut command = Cli::command();
    // Global options become arguments of every verb here.
    command.build();
    let command = command.mut_subcommands(hide_global_options);
    command.try_get_matches_from(std::env::args_os()).err().unwrap_or(help)
}

fn hide_global_options(command: clap::Command) -> clap::Command {
    let hide = |argument: clap::Arg| if argument.is_global_set() { argument.hide(true) } else { argument };
    let command = command.mut_args(hide).mut_subcommands(hide_global_options);
    if command.get_after_help().is_some() {
        return command;
    }
    command.after_help("Global options: see baton --help")
}

/// Runs a hook whose arguments were read by hand; `wrong` tells what was wrong with them.
fn run_hook(quick: QuickArgs, wrong: Option<String>) -> Exit {
    let QuickArgs { hook, data_dir, server, log } = quick;
    let flags = [
        Flag::given("--server", "client.server", server),
        Flag::given("--data-dir", "data_dir", data_dir),
        Flag::given("--log", "log.level", log),
    ];
    verbs::hook::run(&hook, &Sources::from_process(flags.into_iter().flatten().collect()), wrong);
    Exit::Ok
}

fn dispatch(cli: Cli) -> Result<Answer, Failure> {
    if let Command::Completions(args) = &cli.command {
        return Ok(verbs::completions::run(args, Cli::command()));
    }
    let (config, warnings) = Config::load(&Sources::from_process(flags(&cli)))?;
    for warning in &warnings {
        warn(&warning.to_string());
    }
    logging::start(&config)?;
    match cli.command {
        Command::Session(command) => verbs::session::run(*command, &config, &Backend::open(&config)?),
        Command::Handoff(command) => verbs::handoff::run(&command, &config, &Backend::open(&config)?),
        Command::Checkpoint(command) => verbs::checkpoint::run(&command, &Backend::open_or_degrade(&config)?),
        Command::Key(command) => verbs::key::run(&command, &config),
        Command::Task(command) => verbs::task::run(command, &config),
        // Run before there is a configuration that could be wrong.
        Command::Hook(_) => Ok(Answer::silent()),
        Command::Worker(command) => verbs::worker::run(&command, &config),
        Command::Queue(command) => verbs::queue::run(&command, &Backend::open(&config)?),
        Command::Observation(command) => verbs::observation::run(&command, &Backend::open(&config)?),
        Command::Summarize(args) => verbs::observation::summarize(&args, &Backend::open(&config)?),
        Command::Token(command) => verbs::token::run(&command, &config),
        Command::Cleanup => verbs::cleanup::run(&config),
        Command::Backup(args) => verbs::archive::backup(&args, &config),
        Command::Restore(args) => verbs::archive::restore(&args, &config),
        Command::Export(args) => verbs::archive::export(&args, &config),
        Command::Import(command) => verbs::archive::import(&command, &config),
        Command::Serve(args) => verbs::serve::run(&args, &config),
        Command::Mcp => verbs::mcp::run(&config),
        Command::Demo => verbs::demo::run(),
        Command::Status => verbs::status::run(&config),
        Command::Doctor(args) => verbs::doctor::run(args, &config),
        Command::Config(command) => verbs::config::run(&command, &config),
        Command::Completions(args) => Ok(verbs::completions::run(&args, Cli::command())),
    }
}

/// The flags that set something, whichever verb they belong to.
fn flags(cli: &Cli) -> Vec<Flag> {
    let Global { server, data_dir, log, .. } = cli.global.clone();
    let listen = match &cli.command {
        Command::Serve(args) => args.listen.clone(),
        _ => None,
    };
    [
        Flag::given("--server", "client.server", server),
        Flag::given("--data-dir", "data_dir", data_dir),
        Flag::given("--log", "log.level", log),
        Flag::given("--listen", "server.listen", listen),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Help and version are answers; everything else that does not parse is a usage error, as JSON when that was asked for.
fn usage(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            print(&without_global_options(&error.render().to_string()));
            Exit::Ok
        }
        _ if asks_for_json() => {
            let message = error.render().to_string();
            let message = message.trim().strip_prefix("error: ").unwrap_or(message.trim());
            finish(Format::Json, Err(Failure::new(Exit::Usage, "usage", message).hint("baton --help")))
        }
        _ => {
            // Where standard error cannot be written to there is nobody to tell.
            let _ = error.print();
            Exit::Usage
        }
    }
}

/// Heading of the options that every verb takes.
const GLOBAL_HEADING: &str = "\nGlobal options:\n";

/// Removes the options that every verb takes from the help of a verb. The help of `baton` itself has them.
fn without_global_options(help: &str) -> String {
    let is_verb = help.lines().any(|line| {
        line.strip_prefix("Usage: baton ")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
    });
    let Some((before, section)) = help.split_once(GLOBAL_HEADING).filter(|_| is_verb) else {
        return help.to_owned();
    };
    // The section ends with the first line that is not indented.
    let end = section
        .match_indices('\n')
        .map(|(at, _)| at + 1)
        .find(|at| section.get(*at..).is_some_and(|rest| !rest.is_empty() && !rest.starts_with([' ', '\n'])));
    let after = end.and_then(|end| section.get(end..)).map(|rest| format!("\n{rest}")).unwrap_or_default();
    format!("{before}\nGlobal options: see baton --help\n{after}")
}

/// Whether an agent's hook called: a mistake on its command line must not fail the agent.
fn is_hook_call() -> bool {
    let read = Cli::command().ignore_errors(true).try_get_matches_from(std::env::args_os());
    read.is_ok_and(|read| read.subcommand_name() == Some("hook"))
}

fn asks_for_json() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    arguments.iter().any(|argument| argument == "--format=json")
        || arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
}
