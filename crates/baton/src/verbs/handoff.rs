//! `baton handoff …`

use baton_app::handoff::{
    AckHandoff, CreateHandoff, HandoffView, LatestHandoff, LeaveHandoff, ListHandoffs, ShowHandoff,
    WithdrawHandoff,
};
use baton_core::{HandoffFields, TrackFilter};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::backend::Backend;
use crate::config::Config;
use crate::live_session::session_id;
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, at, list_items, page_text, when};
use crate::verbs::handoff_args::HandoffArgs;
use crate::verbs::session::{KeyArgs, repository_or_here};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton handoff latest --repo acme/webshop
  $ baton handoff list --to-agent codex-2";

const CREATE_EXAMPLES: &str = "\
Examples:
  $ baton handoff create --session sess_01M7H6D3AHF4DP3YJEERGQ2KGT --summary 'Schema is migrated'
  $ baton handoff create --session sess_01M7H6D3AHF4DP3YJEERGQ2KGT --summary 'Login form works' \\
      --to-agent codex-2 --goal 'Users stay signed in' \\
      --decision 'Cookies: the proxy drops headers' \\
      --rejected 'Local storage: readable by scripts' --next 'Add logout'";

const LEAVE_EXAMPLE: &str = "\
Example:
  $ baton handoff leave --author alice --repo acme/webshop \\
      --summary 'The schema may change until Friday' --next 'Wait for the migration'";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum HandoffCommand {
    /// Show the latest handoff
    #[command(after_help = "Example:\n  $ baton handoff latest --repo acme/webshop")]
    Latest(FilterArgs),
    /// List handoffs, newest first
    #[command(after_help = "Example:\n  $ baton handoff list --repo acme/webshop --to-agent codex-2")]
    List(ListArgs),
    /// Show a handoff
    #[command(after_help = "Example:\n  $ baton handoff show ho_01M7H3Y790KKJH7PNR0DNVSC3B")]
    Show(ShowArgs),
    /// Create a handoff without ending the session
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Box<CreateArgs>),
    /// Leave a handoff as a person, without a session
    #[command(after_help = LEAVE_EXAMPLE)]
    Leave(Box<LeaveArgs>),
    /// Acknowledge a handoff
    #[command(after_help = "Example:\n  $ baton handoff ack ho_01M7H3Y790KKJH7PNR0DNVSC3B --agent codex-2")]
    Ack(AckArgs),
    /// Withdraw a wrong or outdated handoff; it is no longer listed or given to new sessions
    #[command(after_help = "Example:\n  $ baton handoff withdraw ho_01M7H3Y790KKJH7PNR0DNVSC3B")]
    Withdraw(WithdrawArgs),
}

#[derive(Debug, Default, Args, Serialize)]
pub(crate) struct FilterArgs {
    /// Venture to search [default: session.venture]
    #[arg(long)]
    #[serde(skip)]
    pub(crate) venture: Option<String>,
    /// Filter by repository
    #[arg(long, value_name = "OWNER/NAME")]
    pub(crate) repo: Option<String>,
    /// Number of a track, or none for handoffs without a track
    #[arg(long, value_name = "TRACK", allow_negative_numbers = true)]
    pub(crate) track: Option<TrackFilter>,
    /// Filter by issue number
    #[arg(long = "issue", value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) issue_number: Option<i64>,
    /// Filter by agent that wrote the handoff
    #[arg(long, value_name = "AGENT")]
    pub(crate) from_agent: Option<String>,
    /// Filter by agent that should take over
    #[arg(long, value_name = "AGENT")]
    pub(crate) to_agent: Option<String>,
}

impl FilterArgs {
    pub(crate) fn params(&self, config: &Config) -> Value {
        config.with_venture(self.venture.as_deref(), self)
    }
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    #[serde(flatten)]
    filter: FilterArgs,
    /// Maximum number of handoffs, 1 to 200 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Continue after the previous page
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ShowArgs {
    /// Handoff id (ho_…)
    handoff_id: String,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct CreateArgs {
    /// Session that creates the handoff [default: newest active session of this client in the repository]
    #[arg(long = "session", value_name = "ID")]
    session_id: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    handoff: HandoffArgs,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct LeaveArgs {
    /// Your name
    #[arg(long, value_name = "NAME")]
    author: String,
    /// Repository [default: the current checkout]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Venture [default: session.venture]
    #[arg(long)]
    venture: Option<String>,
    /// Number of a parallel line of work
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    track: Option<i64>,
    #[arg(skip)]
    branch: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    handoff: HandoffArgs,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct AckArgs {
    /// Handoff id (ho_…)
    handoff_id: String,
    /// Agent that acknowledges [default: session.agent]
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct WithdrawArgs {
    /// Handoff id (ho_…)
    handoff_id: String,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

pub(crate) fn run(command: HandoffCommand, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        HandoffCommand::Latest(args) => {
            backend.answer::<LatestHandoff>(&args.params(config), None, |output| {
                output.handoff.as_ref().map_or_else(|| "no handoffs".into(), describe)
            })
        }
        HandoffCommand::List(args) => list(&args, config, backend),
        HandoffCommand::Show(args) => {
            backend.answer::<ShowHandoff>(&args, None, |output| describe(&output.handoff))
        }
        HandoffCommand::Create(mut args) => {
            args.session_id = Some(session_id(args.session_id, config, backend)?);
            args.handoff.read()?;
            backend.answer::<CreateHandoff>(&args, args.key.get(), |output| {
                format!("created {}", output.handoff_id)
            })
        }
        HandoffCommand::Leave(mut args) => {
            args.repo = Some(repository_or_here(args.repo.as_deref(), "leave a handoff")?.0);
            args.venture = config.chosen_venture(args.venture.as_deref());
            args.branch = args.handoff.branch().map(str::to_owned);
            args.handoff.read()?;
            backend.answer::<LeaveHandoff>(&args, args.key.get(), |output| {
                format!("created {}", output.handoff_id)
            })
        }
        HandoffCommand::Ack(args) => ack(args, config, backend),
        HandoffCommand::Withdraw(args) => {
            backend.answer::<WithdrawHandoff>(&args, args.key.get(), |output| {
                format!("withdrew {}", output.handoff_id)
            })
        }
    }
}

fn list(args: &ListArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    let params = config.with_venture(args.filter.venture.as_deref(), args);
    backend.answer::<ListHandoffs>(&params, None, |output| {
        let columns: [Column<HandoffView>; _] = [
            (Whole("HANDOFF"), |handoff| handoff.id.to_string()),
            (Text("AGENT"), |handoff| handoff.from_agent.to_string()),
            (Text("REPOSITORY"), |handoff| handoff.repo.to_string()),
            (Whole("WRITTEN"), |handoff| when(handoff.created_at)),
            (Text("STATUS"), |handoff| handoff.status_label.clone().unwrap_or_default()),
            (Text("SUMMARY"), |handoff| handoff.summary.clone()),
        ];
        let lines = list_items(&output.handoffs, "no handoffs", line, columns);
        page_text(lines, "--cursor", output.pagination.next_cursor.as_ref())
    })
}

fn ack(mut args: AckArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    args.agent = args.agent.or_else(|| config.agent.as_ref().map(|agent| agent.as_str().to_owned()));
    if args.agent.is_none() {
        return Err(Failure::usage("cannot acknowledge the handoff: no agent given")
            .hint("add --agent NAME, or set session.agent in the configuration (BATON_AGENT)"));
    }
    backend.answer::<AckHandoff>(&args, args.key.get(), |output| {
        format!("{} acknowledged {}", output.acknowledged_by, output.handoff_id)
    })
}

fn line(handoff: &HandoffView) -> String {
    let label = handoff.status_label.as_deref().map(|label| format!(" [{label}]")).unwrap_or_default();
    let first = handoff.summary.lines().next().unwrap_or_default();
    format!("{}  {}  {}{label}  {first}", handoff.id, handoff.from_agent, handoff.repo)
}

/// Formats a handoff as text.
pub(crate) fn describe(handoff: &HandoffView) -> String {
    let mut lines = vec![line(handoff), format!("written {}", at(handoff.created_at))];
    lines.extend(handoff.summary.lines().skip(1).map(|text| format!("  {text}")));
    lines.extend(labelled(&handoff.payload));
    if let Some(id) = &handoff.checkpoint_id {
        lines.push(format!("latest checkpoint: {id}"));
    }
    if let Some(automatic) = &handoff.automatic {
        lines.push("captured by baton, not written by the agent:".into());
        let summary = automatic.get("summary").and_then(Value::as_str).unwrap_or_default();
        lines.extend(summary.lines().map(|text| format!("  {text}")));
        lines.extend(labelled(automatic).map(|text| format!("  {text}")));
    }
    if handoff.incomplete {
        lines.push("incomplete: some captured tool uses are not processed yet".into());
    }
    if let Some(agent) = &handoff.acknowledged_by {
        let session = handoff.acknowledged_session_id.map(|id| format!(" in {id}")).unwrap_or_default();
        lines.push(format!("acknowledged by {agent}{session}"));
    }
    if let Some(withdrawn_at) = handoff.withdrawn_at {
        lines.push(format!("withdrawn {}", at(withdrawn_at)));
    }
    lines.join("\n")
}

fn labelled(payload: &Map<String, Value>) -> impl Iterator<Item = String> {
    HandoffFields::of(payload).labelled().into_iter().map(|(label, text)| format!("{label}: {text}"))
}
