//! The command line: its arguments, and the dispatch to the verbs.

use std::ffi::OsString;
use std::mem::ManuallyDrop;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::VERSION;
use crate::config::{Config, Flag, Sources};
use crate::exit::{self, Exit};
use crate::output::{Answer, Failure, Format, finish, print, warn};
use crate::verbs;
use crate::verbs::hook::QuickArgs;
use crate::{backend::Backend, logging, progress, terminal};

const EXAMPLES: &str = "\
Examples:
  $ baton setup claude-code --dry-run      # show how an agent would be connected
  $ baton context                          # what the next chat in this checkout receives
  $ baton search why does the lease expire twice
  $ baton session overview                 # what all agents do now";

/// Keep the context of coding agents across chats, agents, crashes and machines
#[derive(Debug, Parser)]
#[command(name = "baton", version = VERSION, after_help = help_end(), max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Returns the end of `baton --help`.
fn help_end() -> String {
    format!("{EXAMPLES}\n\n{}", exit::HELP)
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Output format
    #[arg(long, value_enum, default_value_t, global = true)]
    format: Format,
    /// Server to use instead of the local store [default: client.server]
    #[arg(long, value_name = "URL", global = true)]
    server: Option<String>,
    /// Data folder [default: data_dir]
    #[arg(long, value_name = "FOLDER", global = true)]
    data_dir: Option<String>,
    /// Print exact times in UTC instead of relative ones, also on a terminal
    #[arg(long, global = true)]
    utc: bool,
    /// Log level, or a filter such as warn,baton_store=debug [default: log.level]
    #[arg(long, value_name = "LEVEL", global = true)]
    log: Option<String>,
}

// `defer` builds the arguments only of the verb that is used. A doc comment of a struct of arguments would then replace
// the help of its verb.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Start, update, end and list sessions
    #[command(subcommand, after_help = verbs::session::EXAMPLES)]
    Session(Box<verbs::session::SessionCommand>),
    /// Create, read, list and acknowledge handoffs
    #[command(subcommand, after_help = verbs::handoff::EXAMPLES)]
    Handoff(verbs::handoff::HandoffCommand),
    /// Save, load, list, compare and explain checkpoints of workflows
    #[command(subcommand, after_help = verbs::checkpoint::EXAMPLES)]
    Checkpoint(Box<verbs::checkpoint::CheckpointCommand>),
    /// Show and rotate the keys that encrypt checkpoints
    #[command(subcommand, after_help = "Example:\n  $ baton key status")]
    Key(verbs::key::KeyCommand),
    /// Pass a task from role to role in one checkout and detect unexpected changes
    #[command(subcommand, after_help = verbs::task::WORKFLOW)]
    Task(verbs::task::TaskCommand),
    /// Record a hook event of an agent, read as JSON from standard input
    #[command(after_help = verbs::hook::EXAMPLES)]
    Hook(verbs::hook::HookArgs),
    /// Stop hooks from recording, or let them record again
    #[command(after_help = verbs::pause::EXAMPLES)]
    Pause(verbs::pause::PauseArgs),
    /// Run the background worker that creates observations
    #[command(subcommand, after_help = verbs::worker::EXAMPLES)]
    Worker(verbs::worker::WorkerCommand),
    /// Inspect and manage the capture queue
    #[command(subcommand, after_help = verbs::queue::EXAMPLES)]
    Queue(verbs::queue::QueueCommand),
    /// List or follow the request log
    #[command(after_help = "Example:\n  $ baton requests --follow")]
    Requests(verbs::requests::RequestsArgs),
    /// Search everything recorded in earlier sessions
    #[command(after_help = verbs::recall::EXAMPLES)]
    Search(verbs::recall::SearchArgs),
    /// List the items around an item, or between two items, in chronological order
    #[command(after_help = "Example:\n  $ baton timeline obs_01M7H3Y790KKJH7PNR0DNVSC3B --limit 5")]
    Timeline(verbs::recall::TimelineArgs),
    /// Show full items by id
    #[command(after_help = "Example:\n  $ baton get obs_01M7H3Y790KKJH7PNR0DNVSC3B turn_42")]
    Get(verbs::recall::GetArgs),
    /// Show which sessions worked on a file, notes about it, and whether it changed since
    #[command(after_help = "Example:\n  $ baton file src/worker.rs")]
    File(verbs::recall::FileArgs),
    /// Show earlier runs of a command and their results
    #[command(after_help = "Example:\n  $ baton how cargo test")]
    How(verbs::recall::HowArgs),
    /// Correct memory: reject, supersede, pin or forget items
    #[command(subcommand, after_help = verbs::memory::EXAMPLES)]
    Memory(verbs::memory::MemoryCommand),
    /// List and show observations
    #[command(subcommand, after_help = verbs::observation::EXAMPLES)]
    Observation(verbs::observation::ObservationCommand),
    /// Record a decision, rejected approach, gotcha, todo or fact; list and correct notes
    #[command(after_help = verbs::note::NOTE_EXAMPLES)]
    Note(verbs::note::NoteArgs),
    /// List and show the turns of a session: requests and closing messages
    #[command(
        subcommand,
        after_help = "Example:\n  $ baton turn list --limit 5   # of the newest active session of this client"
    )]
    Turn(verbs::turn::TurnCommand),
    /// Show what a new chat should know about a repository, within a token budget
    #[command(after_help = verbs::context::EXAMPLES)]
    Context(verbs::context::ContextArgs),
    /// Start another agent in this checkout with the work of the current one
    #[command(after_help = verbs::relay::EXAMPLES)]
    Relay(verbs::relay::RelayArgs),
    /// Summarize a session and end it
    #[command(after_help = "Example:\n  $ baton summarize sess_01M7H6D3AHF4DP3YJEERGQ2KGT")]
    Summarize(verbs::observation::SummarizeArgs),
    /// Create, list and revoke access tokens
    #[command(subcommand, after_help = verbs::token::EXAMPLES)]
    Token(verbs::token::TokenCommand),
    /// Abandon stale sessions and delete expired records and unused checkpoints
    #[command(after_help = "Example:\n  $ baton cleanup")]
    Cleanup,
    /// Write all records of the store to one verified file
    #[command(after_help = verbs::archive::BACKUP_EXAMPLES)]
    Backup(verbs::archive::BackupArgs),
    /// Replace the contents of the store with a backup or export
    #[command(after_help = verbs::archive::RESTORE_EXAMPLES)]
    Restore(verbs::archive::RestoreArgs),
    /// Write all records of the store as JSON lines
    #[command(
        after_help = "Examples:\n  $ baton export backup-folder\n  $ baton export - | BATON_DATABASE_URL=postgres://… baton import all -"
    )]
    Export(verbs::archive::ExportArgs),
    /// Import a backup, finished observations, or recorded chats of an agent
    #[command(subcommand, after_help = verbs::import::EXAMPLES)]
    Import(verbs::import::ImportCommand),
    /// Run the server: HTTP API, MCP over HTTP and background worker
    #[command(after_help = verbs::serve::EXAMPLES)]
    Serve(verbs::serve::ServeArgs),
    /// Open the dashboard in the browser, and start the server if necessary
    #[command(after_help = verbs::open::EXAMPLES)]
    Open(verbs::open::OpenArgs),
    /// Connect coding agents: write their hooks, MCP server and instructions
    #[command(after_help = verbs::setup::EXAMPLES)]
    Setup(verbs::setup::SetupArgs),
    /// Run the MCP server on standard input and output
    #[command(after_help = "Example:\n  $ baton mcp   # started by an MCP client; see baton setup")]
    Mcp(verbs::mcp::McpArgs),
    /// Run a demonstration on a temporary store and repository
    #[command(after_help = verbs::demo::EXAMPLES)]
    Demo(verbs::demo::DemoArgs),
    /// Show the store, the active sessions and the next useful command
    #[command(after_help = "Example:\n  $ baton status")]
    Status,
    /// Check the installation and print how to fix each problem
    #[command(after_help = "Examples:\n  $ baton doctor\n  $ baton doctor --deep")]
    Doctor(verbs::doctor::DoctorArgs),
    /// Show the configuration
    #[command(subcommand, after_help = "Example:\n  $ baton config show")]
    Config(verbs::config::ConfigCommand),
    /// Print a shell completion script
    #[command(after_help = verbs::completions::EXAMPLES)]
    Completions(verbs::completions::CompletionsArgs),
    /// Write the manual pages of all commands to a folder
    #[command(after_help = verbs::man::EXAMPLES)]
    Man(verbs::man::ManArgs),
}

/// Parses the command line and runs the verb.
pub(crate) fn run() -> Exit {
    // Arguments that are not UTF-8 are left to clap, which reports them.
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map_while(|word| word.into_string().ok()).collect();
    if arguments.len() + 1 == std::env::args_os().len()
        && let Some(quick) = QuickArgs::read(arguments.iter().cloned())
    {
        return run_hook(quick, None);
    }
    let cli = match parse() {
        Ok(cli) => cli,
        // A hook always exits with 0, so that an agent never fails because of its hook.
        Err(error) if is_hook_call() && error.exit_code() != 0 => {
            let message = error.render().to_string();
            if let Some(salvaged) = QuickArgs::salvage(arguments.into_iter()) {
                let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
                return run_hook(salvaged, Some(first.to_owned()));
            }
            let message = message.trim().trim_start_matches("error: ");
            verbs::hook::record_error(&Sources::from_process(Vec::new()), "hook", message);
            return Exit::Ok;
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return usage(&short_help(error)),
        Err(error) => return usage(&error),
    };
    if let Some(Command::Hook(args)) = &cli.command {
        verbs::hook::run(args, &Sources::from_process(flags(&cli)), None);
        return Exit::Ok;
    }
    terminal::start(cli.global.utc);
    if cli.global.format == Format::Json {
        progress::hide();
    }
    finish(cli.global.format, dispatch(cli).map_err(or_see_help))
}

/// Adds a hint to a failure about the arguments that has none: the help of the verb.
fn or_see_help(failure: Failure) -> Failure {
    if failure.hint.is_some() || !matches!(failure.exit, Exit::Usage | Exit::Validation) {
        return failure;
    }
    let mut command = "baton".to_owned();
    let matches = Cli::command().try_get_matches_from(std::env::args_os());
    let mut inner = matches.as_ref().ok();
    while let Some((verb, more)) = inner.and_then(clap::ArgMatches::subcommand) {
        command = format!("{command} {verb}");
        inner = Some(more);
    }
    failure.hint(format!("see {command} --help"))
}

/// Parses the arguments of the process.
fn parse() -> Result<Cli, clap::Error> {
    // The tree of verbs is not freed: that would add 8 % to the instructions of a heartbeat, just before the process ends.
    let mut command = ManuallyDrop::new(Cli::command());
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Renders help again without the global options, which `baton --help` lists.
fn short_help(help: clap::Error) -> clap::Error {
    documented_command().try_get_matches_from(std::env::args_os()).err().unwrap_or(help)
}

/// Returns the command line for help and manual pages, in which only `baton` itself lists the global options.
fn documented_command() -> clap::Command {
    let mut command = Cli::command();
    // `build` copies the global options to every verb.
    command.build();
    command.mut_subcommands(hide_global_options)
}

fn hide_global_options(command: clap::Command) -> clap::Command {
    let hide = |argument: clap::Arg| if argument.is_global_set() { argument.hide(true) } else { argument };
    let command = command.mut_args(hide).mut_subcommands(hide_global_options);
    let pointer = "Global options: see baton --help";
    let after_help = match command.get_after_help() {
        Some(own) => format!("{own}\n\n{pointer}"),
        None => pointer.to_owned(),
    };
    command.after_help(after_help)
}

/// Runs a hook whose arguments were parsed without clap; `wrong` is the error of the command line, if there was one.
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
    let flags = flags(&cli);
    // Without a verb, the state and the next command are shown.
    let command = cli.command.unwrap_or(Command::Status);
    // These need neither a configuration nor a store.
    match &command {
        Command::Completions(args) => return verbs::completions::run(args, Cli::command()),
        Command::Man(args) => return verbs::man::run(args, documented_command()),
        _ => {}
    }
    let (config, warnings) = Config::load(&Sources::from_process(flags))?;
    for warning in &warnings {
        warn(&warning.to_string());
    }
    logging::start(&config)?;
    match command {
        Command::Session(command) => verbs::session::run(*command, &config, &Backend::open(&config)?),
        Command::Handoff(command) => verbs::handoff::run(command, &config, &Backend::open(&config)?),
        Command::Checkpoint(command) => {
            verbs::checkpoint::run(*command, &config, &Backend::open_or_degrade(&config)?)
        }
        Command::Key(command) => verbs::key::run(&command, &config),
        Command::Task(command) => verbs::task::run(command, &config),
        // Handled before the configuration is loaded.
        Command::Hook(_) | Command::Completions(_) | Command::Man(_) => Ok(Answer::silent()),
        Command::Pause(args) => verbs::pause::run(&args, &config),
        Command::Worker(command) => verbs::worker::run(&command, &config),
        Command::Queue(command) => verbs::queue::run(command, &Backend::open(&config)?),
        Command::Requests(args) => verbs::requests::run(&args, cli.global.format, &Backend::open(&config)?),
        Command::Search(args) => verbs::recall::search(args, &Backend::open(&config)?),
        Command::Timeline(args) => verbs::recall::timeline(&args, &Backend::open(&config)?),
        Command::Get(args) => verbs::recall::get(&args, &Backend::open(&config)?),
        Command::File(args) => verbs::recall::file(args, &Backend::open(&config)?),
        Command::How(args) => verbs::recall::how(args, &Backend::open(&config)?),
        Command::Memory(command) => verbs::memory::run(&command, &Backend::open(&config)?),
        Command::Observation(command) => verbs::observation::run(&command, &Backend::open(&config)?),
        Command::Note(args) => verbs::note::run(args, &config, &Backend::open_or_degrade(&config)?),
        Command::Turn(command) => verbs::turn::run(command, &config, &Backend::open(&config)?),
        Command::Context(args) => verbs::context::run(args, &config, &Backend::open(&config)?),
        Command::Relay(args) => verbs::relay::run(&args, &config),
        Command::Summarize(args) => verbs::observation::summarize(&args, &Backend::open(&config)?),
        Command::Token(command) => verbs::token::run(command, &config),
        Command::Cleanup => verbs::cleanup::run(&config),
        Command::Backup(args) => verbs::archive::backup(&args, &config),
        Command::Restore(args) => verbs::archive::restore(&args, &config),
        Command::Export(args) => verbs::archive::export(&args, &config),
        Command::Import(command) => verbs::import::run(&command, &config),
        Command::Serve(args) => verbs::serve::run(&args, &config),
        Command::Open(args) => verbs::open::run(&args, &config),
        Command::Setup(args) => verbs::setup::run(&args, cli.global.format, &config),
        Command::Mcp(args) => verbs::mcp::run(&args, &config),
        Command::Demo(args) => verbs::demo::run(&args, cli.global.format),
        Command::Status => verbs::status::run(&config),
        Command::Doctor(args) => verbs::doctor::run(args, &config),
        Command::Config(command) => verbs::config::run(&command, &config),
    }
}

/// Flags that override a setting.
fn flags(cli: &Cli) -> Vec<Flag> {
    let Global { server, data_dir, log, .. } = cli.global.clone();
    let listen = match &cli.command {
        Some(Command::Serve(args)) => args.listen.clone(),
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

/// Prints help and version to standard output. Other parse errors are usage errors, printed as JSON with `--format json`.
fn usage(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            print(&error.render().to_string());
            Exit::Ok
        }
        _ if asks_for_json() => {
            let message = error.render().to_string();
            let message = message.trim().strip_prefix("error: ").unwrap_or(message.trim());
            finish(Format::Json, Err(Failure::usage(message).hint("run baton --help")))
        }
        _ => {
            // A failed write to standard error cannot be reported anywhere.
            let _ = error.print();
            Exit::Usage
        }
    }
}

/// Returns true for `baton hook`, even if the rest of the command line is invalid.
fn is_hook_call() -> bool {
    let read = Cli::command().ignore_errors(true).try_get_matches_from(std::env::args_os());
    read.is_ok_and(|read| read.subcommand_name() == Some("hook"))
}

fn asks_for_json() -> bool {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    arguments.iter().any(|argument| argument == "--format=json")
        || arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
