//! `baton queue …`

use baton_app::observation::{ListQueue, PurgeQueue, QueueItemView, ReadQueueStats, RetryQueue};
use baton_core::observation::visible;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::backend::Backend;
use crate::output::{Answer, Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Count what waits, what is worked on, done and given up
    Stats,
    /// List captured tool uses, newest first
    List(ListArgs),
    /// Try again what was given up
    Retry(RetryArgs),
    /// Drop captured tool uses that are done or were given up, with their raw output
    Purge(PurgeArgs),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Raw,
    Processing,
    Done,
    Error,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Error => "error",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Those that were given up
    #[arg(long, conflicts_with = "status")]
    errors: bool,
    /// Those of this status; those that wait when left out
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// How many at the most
    #[arg(long, allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Below this number
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// This one; all that were given up when left out
    id: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// Those that were given up, in place of those that are done
    #[arg(long)]
    errors: bool,
    /// Only what was settled so many hours ago
    #[arg(long, value_name = "HOURS")]
    older_than: Option<u32>,
}

pub(crate) fn run(command: &QueueCommand, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        QueueCommand::Stats => backend.answer::<ReadQueueStats>(&json!({}), None, |stats| {
            format!(
                "raw {}, processing {}, done {}, error {}",
                stats.raw, stats.processing, stats.done, stats.error
            )
        }),
        QueueCommand::List(args) => {
            let status = if args.errors { Status::Error } else { args.status.unwrap_or(Status::Raw) };
            let params = json!({ "status": status.as_str(), "limit": args.limit, "before": args.before });
            backend.answer::<ListQueue>(&params, None, |found| {
                let mut lines: Vec<String> = found.items.iter().map(describe).collect();
                if lines.is_empty() {
                    lines.push(format!("nothing is {}", status.as_str()));
                }
                if let Some(before) = found.next_before {
                    lines.push(format!("more: --before {before}"));
                }
                lines.join("\n")
            })
        }
        QueueCommand::Retry(args) => backend.answer::<RetryQueue>(&json!({ "id": args.id }), None, |done| {
            format!("{} wait again", done.retried)
        }),
        QueueCommand::Purge(args) => {
            let status = if args.errors { Status::Error } else { Status::Done };
            let params = json!({ "status": status.as_str(), "older_than_hours": args.older_than });
            backend.answer::<PurgeQueue>(&params, None, |done| {
                let more = if done.more { "; there are more, run it again" } else { "" };
                format!("dropped {}{more}", done.purged)
            })
        }
    }
}

fn describe(item: &QueueItemView) -> String {
    let error = item.last_error.as_ref().map(|error| format!("\n    {error}")).unwrap_or_default();
    let files = item.files_touched.join(" ");
    let line = format!(
        "{}  {}  {}  {} bytes, tried {}  {files}{error}",
        item.id, item.created_at, item.tool_name, item.raw_bytes, item.attempts
    );
    visible(&line).into_owned()
}
