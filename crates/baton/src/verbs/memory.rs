//! `baton memory …`

use baton_app::memory::{
    Forget, ForgetOutput, ForgottenItems, ListMarks, MarkOutput, MarkedItem, PinItem, RejectItem,
    RestoreItem, SupersedeItem,
};
use baton_app::recall::MarkView;
use baton_core::visible;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;

use crate::backend::Backend;
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, when};
use crate::verbs::session::KeyArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton memory reject note_01M7F8891P42VRJQTDHZ1XZQEZ
  $ baton memory supersede turn_42 --by note_01M7F8891P42VRJQTDHZ1XZQEZ
  $ baton memory forget --session sess_01M7F8891P42VRJQTDHZ1XZQEZ --dry-run";

const FORGET_EXAMPLES: &str = "\
Examples:
  $ baton memory forget turn_42
  $ baton memory forget --repo acme/webshop --before 90d --dry-run";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum MemoryCommand {
    /// Reject an item that is wrong, so that it is not returned again
    #[command(after_help = "Example:\n  $ baton memory reject note_01M7F8891P42VRJQTDHZ1XZQEZ")]
    Reject(MarkArgs),
    /// Replace an outdated item with another one
    #[command(
        after_help = "Example:\n  $ baton memory supersede turn_42 --by note_01M7F8891P42VRJQTDHZ1XZQEZ"
    )]
    Supersede(SupersedeArgs),
    /// Pin an important item, so that it comes first in the context of new chats
    #[command(after_help = "Example:\n  $ baton memory pin note_01M7F8891P42VRJQTDHZ1XZQEZ")]
    Pin(MarkArgs),
    /// Remove the mark of a rejected, superseded or pinned item
    #[command(after_help = "Example:\n  $ baton memory restore turn_42")]
    Restore(MarkArgs),
    /// List rejected, superseded and pinned items
    #[command(after_help = "Example:\n  $ baton memory list --mark rejected")]
    List(ListArgs),
    /// Delete an item, or everything of a session, a repository or a period; cannot be undone
    #[command(after_help = FORGET_EXAMPLES)]
    Forget(ForgetArgs),
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct MarkArgs {
    /// Item id, for example turn_42
    id: String,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct SupersedeArgs {
    /// Item id, for example turn_42
    id: String,
    /// Id of the item that replaces the outdated item
    #[arg(long, value_name = "ID")]
    by: String,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ListArgs {
    /// Filter by venture [default: all ventures]
    #[arg(long)]
    venture: Option<String>,
    /// Filter by repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Filter by mark
    #[arg(long, value_parser = PossibleValuesParser::new(["rejected", "superseded", "pinned"]))]
    mark: Option<String>,
    /// Maximum number of items, 1 to 200 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
}

#[derive(Debug, Args, Serialize)]
#[command(group(ArgGroup::new("forgotten").args(["id", "session", "repo", "before"]).required(true).multiple(true)))]
pub(crate) struct ForgetArgs {
    /// Item id, for example turn_42
    #[arg(conflicts_with_all = ["session", "repo", "before"])]
    id: Option<String>,
    /// Delete everything recorded in this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Delete everything recorded in this repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Delete everything recorded before this time: a timestamp, or a duration before now such as 90d
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Delete only in this venture; ignored with an id [default: all ventures]
    #[arg(long)]
    venture: Option<String>,
    /// Count what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(command: &MemoryCommand, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        MemoryCommand::Reject(args) => backend.answer::<RejectItem>(args, args.key.get(), marked),
        MemoryCommand::Supersede(args) => backend.answer::<SupersedeItem>(args, args.key.get(), marked),
        MemoryCommand::Pin(args) => backend.answer::<PinItem>(args, args.key.get(), marked),
        MemoryCommand::Restore(args) => backend.answer::<RestoreItem>(args, args.key.get(), marked),
        MemoryCommand::List(args) => list(args, backend),
        MemoryCommand::Forget(args) => forget(args, backend),
    }
}

fn list(args: &ListArgs, backend: &Backend) -> Result<Answer, Failure> {
    backend.answer::<ListMarks>(args, None, |output| {
        let line = |item: &MarkedItem| {
            format!("{}  {}  {}", item.id, describe_mark(&item.mark), visible(&item.title))
        };
        let columns: [Column<MarkedItem>; _] = [
            (Whole("ITEM"), |item| item.id.clone()),
            (Whole("MARK"), |item| describe_mark(&item.mark)),
            (Whole("MARKED"), |item| when(item.mark.created_at)),
            (Text("TITLE"), |item| visible(&item.title).into_owned()),
        ];
        list_items(&output.items, "no marked items", line, columns).join("\n")
    })
}

/// Deletes in batches until nothing matches any more.
fn forget(args: &ForgetArgs, backend: &Backend) -> Result<Answer, Failure> {
    let mut total = ForgetOutput::default();
    loop {
        let batch = backend.call::<Forget>(args, None)?;
        add(&mut total.forgotten, &batch.forgotten);
        total.dry_run = batch.dry_run;
        if !batch.more {
            return Answer::new(&total, describe_forgotten(&total));
        }
    }
}

fn marked(output: &MarkOutput) -> String {
    let mark = output.mark.as_ref().map_or_else(|| "not marked".to_owned(), describe_mark);
    format!("{}  {mark}  {}", output.id, visible(&output.title))
}

/// Returns a mark as text, for example `superseded by note_…`.
pub(crate) fn describe_mark(mark: &MarkView) -> String {
    match &mark.replaced_by {
        Some(by) => format!("{} by {by}", mark.kind.as_str()),
        None => mark.kind.as_str().to_owned(),
    }
}

fn counts(items: &ForgottenItems) -> [(&'static str, u64); 7] {
    [
        ("turns", items.turns),
        ("observations", items.observations),
        ("notes", items.notes),
        ("handoffs", items.handoffs),
        ("checkpoints", items.checkpoints),
        ("summaries", items.summaries),
        ("raw outputs", items.raw_outputs),
    ]
}

fn add(total: &mut ForgottenItems, batch: &ForgottenItems) {
    total.turns += batch.turns;
    total.observations += batch.observations;
    total.notes += batch.notes;
    total.handoffs += batch.handoffs;
    total.checkpoints += batch.checkpoints;
    total.summaries += batch.summaries;
    total.raw_outputs += batch.raw_outputs;
}

fn describe_forgotten(output: &ForgetOutput) -> String {
    let parts: Vec<String> = counts(&output.forgotten)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let verb = if output.dry_run { "would delete" } else { "deleted" };
    if parts.is_empty() { "nothing matches".to_owned() } else { format!("{verb}: {}", parts.join(", ")) }
}
