//! `baton queue …`

use baton_app::observation::{ListQueue, PurgeQueue, QueueItemView, ReadQueueStats, RetryQueue};
use baton_core::observation::QueueStatus;
use baton_core::{counted, visible};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::backend::Backend;
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, page_text, when};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton queue stats
  $ baton queue list --errors
  $ baton queue retry";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum QueueCommand {
    /// Show the number of items per status
    #[command(after_help = "Example:\n  $ baton queue stats")]
    Stats,
    /// List queue items, newest first
    #[command(after_help = "Example:\n  $ baton queue list --errors")]
    List(ListArgs),
    /// Retry failed items
    #[command(after_help = "Example:\n  $ baton queue retry 42")]
    Retry(RetryArgs),
    /// Delete done or failed items and their raw output
    #[command(after_help = "Example:\n  $ baton queue purge --older-than 24")]
    Purge(PurgeArgs),
}

/// Accepts the names of the statuses.
fn statuses() -> impl TypedValueParser<Value = QueueStatus> {
    PossibleValuesParser::new(QueueStatus::ALL.map(QueueStatus::as_str)).try_map(|name| name.parse())
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Show only failed items
    #[arg(long, conflicts_with = "status")]
    errors: bool,
    /// Filter by status [default: raw]
    #[arg(long, value_parser = statuses())]
    status: Option<QueueStatus>,
    /// Maximum number of items, 1 to 200 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Show items with an id lower than this
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct RetryArgs {
    /// Id of the item to retry [default: all failed items]
    id: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// Delete failed items instead of finished items
    #[arg(long)]
    errors: bool,
    /// Delete only items that finished or failed at least this many hours ago
    #[arg(long, value_name = "HOURS")]
    older_than: Option<u32>,
}

pub(crate) fn run(command: QueueCommand, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        QueueCommand::Stats => backend.answer::<ReadQueueStats>(&ReadQueueStats {}, None, |stats| {
            format!(
                "raw {}, processing {}, done {}, error {}",
                stats.raw, stats.processing, stats.done, stats.error
            )
        }),
        QueueCommand::List(args) => {
            let status =
                if args.errors { QueueStatus::Error } else { args.status.unwrap_or(QueueStatus::Raw) };
            let params = ListQueue { status: Some(status), limit: args.limit, before: args.before };
            backend.answer::<ListQueue>(&params, None, |found| {
                let columns: [Column<QueueItemView>; _] = [
                    (Whole("ITEM"), |item| item.id.to_string()),
                    (Whole("CAPTURED"), |item| when(item.created_at)),
                    (Text("TOOL"), |item| item.tool_name.clone()),
                    (Whole("BYTES"), |item| item.raw_bytes.to_string()),
                    (Whole("ATTEMPTS"), |item| item.attempts.to_string()),
                    (Text("ERROR OR FILES"), |item| {
                        item.last_error.clone().unwrap_or_else(|| item.files_touched.join(" "))
                    }),
                ];
                let empty = format!("no items with status {}", status.as_str());
                page_text(list_items(&found.items, &empty, describe, columns), "--before", found.next_before)
            })
        }
        QueueCommand::Retry(args) => backend.answer::<RetryQueue>(&args, None, |done| {
            format!("{} will be retried", counted(done.retried, "item"))
        }),
        QueueCommand::Purge(args) => {
            let status = if args.errors { QueueStatus::Error } else { QueueStatus::Done };
            let params = PurgeQueue { status: Some(status), older_than_hours: args.older_than };
            backend.answer::<PurgeQueue>(&params, None, |done| {
                let more = if done.more { "; more remain, run the command again" } else { "" };
                format!("deleted {}{more}", counted(done.purged, "item"))
            })
        }
    }
}

fn describe(item: &QueueItemView) -> String {
    let error = item.last_error.as_ref().map(|error| format!("\n    {error}")).unwrap_or_default();
    let files = item.files_touched.join(" ");
    let line = format!(
        "{}  {}  {}  {} bytes, {} attempts  {files}{error}",
        item.id, item.created_at, item.tool_name, item.raw_bytes, item.attempts
    );
    visible(&line).into_owned()
}
