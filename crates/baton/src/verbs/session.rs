//! `baton session …`

use baton_app::session::{
    EndSession, Heartbeat, ListSessions, SessionView, ShowSession, StartSession, StartSessionOutput,
    StartStatus, UpdateSession,
};
use baton_core::Fault;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::backend::Backend;
use crate::checkout::repository_here;
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Start or resume a session, and see what the last agent left
    Start(StartArgs),
    /// Keep a session alive
    Heartbeat(HeartbeatArgs),
    /// Write down where a session stands
    Update(UpdateArgs),
    /// End a session with a handoff
    End(EndArgs),
    /// List the sessions that are alive
    List(ListArgs),
    /// Show one session, alive or not
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Who works; `session.agent` of the configuration when left out
    #[arg(long)]
    agent: Option<String>,
    /// The repository, owner/name; that of the checkout around the working folder when left out
    #[arg(long)]
    repo: Option<String>,
    /// The undertaking; `session.venture` of the configuration when left out
    #[arg(long)]
    venture: Option<String>,
    /// The lane of parallel work
    #[arg(long, allow_negative_numbers = true)]
    track: Option<i64>,
    /// The issue that is worked on
    #[arg(long = "issue", value_name = "NUMBER", allow_negative_numbers = true)]
    issue_number: Option<i64>,
    /// The branch
    #[arg(long)]
    branch: Option<String>,
    /// The commit
    #[arg(long = "commit", value_name = "SHA")]
    commit_sha: Option<String>,
    /// The program that the agent runs in
    #[arg(long)]
    client: Option<String>,
    /// Its version
    #[arg(long)]
    client_version: Option<String>,
    /// The id by which that program knows the chat
    #[arg(long)]
    client_session_id: Option<String>,
    /// The machine
    #[arg(long)]
    host: Option<String>,
    /// Whatever else to keep with the session, as a JSON object
    #[arg(long, value_name = "JSON")]
    meta: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
}

/// The client's own name for a request.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Your own name for this request: repeated with the same one, it is done once
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl KeyArgs {
    pub(crate) fn get(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }
}

#[derive(Debug, Args)]
pub(crate) struct HeartbeatArgs {
    /// The session
    session_id: String,
    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// The session
    session_id: String,
    /// The branch
    #[arg(long)]
    branch: Option<String>,
    /// The commit
    #[arg(long = "commit", value_name = "SHA")]
    commit_sha: Option<String>,
    /// The issue that is worked on
    #[arg(long = "issue", value_name = "NUMBER", allow_negative_numbers = true)]
    issue_number: Option<i64>,
    /// A JSON merge patch of what is kept with the session
    #[arg(long, value_name = "JSON")]
    meta: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The session
    session_id: String,
}

/// What is handed over.
#[derive(Debug, Args)]
pub(crate) struct HandoffArgs {
    /// What the next agent has to know
    #[arg(long, allow_hyphen_values = true)]
    summary: String,
    /// How things stand: blocked, in-progress, ready, or a word of your own
    #[arg(long = "status", value_name = "LABEL")]
    status_label: Option<String>,
    /// The agent that should take the work
    #[arg(long, value_name = "AGENT")]
    to_agent: Option<String>,
    /// Something that was done; give it as often as needed
    #[arg(long = "done", value_name = "TEXT", allow_hyphen_values = true)]
    work_completed: Vec<String>,
    /// Something that stands in the way; give it as often as needed
    #[arg(long = "blocker", value_name = "TEXT", allow_hyphen_values = true)]
    blockers: Vec<String>,
    /// Something to do next; give it as often as needed
    #[arg(long = "next", value_name = "TEXT", allow_hyphen_values = true)]
    next_actions: Vec<String>,
    /// Anything else to hand over, as a JSON object
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
}

impl HandoffArgs {
    /// The payload: what was given as JSON, and the lists that were given by their own flags.
    fn payload(&self) -> Result<Map<String, Value>, Failure> {
        let mut payload = self.payload.as_deref().map_or(Ok(Map::new()), |text| object("--payload", text))?;
        for (name, items) in [
            ("work_completed", &self.work_completed),
            ("blockers", &self.blockers),
            ("next_actions", &self.next_actions),
        ] {
            payload.entry(name).or_insert_with(|| items.clone().into());
        }
        Ok(payload)
    }

    /// The handoff as one document.
    pub(crate) fn document(&self) -> Result<Map<String, Value>, Failure> {
        let mut document = self.payload()?;
        document.insert("summary".into(), self.summary.as_str().into());
        if let Some(label) = &self.status_label {
            document.insert("status_label".into(), label.as_str().into());
        }
        if let Some(agent) = &self.to_agent {
            document.insert("to_agent".into(), agent.as_str().into());
        }
        Ok(document)
    }
}

/// Reads a JSON object from an argument, as strictly as a request's body.
fn object(flag: &str, text: &str) -> Result<Map<String, Value>, Failure> {
    let wrong = |problem: String| {
        Failure::new(Exit::Validation, "invalid_json", format!("{flag}: {problem}"))
            .hint(format!("give a JSON object, like {flag} '{{\"key\": \"value\"}}'"))
    };
    match baton_core::read_strict(text.as_bytes()) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(wrong("is not a JSON object".into())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// The session
    session_id: String,
    #[command(flatten)]
    handoff: HandoffArgs,
    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of this undertaking; the configured one when nothing else is given
    #[arg(long)]
    venture: Option<String>,
    /// In this repository
    #[arg(long)]
    repo: Option<String>,
    /// In this lane
    #[arg(long, allow_negative_numbers = true)]
    track: Option<i64>,
    /// Of this agent
    #[arg(long)]
    agent: Option<String>,
    /// How many at the most
    #[arg(long, allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) fn run(command: SessionCommand, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        SessionCommand::Start(args) => start(&args, config, backend),
        SessionCommand::Heartbeat(args) => {
            backend.answer::<Heartbeat>(&json!({ "session_id": args.session_id }), args.key.get(), |output| {
                format!("{} is alive; next heartbeat before {}", output.session_id, output.next_heartbeat_at)
            })
        }
        SessionCommand::Update(args) => update(&args, backend),
        SessionCommand::End(args) => end(&args, backend),
        SessionCommand::List(args) => list(&args, config, backend),
        SessionCommand::Show(args) => show(&args, backend),
    }
}

fn start(args: &StartArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    let repo = match &args.repo {
        Some(repo) => repo.clone(),
        None => {
            repository_here().map_err(name_it)?.map(|repo| repo.as_str().to_owned()).ok_or_else(|| {
                Failure::new(
                    Exit::Usage,
                    "usage",
                    "which repository? none was given, and this folder is in none",
                )
                .hint("add --repo OWNER/NAME, or go to a checkout")
            })?
        }
    };
    let agent =
        args.agent.as_deref().or(config.agent.as_ref().map(|agent| agent.as_str())).ok_or_else(|| {
            Failure::new(Exit::Usage, "usage", "who works? no agent was given")
                .hint("add --agent NAME, or set session.agent in the configuration (BATON_AGENT)")
        })?;
    let params = json!({
        "agent": agent,
        "repo": repo,
        "venture": args.venture.as_deref().unwrap_or(config.venture.as_str()),
        "track": args.track,
        "issue_number": args.issue_number,
        "branch": args.branch,
        "commit_sha": args.commit_sha,
        "client": args.client,
        "client_version": args.client_version,
        "client_session_id": args.client_session_id,
        "host": args.host,
        "meta": args.meta.as_deref().map(|text| object("--meta", text)).transpose()?,
    });
    backend.answer::<StartSession>(&params, args.key.get(), describe_start)
}

/// Whoever names the repository needs no git.
fn name_it(mut fault: Fault) -> Fault {
    let hint = fault.hint.take().unwrap_or_default();
    fault.hint(format!("add --repo OWNER/NAME; or {hint}").trim_end_matches("; or ").to_owned())
}

pub(crate) fn describe_start(output: &StartSessionOutput) -> String {
    let verb = match output.status {
        StartStatus::Created => "started",
        StartStatus::Resumed => "resumed",
    };
    let mut lines = vec![format!("{verb} {}", output.session_id)];
    match &output.last_handoff {
        None => lines.push("nothing was handed over here yet".into()),
        Some(handoff) => {
            let label =
                handoff.status_label.as_deref().map(|label| format!(" [{label}]")).unwrap_or_default();
            lines
                .push(format!("{}, by {} at {}{label}:", handoff.id, handoff.from_agent, handoff.created_at));
            lines.extend(handoff.summary.lines().map(|line| format!("  {line}")));
            lines.extend(handoff.next_actions.iter().map(|action| format!("  next: {action}")));
        }
    }
    lines.extend(output.open_blockers.iter().map(|blocker| format!("  blocked by: {blocker}")));
    for other in &output.active_sessions {
        let place = other.branch.as_deref().map(|branch| format!(" on {branch}")).unwrap_or_default();
        lines.push(format!("also at work: {}{place}, last seen {}", other.agent, other.last_heartbeat_at));
    }
    lines.push(format!("next heartbeat before {}", output.next_heartbeat_at));
    lines.join("\n")
}

fn update(args: &UpdateArgs, backend: &Backend) -> Result<Answer, Failure> {
    let params = json!({
        "session_id": args.session_id,
        "branch": args.branch,
        "commit_sha": args.commit_sha,
        "issue_number": args.issue_number,
        "meta": args.meta.as_deref().map(|text| object("--meta", text)).transpose()?,
    });
    backend.answer::<UpdateSession>(&params, args.key.get(), |output| {
        format!("updated {} at {}", output.session_id, output.updated_at)
    })
}

fn show(args: &ShowArgs, backend: &Backend) -> Result<Answer, Failure> {
    backend.answer::<ShowSession>(&json!({ "session_id": args.session_id }), None, |output| {
        let session = &output.session;
        let mut lines = vec![describe_session(session), format!("status {}", session.status.as_str())];
        if let (Some(at), Some(reason)) = (session.ended_at, session.end_reason) {
            lines.push(format!("over since {at} ({})", reason.as_str()));
        }
        if let Some(handoff) = &output.handoff {
            lines.push(format!("left {}: {}", handoff.id, handoff.summary));
        }
        if let Some(summary) = &output.summary {
            lines.push(format!("came to: {}", summary.summary));
        }
        lines.join("\n")
    })
}

fn end(args: &EndArgs, backend: &Backend) -> Result<Answer, Failure> {
    let params = json!({
        "session_id": args.session_id,
        "summary": args.handoff.summary,
        "status_label": args.handoff.status_label,
        "to_agent": args.handoff.to_agent,
        "payload": args.handoff.payload()?,
    });
    backend.answer::<EndSession>(&params, args.key.get(), |output| {
        let late = if output.late { " (late: the session had been given up)" } else { "" };
        format!("ended {}, left handoff {}{late}", output.session_id, output.handoff_id)
    })
}

fn list(args: &ListArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    let anything = args.venture.is_some() || args.repo.is_some() || args.agent.is_some();
    let default = (!anything).then(|| config.venture.as_str());
    let params = json!({
        "venture": args.venture.as_deref().or(default),
        "repo": args.repo,
        "track": args.track,
        "agent": args.agent,
        "limit": args.limit,
        "cursor": args.cursor,
    });
    backend.answer::<ListSessions>(&params, None, |output| {
        if output.sessions.is_empty() {
            return "nobody is at work".into();
        }
        let mut lines: Vec<String> = output.sessions.iter().map(describe_session).collect();
        if let Some(cursor) = &output.pagination.next_cursor {
            lines.push(format!("more: --cursor {cursor}"));
        }
        lines.join("\n")
    })
}

fn describe_session(session: &SessionView) -> String {
    let track = session.track.map(|track| format!(" track {track}")).unwrap_or_default();
    let branch = session.branch.as_deref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    format!(
        "{}  {}  {} (venture {}){track}{branch}  last seen {}",
        session.id, session.agent, session.repo, session.venture, session.last_heartbeat_at
    )
}
