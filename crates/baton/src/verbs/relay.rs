//! `baton relay`: starts another agent in the current checkout with the work of the current one.
//!
//! The work is recorded as a handoff. The new agent finds its id in [`HANDOFF_VARIABLE`], so that its hook can link its
//! session to the handoff.

use std::io::IsTerminal;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_app::bundle::ReadContext;
use baton_app::handoff::{CreateHandoff, HandoffView, LatestHandoff, ShowHandoff, WithdrawHandoff};
use baton_app::observation::SummarizeSession;
use baton_app::session::{SessionView, session_of_client};
use baton_core::{HandoffAuthor, Repo, shorten_with_notice, visible};
use baton_git::{RepoPath, Repository};
use baton_observation::client_name;
use baton_task::OUTPUT_FOLDER;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value, json};

use crate::backend::Backend;
use crate::checkout::{fault, find_root, git, repository_at};
use crate::config::Config;
use crate::exit::Exit;
use crate::live_session::{client_here, client_variables, live_sessions};
use crate::output::{Answer, Failure, print_message, warn};
use crate::setup::{self, Agent, StartCommand};
use crate::verbs::context::ContextArgs;
use crate::verbs::handoff::FilterArgs;
use crate::verbs::task::context_text;

/// Environment variable with the id of the handoff that an agent continues.
pub(crate) const HANDOFF_VARIABLE: &str = "BATON_HANDOFF";

/// Maximum length of the context of a task in a prompt, in characters.
const MAX_TASK_CHARS: usize = 12_000;
/// Maximum number of uncommitted files in a prompt and in a handoff.
const MAX_FILES: usize = 100;
/// Maximum length of the list of uncommitted files in a prompt, in characters.
const MAX_FILES_CHARS: usize = 6_000;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton relay --to codex
  $ baton relay --to claude-code --task TASK-0824
  $ baton relay --to gemini --print";

#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// Agent to start
    #[arg(long, value_name = "AGENT", value_parser = PossibleValuesParser::new(startable().map(|(agent, _)| agent.id)))]
    to: String,
    /// Task whose context the agent receives, for example TASK-0824
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Print the prompt; start nothing and record nothing
    #[arg(long)]
    print: bool,
}

/// Returns the agents that are started by a command.
fn startable() -> impl Iterator<Item = (&'static Agent, &'static StartCommand)> {
    setup::all().iter().filter_map(|agent| Some((agent, agent.start.as_ref()?)))
}

pub(crate) fn run(args: &RelayArgs, config: &Config) -> Result<Answer, Failure> {
    let (agent, start) = startable()
        .find(|(agent, _)| agent.id == args.to)
        .ok_or_else(|| Failure::usage(format!("cannot relay to {}: it is not a known agent", args.to)))?;
    let checkout = Checkout::here()?;
    let task = match &args.task {
        Some(task) => Some((task.as_str(), context_text(task, config)?)),
        None => None,
    };
    if args.print {
        let relay = Relay { to: agent, checkout: &checkout, config, backend: Backend::open(config)? };
        let work = Work::read(&relay)?;
        let prompt = work.prompt(&checkout, task.as_ref());
        return Answer::new(&json!({ "to": agent.id, "prompt": prompt }), prompt);
    }
    let program = find_program(agent, start)?;
    let relay = Relay { to: agent, checkout: &checkout, config, backend: Backend::open(config)? };
    let work = Work::record(&relay, args.task.as_deref())?;
    // The process is replaced, so the store is closed before.
    drop(relay);
    let prompt = work.prompt(&checkout, task.as_ref());
    let from = work.from.as_deref().unwrap_or("the previous agent");
    print_message(&format!("relaying the work of {from} to {}", agent.name));
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut command = Command::new(&program);
    command.args(if is_terminal { start.in_terminal } else { start.without_terminal }).arg(prompt);
    // The new agent is not a command of the agent in whose shell this one may run.
    for name in client_variables() {
        command.env_remove(name);
    }
    if let Some(handoff) = &work.handoff {
        command.env(HANDOFF_VARIABLE, handoff.id.to_string());
    }
    let error = command.current_dir(&checkout.root).exec();
    if let Err(failure) = work.undo(config) {
        warn(&format!("cannot withdraw the handoff: {}", failure.message));
    }
    Err(Failure::internal(format!("cannot start {}: {error}", program.display()))
        .hint("start the agent yourself and paste the prompt: add --print"))
}

fn find_program(agent: &Agent, start: &StartCommand) -> Result<PathBuf, Failure> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(start.program)).find(is_program);
    found.ok_or_else(|| {
        let message = format!("cannot start {}: {} is not on the PATH", agent.name, start.program);
        Failure::new(Exit::NotFound, "agent_not_installed", message).hint(format!(
            "install it (npm install -g {}), or add --print and paste the prompt",
            start.package
        ))
    })
}

/// The checkout in which the work goes on.
struct Checkout {
    root: PathBuf,
    repo: Repo,
    branch: Option<String>,
    commit: Option<String>,
    uncommitted: Vec<String>,
}

impl Checkout {
    fn here() -> Result<Self, Failure> {
        let outside = || {
            let message = "cannot relay: the working folder is not in a checkout of a git repository";
            Failure::usage(message).hint("run the command in the checkout with the work")
        };
        let root = std::env::current_dir().ok().as_deref().and_then(find_root).ok_or_else(outside)?;
        let repo = repository_at(&root)?.ok_or_else(outside)?;
        let head_info = Repository::read_head_info(&root);
        let (branch, commit) =
            head_info.map_or((None, None), |head_info| (head_info.branch, head_info.commit));
        Ok(Self { uncommitted: uncommitted(&root)?, root, repo, branch, commit })
    }
}

/// Returns the files that differ from the commit, without Baton's own files.
fn uncommitted(root: &Path) -> Result<Vec<String>, Failure> {
    let repository = Repository::discover(&git()?, root).map_err(fault)?;
    let status = repository.status(&[RepoPath::new(OUTPUT_FOLDER)]).map_err(fault)?;
    Ok(status.entries.iter().map(|entry| visible(&entry.path().to_string()).into_owned()).collect())
}

struct Relay<'a> {
    to: &'a Agent,
    checkout: &'a Checkout,
    config: &'a Config,
    backend: Backend,
}

/// The work that is passed on.
struct Work {
    /// Agent that did the work.
    from: Option<String>,
    handoff: Option<HandoffView>,
    /// True if the handoff was created by this command.
    is_new: bool,
    /// What Baton has recorded about the repository.
    context: String,
}

impl Work {
    /// Reads the work without recording anything.
    fn read(relay: &Relay<'_>) -> Result<Self, Failure> {
        let sender = relay.sending_session()?;
        let handoff = relay.latest_handoff()?;
        let from = match &sender {
            Some(sender) => Some(sender.agent.clone()),
            None => handoff.map(|handoff| handoff.from_agent),
        };
        let context = relay.context(sender.as_ref())?;
        Self { from, handoff: None, is_new: false, context }.require_content(relay.checkout)
    }

    /// Records the work of the live session as a handoff. Without a live session, the latest handoff is used,
    /// which the previous session left when it ended.
    fn record(relay: &Relay<'_>, task: Option<&str>) -> Result<Self, Failure> {
        let sender = relay.sending_session()?;
        let latest = relay.latest_handoff()?;
        let is_new = sender.is_some();
        let handoff = match &sender {
            Some(sender) => Some(relay.create_handoff(sender, latest.as_ref(), task)?),
            None => latest.filter(|handoff| handoff.acknowledged_at.is_none()),
        };
        let from = handoff.as_ref().map(|handoff| handoff.from_agent.clone());
        let context = relay.context(sender.as_ref())?;
        Self { from, handoff, is_new, context }.require_content(relay.checkout)
    }

    fn require_content(self, checkout: &Checkout) -> Result<Self, Failure> {
        if self.context.is_empty() && self.handoff.is_none() {
            let message = format!("cannot relay: nothing is recorded for {}", checkout.repo);
            return Err(Failure::new(Exit::NotFound, "not_found", message).hint(
                "start the other agent directly; baton setup connects agents so that their work is recorded",
            ));
        }
        Ok(self)
    }

    /// Returns the prompt for the new agent.
    fn prompt(&self, checkout: &Checkout, task: Option<&(&str, String)>) -> String {
        let from = self.from.as_deref().unwrap_or("another agent");
        let revision = match (&checkout.branch, &checkout.commit) {
            (Some(branch), Some(commit)) => {
                format!(", branch {branch} at {}", commit.get(..12).unwrap_or(commit))
            }
            (Some(branch), None) => format!(", branch {branch}"),
            _ => String::new(),
        };
        let mut parts = vec![
            format!(
                "Continue the work of {from} in {}{revision}. You work in the same checkout, so its changes are already there.",
                checkout.repo
            ),
            self.context.clone(),
        ];
        if let Some((task, context)) = task {
            let context =
                shorten_with_notice(context, MAX_TASK_CHARS, &format!("baton task get-context {task}"))
                    .into_owned();
            parts.push(format!("Context of {task}:\n{context}"));
        }
        parts.push(uncommitted_text(&checkout.uncommitted));
        if let Some(handoff) = &self.handoff {
            let mut text = format!("Full handoff: baton handoff show {}", handoff.id);
            if let Some(checkpoint) = handoff.checkpoint_id {
                text.push_str(&format!("\nSaved context: baton checkpoint load {checkpoint}"));
            }
            parts.push(text);
        }
        parts.push("Check the state of the working tree first, then go on with the next action.".to_owned());
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }

    /// Withdraws the handoff, because the agent could not be started.
    fn undo(&self, config: &Config) -> Result<(), Failure> {
        let Some(handoff) = self.handoff.as_ref().filter(|_| self.is_new) else { return Ok(()) };
        let params = WithdrawHandoff { schema_version: None, handoff_id: handoff.id };
        Backend::open(config)?.call::<WithdrawHandoff>(&params, None)?;
        Ok(())
    }
}

fn uncommitted_text(files: &[String]) -> String {
    if files.is_empty() {
        return "All changes are committed.".to_owned();
    }
    let mut room = MAX_FILES_CHARS;
    let fits = |file: &&String| {
        room = room.saturating_sub(file.chars().count());
        room > 0
    };
    let listed: Vec<String> =
        files.iter().take(MAX_FILES).take_while(fits).map(|file| format!("- {file}")).collect();
    let more = match files.len() - listed.len() {
        0 => String::new(),
        more => format!("\n- {more} more: git status"),
    };
    format!("Uncommitted changes (git status, git diff):\n{}{more}", listed.join("\n"))
}

impl Relay<'_> {
    /// Finds the live session whose work is handed over: the session of the agent that runs this command,
    /// otherwise the newest session, preferably of another program than the one to start.
    fn sending_session(&self) -> Result<Option<SessionView>, Failure> {
        let repo = Some(self.checkout.repo.as_str());
        let found = live_sessions(repo, None, self.config, &self.backend)?;
        let is_other =
            |session: &&SessionView| session.client.as_deref().map(client_name) != Some(self.to.id);
        let others: Vec<SessionView> = found.sessions.iter().filter(is_other).cloned().collect();
        let sender = session_of_client(&others, client_here())
            .or_else(|| session_of_client(&found.sessions, client_here()));
        Ok(sender.cloned())
    }

    fn latest_handoff(&self) -> Result<Option<HandoffView>, Failure> {
        let repo = Some(self.checkout.repo.to_string());
        let params = FilterArgs { repo, ..FilterArgs::default() }.params(self.config);
        Ok(self.backend.call::<LatestHandoff>(&params, None)?.handoff)
    }

    /// Creates the handoff of a relay. It keeps what the agent wrote in its last handoff of the same session.
    fn create_handoff(
        &self,
        sender: &SessionView,
        latest: Option<&HandoffView>,
        task: Option<&str>,
    ) -> Result<HandoffView, Failure> {
        let own = latest
            .filter(|latest| latest.session_id == sender.id && latest.written_by == HandoffAuthor::Agent);
        let mut document: Map<String, Value> = own.map(|own| own.payload.clone()).unwrap_or_default();
        let summary = match own {
            Some(own) => own.summary.clone(),
            None => {
                let params = SummarizeSession { session_id: sender.id, close: Some(false) };
                self.backend.call::<SummarizeSession>(&params, None)?.summary
            }
        };
        let mut references = match document.remove("references") {
            Some(Value::Object(references)) => references,
            _ => Map::new(),
        };
        let files: Vec<&String> = self.checkout.uncommitted.iter().take(MAX_FILES).collect();
        for (name, value) in [
            ("task", json!(task)),
            ("branch", json!(self.checkout.branch)),
            ("commit", json!(self.checkout.commit)),
            ("uncommitted_files", json!(files)),
        ] {
            if !value.is_null() {
                references.insert(name.into(), value);
            }
        }
        document.insert("references".into(), references.into());
        document.insert("summary".into(), summary.into());
        document.insert("status_label".into(), "relayed".into());
        document.insert("to_agent".into(), self.to.id.into());
        let params = CreateHandoff {
            schema_version: None,
            session_id: sender.id,
            handoff: document,
            redact_secrets: Some(true),
        };
        let created = self.backend.call::<CreateHandoff>(&params, None)?;
        let params = ShowHandoff { handoff_id: created.handoff_id };
        Ok(self.backend.call::<ShowHandoff>(&params, None)?.handoff)
    }

    /// Reads the context for the new agent, without the sending session as another agent. The work of that session is
    /// included if it is not recorded as a handoff yet.
    fn context(&self, sender: Option<&SessionView>) -> Result<String, Failure> {
        let params = ContextArgs {
            repo: Some(self.checkout.repo.to_string()),
            venture: self.config.chosen_venture(None),
            branch: self.checkout.branch.clone(),
            client: Some(self.to.id.to_owned()),
            unrecorded_session: sender.map(|session| session.id),
            ..ContextArgs::default()
        };
        Ok(self.backend.call::<ReadContext>(&params, None)?.context)
    }
}
