//! `baton note …`

use baton_app::note::{CreateNote, DeleteNote, ListNotes, NoteView, ShowNote, UpdateNote};
use baton_core::{Agent, NoteKind, visible};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::backend::Backend;
use crate::checkout::repository_here;
use crate::config::Config;
use crate::exit::Exit;
use crate::live_session::live_session;
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, page_text, when};
use crate::verbs::session::KeyArgs;

pub(crate) const NOTE_EXAMPLES: &str = "\
Examples:
  $ baton note 'Cookies instead of tokens: the proxy drops headers' \\
      --kind decision --file src/auth.rs
  $ baton note list --kind gotcha";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct NoteArgs {
    #[command(subcommand)]
    command: Option<NoteCommand>,
    #[command(flatten)]
    note: CreateArgs,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum NoteCommand {
    /// List notes, newest first
    #[command(after_help = "Example:\n  $ baton note list --kind gotcha")]
    List(ListArgs),
    /// Show a note
    #[command(after_help = "Example:\n  $ baton note show note_01M7H3Y790KKJH7PNR0DNVSC3B")]
    Show(IdArgs),
    /// Correct the text, kind or file of a note
    #[command(
        after_help = "Example:\n  $ baton note edit note_01M7H3Y790KKJH7PNR0DNVSC3B --text 'The proxy drops all headers'"
    )]
    Edit(EditArgs),
    /// Delete a note
    #[command(after_help = "Example:\n  $ baton note delete note_01M7H3Y790KKJH7PNR0DNVSC3B")]
    Delete(DeleteArgs),
}

/// Accepts the names of the kinds.
fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(NoteKind::ALL.map(NoteKind::as_str))
}

#[derive(Debug, Args, Serialize)]
struct CreateArgs {
    /// One fact with its reason
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,
    /// Kind of the note [default: fact]
    #[arg(long, value_parser = kinds())]
    kind: Option<String>,
    /// File that the note is about
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Session in which the note is recorded [default: newest active session of this client in the repository]
    #[arg(long = "session", value_name = "ID")]
    session_id: Option<String>,
    /// Repository of a note without a session [default: repository of the current checkout]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Venture of a note without a session [default: session.venture]
    #[arg(long)]
    venture: Option<String>,
    #[arg(skip)]
    agent: Option<Agent>,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
struct ListArgs {
    /// Filter by venture [default: all]
    #[arg(long)]
    venture: Option<String>,
    /// Filter by repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Filter by session
    #[arg(long = "session", value_name = "ID")]
    session_id: Option<String>,
    /// Filter by kind
    #[arg(long, value_parser = kinds())]
    kind: Option<String>,
    /// Maximum number of notes, 1 to 200 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Continue after the previous page
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Args, Serialize)]
struct IdArgs {
    /// Note id (note_…)
    note_id: String,
}

#[derive(Debug, Args, Serialize)]
struct EditArgs {
    /// Note id (note_…)
    note_id: String,
    /// New text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// New kind
    #[arg(long, value_parser = kinds())]
    kind: Option<String>,
    /// New file
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
struct DeleteArgs {
    /// Note id (note_…)
    note_id: String,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

pub(crate) fn run(args: NoteArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    match args.command {
        None => create(args.note, config, backend),
        Some(NoteCommand::List(args)) => list(&args, backend),
        Some(NoteCommand::Show(args)) => backend.answer::<ShowNote>(&args, None, |output| line(&output.note)),
        Some(NoteCommand::Edit(args)) => {
            backend.answer::<UpdateNote>(&args, args.key.get(), |output| line(&output.note))
        }
        Some(NoteCommand::Delete(args)) => backend
            .answer::<DeleteNote>(&args, args.key.get(), |output| format!("deleted {}", output.note_id)),
    }
}

fn create(mut args: CreateArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    if args.text.is_none() {
        return Err(Failure::usage("cannot record a note: it has no text")
            .hint("write the note in quotes: baton note 'TEXT'"));
    }
    let venture = args.venture.as_deref();
    if args.repo.is_none() {
        args.repo = repository_here()?.map(String::from);
        if args.repo.is_none() && args.session_id.is_none() {
            return Err(Failure::usage("cannot record a note: no repository given")
                .hint("add --repo OWNER/NAME or --session ID, or run the command in a checkout"));
        }
        if let (None, Some(repo)) = (&args.session_id, &args.repo) {
            let live = match live_session(repo, venture, config, backend) {
                // Without the store the live session is not known, and the note is recorded for the repository.
                Err(failure) if failure.exit == Exit::StoreUnavailable => None,
                live => live?,
            };
            args.session_id = live.map(|live| live.id.to_string());
        }
    }
    args.venture = config.chosen_venture(venture);
    args.agent = config.agent.clone();
    backend.answer::<CreateNote>(&args, args.key.get(), |output| {
        let spooled = if output.degraded {
            "\nsaved to the outbox because the database is unavailable; stored when it is available again"
        } else {
            ""
        };
        format!("{}{spooled}", line(&output.note))
    })
}

fn list(args: &ListArgs, backend: &Backend) -> Result<Answer, Failure> {
    backend.answer::<ListNotes>(args, None, |output| {
        let columns: [Column<NoteView>; _] = [
            (Whole("NOTE"), |note| note.id.to_string()),
            (Text("REPOSITORY"), |note| note.repo.to_string()),
            (Whole("KIND"), |note| note.kind.as_str().to_owned()),
            (Whole("RECORDED"), |note| when(note.created_at)),
            (Text("TEXT"), |note| note.text.clone()),
        ];
        let lines = list_items(&output.notes, "no notes", line, columns);
        page_text(lines, "--cursor", output.pagination.next_cursor.as_ref())
    })
}

fn line(note: &NoteView) -> String {
    let file = note.file.as_deref().map(|file| format!(" ({})", visible(file))).unwrap_or_default();
    format!("{}  {}  {}{file}: {}", note.id, note.repo, note.kind.as_str(), visible(&note.text))
}
