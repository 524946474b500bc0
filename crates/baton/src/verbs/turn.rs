//! `baton turn …`

use baton_app::turn::{ListTurns, ShowTurn, ShowTurnOutput, TurnAction};
use baton_core::observation::{Turn, TurnStatus};
use baton_core::{one_line, visible};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::backend::Backend;
use crate::config::Config;
use crate::live_session::session_id;
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, page_text, when};

/// Width of a request or closing message in a list.
const LINE_CHARS: usize = 160;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TurnCommand {
    /// List the turns of a session, newest first
    #[command(after_help = "Example:\n  $ baton turn list sess_01M7H6D3AHF4DP3YJEERGQ2KGT")]
    List(ListArgs),
    /// Show a turn: request, closing message, tools and files
    #[command(after_help = "Example:\n  $ baton turn show turn_42")]
    Show(ShowArgs),
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ListArgs {
    /// Session id [default: newest active session of this client in the repository]
    session_id: Option<String>,
    /// Maximum number of turns, 1 to 200 [default: 20]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Show turns before this one
    #[arg(long, value_name = "ID")]
    before: Option<String>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ShowArgs {
    /// Turn id, for example turn_42
    turn_id: String,
}

pub(crate) fn run(command: TurnCommand, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        TurnCommand::List(mut args) => {
            args.session_id = Some(session_id(args.session_id, config, backend)?);
            backend.answer::<ListTurns>(&args, None, |found| {
                let columns: [Column<Turn>; _] = [
                    (Whole("TURN"), |turn| turn.id.to_string()),
                    (Whole("STARTED"), |turn| when(turn.started_at)),
                    (Whole("STATUS"), |turn| turn.status.as_str().to_owned()),
                    (Text("REQUEST"), |turn| turn.prompt.clone()),
                ];
                let empty = "no turns were reported for this session";
                page_text(list_items(&found.turns, empty, line, columns), "--before", found.next_before)
            })
        }
        TurnCommand::Show(args) => backend.answer::<ShowTurn>(&args, None, describe),
    }
}

fn line(turn: &Turn) -> String {
    let status = if turn.status == TurnStatus::Done { "" } else { turn.status.as_str() };
    let closing = turn.closing.as_deref().or(turn.failure.as_deref()).unwrap_or_default();
    let mut text = format!("{}  {}  {}", turn.id, turn.started_at, one_line(&turn.prompt, LINE_CHARS));
    if !status.is_empty() {
        text += &format!("  [{status}]");
    }
    if !closing.is_empty() {
        text += &format!("\n    {}", one_line(closing, LINE_CHARS));
    }
    text
}

fn describe(shown: &ShowTurnOutput) -> String {
    let turn = &shown.turn;
    let mut parts = vec![format!("turn    {} of {}, {}", turn.id, turn.session_id, turn.status.as_str())];
    parts.push(match turn.ended_at {
        Some(ended_at) => format!("time    {} to {}", when(turn.started_at), when(ended_at)),
        None => format!("time    {}", when(turn.started_at)),
    });
    let tools: Vec<String> = shown.tools.iter().map(|tool| format!("{} {}", tool.uses, tool.tool)).collect();
    let titles =
        |actions: &[TurnAction]| actions.iter().map(|action| action.title.clone()).collect::<Vec<_>>();
    let (checks, failures) = (titles(&shown.checks), titles(&shown.failures));
    for (name, items) in [
        ("tools", &tools),
        ("changed", &shown.files_changed),
        ("read", &shown.files_read),
        ("checks", &checks),
        ("commits", &shown.commits),
        ("failed", &failures),
    ] {
        if !items.is_empty() {
            parts.push(format!("{name:<7} {}", visible(&items.join(", "))));
        }
    }
    for (name, text) in [
        ("request", Some(turn.prompt.as_str())),
        ("summary at compaction", turn.compact_summary.as_deref()),
        ("closing message", turn.closing.as_deref()),
        ("error", turn.failure.as_deref()),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            parts.push(format!("\n{name}:\n{}", visible(text)));
        }
    }
    if !shown.actions.is_empty() {
        let actions = shown.actions.iter();
        let lines: Vec<String> = actions
            .map(|action| format!("  {}  {}", action.observation_id, visible(&action.title)))
            .collect();
        parts.push(format!("\nactions:\n{}", lines.join("\n")));
    }
    parts.join("\n")
}
