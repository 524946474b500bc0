//! `baton session …`

use baton_app::session::{
    ActiveDay, EndSession, EndSessionOutput, Heartbeat, ListSessions, SessionActivity, SessionHistory,
    SessionOverview, SessionOverviewOutput, SessionView, ShowSession, StartSession, StartSessionOutput,
    StartStatus, UpdateSession,
};
use baton_core::{Fault, HandoffFields, TrackFilter};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::backend::Backend;
use crate::checkout::repository_here;
use crate::config::Config;
use crate::live_session::{client_here, live_session, session_id};
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, at, before, list_items, page_text, when, wrap};
use crate::verbs::handoff_args::{HandoffArgs, object};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton session start --agent claude-1 --repo acme/webshop --branch feature/login
  $ baton session list --repo acme/webshop
  $ baton session history --status ended";

const START_EXAMPLES: &str = "\
Examples:
  $ baton session start --agent claude-1 --repo acme/webshop --branch feature/login
  $ baton session start --agent claude-1 --track 2 --issue 118   # in a checkout";

const END_EXAMPLES: &str = "\
Examples:
  $ baton session end sess_01M7H6D3AHF4DP3YJEERGQ2KGT --summary 'Login works' --next 'Add logout'
  $ baton session end sess_01M7H6D3AHF4DP3YJEERGQ2KGT --summary 'Tests fail' --status blocked \\
      --decision 'Cookies instead of tokens: the proxy drops headers' \\
      --blocker 'The staging database is down'
  $ baton session end sess_01M7H6D3AHF4DP3YJEERGQ2KGT   # without a handoff";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SessionCommand {
    /// Start or resume a session and print the latest handoff
    #[command(after_help = START_EXAMPLES)]
    Start(StartArgs),
    /// Send a heartbeat to keep a session active
    #[command(
        after_help = "Example:\n  $ baton session heartbeat   # newest active session of this client in the repository"
    )]
    Heartbeat(HeartbeatArgs),
    /// Update the branch, commit, issue, repository or metadata of a session
    #[command(after_help = "Example:\n  $ baton session update --branch feature/logout --issue 118")]
    Update(UpdateArgs),
    /// End a session, with a handoff if --summary is given
    #[command(after_help = END_EXAMPLES)]
    End(Box<EndArgs>),
    /// List active sessions
    #[command(after_help = "Example:\n  $ baton session list --repo acme/webshop")]
    List(ListArgs),
    /// List active and ended sessions, newest first
    #[command(after_help = "Example:\n  $ baton session history --repo acme/webshop --status ended")]
    History(HistoryArgs),
    /// Show active sessions, their last turns and what needs attention
    #[command(after_help = "Example:\n  $ baton session overview --venture acme")]
    Overview(OverviewArgs),
    /// Count the sessions and turns of each day
    #[command(after_help = "Example:\n  $ baton session activity --days 30")]
    Activity(ActivityArgs),
    /// Show a session, active or ended
    #[command(after_help = "Example:\n  $ baton session show sess_01M7H6D3AHF4DP3YJEERGQ2KGT")]
    Show(ShowArgs),
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct StartArgs {
    /// Agent that works in the session; ignored if a hook of this client already started one [default: session.agent, or the client that runs the command]
    #[arg(long)]
    agent: Option<String>,
    /// Repository [default: repository of the current checkout]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Venture of the session [default: session.venture]
    #[arg(long)]
    venture: Option<String>,
    /// Number of a parallel line of work in the same repository
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    track: Option<i64>,
    /// Issue number, for example 118
    #[arg(long = "issue", value_name = "NUMBER", allow_negative_numbers = true)]
    issue_number: Option<i64>,
    /// Git branch
    #[arg(long)]
    branch: Option<String>,
    /// Git commit
    #[arg(long = "commit", value_name = "SHA")]
    commit_sha: Option<String>,
    /// Client program that runs the agent, for example claude-code
    #[arg(long)]
    client: Option<String>,
    /// Version of the client program
    #[arg(long, value_name = "VERSION")]
    client_version: Option<String>,
    /// Chat id assigned by the client; two chats in one repository are two sessions
    #[arg(long, value_name = "ID")]
    client_session_id: Option<String>,
    /// Name of the machine
    #[arg(long)]
    host: Option<String>,
    /// Metadata of the session as a JSON object
    #[arg(long = "meta", value_name = "JSON")]
    #[serde(skip)]
    meta_text: Option<String>,
    #[arg(skip)]
    meta: Option<Map<String, Value>>,
    #[arg(skip)]
    checkout_repo: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

// Idempotency key of a request.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Execute the request at most once for this key
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl KeyArgs {
    pub(crate) fn get(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct HeartbeatArgs {
    /// Session id [default: newest active session of this client in the repository]
    session_id: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct UpdateArgs {
    /// Session id [default: newest active session of this client in the repository]
    session_id: Option<String>,
    /// New branch
    #[arg(long)]
    branch: Option<String>,
    /// New commit
    #[arg(long = "commit", value_name = "SHA")]
    commit_sha: Option<String>,
    /// New issue number
    #[arg(long = "issue", value_name = "NUMBER", allow_negative_numbers = true)]
    issue_number: Option<i64>,
    /// Corrected repository; the handoffs and observations of the session move with it
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// JSON merge patch for the metadata; null removes a key
    #[arg(long = "meta", value_name = "JSON")]
    #[serde(skip)]
    meta_text: Option<String>,
    #[arg(skip)]
    meta: Option<Map<String, Value>>,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ShowArgs {
    /// Session id [default: newest active session of this client in the repository]
    session_id: Option<String>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct EndArgs {
    /// Session id [default: newest active session of this client in the repository]
    session_id: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    handoff: HandoffArgs,
    /// Store the handoff but keep the session active
    #[arg(long = "keep-open")]
    keep_session_open: bool,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ListArgs {
    /// Filter by venture [default: session.venture, unless --repo or --agent is given]
    #[arg(long)]
    venture: Option<String>,
    /// Filter by repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Number of a track, or none for sessions without a track
    #[arg(long, value_name = "TRACK", allow_negative_numbers = true)]
    track: Option<TrackFilter>,
    /// Filter by agent
    #[arg(long)]
    agent: Option<String>,
    /// Maximum number of sessions, 1 to 200 [default: 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Continue after the previous page
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct HistoryArgs {
    /// Filter by venture [default: all]
    #[arg(long)]
    venture: Option<String>,
    /// Filter by repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Filter by agent
    #[arg(long)]
    agent: Option<String>,
    /// Filter by status: active, ended or abandoned
    #[arg(long)]
    status: Option<String>,
    /// Maximum number of sessions, 1 to 200 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Continue after the previous page
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ActivityArgs {
    /// Venture to count [default: all]
    #[arg(long)]
    venture: Option<String>,
    /// Number of days up to today (UTC), 1 to 1000 [default: 371]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    days: Option<i64>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct OverviewArgs {
    /// Venture to show [default: all]
    #[arg(long)]
    venture: Option<String>,
}

pub(crate) fn run(command: SessionCommand, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        SessionCommand::Start(args) => start(args, config, backend),
        SessionCommand::Heartbeat(mut args) => {
            args.session_id = Some(session_id(args.session_id, config, backend)?);
            backend.answer::<Heartbeat>(&args, args.key.get(), |output| {
                let next = before(output.next_heartbeat_at);
                format!("recorded a heartbeat of {}; next heartbeat {next}", output.session_id)
            })
        }
        SessionCommand::Update(args) => update(args, config, backend),
        SessionCommand::End(args) => end(*args, config, backend),
        SessionCommand::List(args) => list(&args, config, backend),
        SessionCommand::History(args) => history(&args, backend),
        SessionCommand::Overview(args) => backend.answer::<SessionOverview>(&args, None, describe_overview),
        SessionCommand::Activity(args) => backend.answer::<SessionActivity>(&args, None, |output| {
            let describe = |day: &ActiveDay| {
                format!("{}  {:>6} sessions  {:>6} turns", day.day, day.sessions, day.turns)
            };
            let days: Vec<String> = output.days.iter().map(describe).collect();
            if days.is_empty() { "no sessions".to_owned() } else { days.join("\n") }
        }),
        SessionCommand::Show(args) => show(args, config, backend),
    }
}

fn start(mut args: StartArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    let (repo, here) = repository_or_here(args.repo.as_deref(), "start a session")?;
    // The hooks of the agent that runs this command may have opened its session already.
    let live = match (client_here(), &args.client_session_id) {
        (Some(_), None) => live_session(&repo, args.venture.as_deref(), config, backend)?,
        _ => None,
    };
    let configured = config.agent.as_ref().map(|agent| agent.as_str());
    if let Some(live) = live {
        args.agent = Some(live.agent.to_string());
        args.track = live.track;
        args.client_session_id = live.client_session_id;
    }
    args.agent = args.agent.or_else(|| configured.or(client_here()).map(str::to_owned));
    if args.agent.is_none() {
        return Err(Failure::usage("cannot start a session: no agent given")
            .hint("add --agent NAME, or set session.agent in the configuration (BATON_AGENT)"));
    }
    args.venture = config.chosen_venture(args.venture.as_deref());
    args.client = args.client.or_else(|| client_here().map(str::to_owned));
    args.meta = args.meta_text.as_deref().map(|text| object("--meta", text)).transpose()?;
    (args.repo, args.checkout_repo) = (Some(repo), here);
    backend.answer::<StartSession>(&args, args.key.get(), describe_start)
}

/// Returns the repository to use (`given`, otherwise that of the current checkout), and the repository of the current
/// checkout, if there is one.
pub(crate) fn repository_or_here(
    given: Option<&str>,
    action: &str,
) -> Result<(String, Option<String>), Failure> {
    let here = match (given, repository_here()) {
        (_, Ok(here)) => here.map(|repo| repo.as_str().to_owned()),
        (Some(_), Err(_)) => None,
        (None, Err(fault)) => return Err(with_repo_hint(fault).into()),
    };
    let repo = given.map(str::to_owned).or_else(|| here.clone()).ok_or_else(|| {
        let message =
            format!("cannot {action}: no repository given, and the working folder is not in a checkout");
        Failure::usage(message).hint("add --repo OWNER/NAME, or run the command in a checkout")
    })?;
    Ok((repo, here))
}

/// Adds `--repo` to the hint: with it, git is not needed.
fn with_repo_hint(fault: Fault) -> Fault {
    let hint = match &fault.hint {
        Some(hint) => format!("add --repo OWNER/NAME; or {hint}"),
        None => "add --repo OWNER/NAME".to_owned(),
    };
    fault.hint(hint)
}

fn labelled(fields: &HandoffFields) -> impl Iterator<Item = String> {
    fields.labelled().into_iter().map(|(label, text)| format!("  {label}: {text}"))
}

fn describe_start(output: &StartSessionOutput) -> String {
    let verb = match output.status {
        StartStatus::Created => "started",
        StartStatus::Resumed => "resumed",
    };
    let mut lines = vec![format!("{verb} {}", output.session_id)];
    match &output.last_handoff {
        None => lines.push("no handoff yet".into()),
        Some(handoff) => {
            let label =
                handoff.status_label.as_deref().map(|label| format!(" [{label}]")).unwrap_or_default();
            let written = at(handoff.created_at);
            lines.push(format!("{}, by {} {written}{label}:", handoff.id, handoff.from_agent));
            lines.extend(handoff.summary.lines().map(|line| format!("  {line}")));
            lines.extend(labelled(&handoff.fields));
            if let Some(summary) = &handoff.automatic_summary {
                lines.push(format!("  captured by baton: {summary}"));
            }
        }
    }
    if let Some(handoff) = &output.agent_handoff {
        lines.push(format!("{}, the latest written by an agent ({}):", handoff.id, handoff.from_agent));
        lines.extend(handoff.summary.lines().map(|line| format!("  {line}")));
        lines.extend(labelled(&handoff.fields));
    }
    for other in &output.active_sessions {
        let branch = other.branch.as_deref().map(|branch| format!(" on {branch}")).unwrap_or_default();
        let heartbeat = when(other.last_heartbeat_at);
        let line = format!("other active session: {}{branch}, last heartbeat {heartbeat}", other.agent);
        lines.push(wrap(&line, 4));
    }
    lines.push(format!("next heartbeat {}", before(output.next_heartbeat_at)));
    lines.extend(output.warning.iter().map(|warning| format!("warning: {warning}")));
    lines.join("\n")
}

fn update(mut args: UpdateArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    args.session_id = Some(session_id(args.session_id, config, backend)?);
    args.meta = args.meta_text.as_deref().map(|text| object("--meta", text)).transpose()?;
    backend.answer::<UpdateSession>(&args, args.key.get(), |output| {
        format!("updated {} {}", output.session_id, at(output.updated_at))
    })
}

fn show(mut args: ShowArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    args.session_id = Some(session_id(args.session_id, config, backend)?);
    backend.answer::<ShowSession>(&args, None, |output| {
        let session = &output.session;
        let mut lines =
            vec![wrap(&describe_session(session), 4), format!("status {}", session.status.as_str())];
        if let (Some(ended_at), Some(reason)) = (session.ended_at, session.end_reason) {
            lines.push(format!("ended {} ({})", at(ended_at), reason.as_str()));
        }
        if let Some(handoff) = &output.handoff {
            lines.push(format!("handoff {}: {}", handoff.id, handoff.summary));
        }
        if let Some(summary) = &output.summary {
            lines.push(format!("summary: {}", summary.summary));
        }
        lines.join("\n")
    })
}

fn end(mut args: EndArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    args.session_id = Some(session_id(args.session_id, config, backend)?);
    args.handoff.read_if_given()?;
    backend.answer::<EndSession>(&args, args.key.get(), describe_end)
}

fn describe_end(output: &EndSessionOutput) -> String {
    let id = output.session_id;
    match (output.handoff_id, output.ended_at) {
        (Some(handoff), None) => format!("stored handoff {handoff}; {id} stays active"),
        (Some(handoff), Some(_)) => {
            let late = if output.late { " (late: the session had already ended)" } else { "" };
            format!("ended {id} with handoff {handoff}{late}")
        }
        (None, _) => format!("ended {id} without a handoff"),
    }
}

fn list(args: &ListArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    let is_filtered = args.venture.is_some() || args.repo.is_some() || args.agent.is_some();
    let params = if is_filtered { json!(args) } else { config.with_venture(None, args) };
    backend.answer::<ListSessions>(&params, None, |output| {
        let columns: [Column<SessionView>; _] = [
            (Whole("SESSION"), |session| session.id.to_string()),
            (Text("AGENT"), |session| session.agent.to_string()),
            (Text("REPOSITORY"), |session| session.repo.to_string()),
            (Text("BRANCH"), |session| session.branch.clone().unwrap_or_default()),
            (Whole("HEARTBEAT"), |session| when(session.last_heartbeat_at)),
        ];
        let lines = list_items(&output.sessions, "no active sessions", describe_session, columns);
        page_text(lines, "--cursor", output.pagination.next_cursor.as_ref())
    })
}

fn describe_session(session: &SessionView) -> String {
    let track = session.track.map(|track| format!(" track {track}")).unwrap_or_default();
    let branch = session.branch.as_deref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    format!(
        "{}  {}  {} (venture {}){track}{branch}  last heartbeat {}",
        session.id,
        session.agent,
        session.repo,
        session.venture,
        when(session.last_heartbeat_at)
    )
}

fn history(args: &HistoryArgs, backend: &Backend) -> Result<Answer, Failure> {
    backend.answer::<SessionHistory>(args, None, |output| {
        let describe =
            |session: &SessionView| format!("{}  {}", describe_session(session), session.status.as_str());
        let columns: [Column<SessionView>; _] = [
            (Whole("SESSION"), |session| session.id.to_string()),
            (Text("AGENT"), |session| session.agent.to_string()),
            (Text("REPOSITORY"), |session| session.repo.to_string()),
            (Whole("STATUS"), |session| session.status.as_str().to_owned()),
            (Whole("STARTED"), |session| when(session.created_at)),
        ];
        let lines = list_items(&output.sessions, "no sessions", describe, columns);
        page_text(lines, "--cursor", output.pagination.next_cursor.as_ref())
    })
}

fn describe_overview(output: &SessionOverviewOutput) -> String {
    let mut lines: Vec<String> =
        output.attention.iter().map(|problem| format!("attention: {}", problem.text)).collect();
    for session in &output.sessions {
        let branch = session.branch.as_deref().map(|branch| format!(" on {branch}")).unwrap_or_default();
        let stale = if session.is_stale { ", stale" } else { "" };
        lines.push(format!("{}  {} in {}{branch}{stale}", session.id, session.agent, session.repo));
        if let Some(turn) = &session.last_turn {
            let said = turn.closing.as_deref().unwrap_or(&turn.prompt);
            lines.push(format!("  {}", baton_core::one_line(said, 120)));
        }
    }
    for shared in &output.shared_files {
        lines.push(format!("changed by {} sessions: {}", shared.session_ids.len(), shared.file));
    }
    if output.has_more {
        lines.push("more: baton session history --status active".to_owned());
    }
    if lines.is_empty() { "no active sessions".to_owned() } else { wrap(&lines.join("\n"), 4) }
}
