//! `baton search`, `baton timeline` and `baton get`

use baton_app::recall::{GetItems, ItemView, Search, SearchResult, Timeline, TimelineEntry};
use baton_core::observation::visible;
use clap::Args;
use serde_json::json;

use crate::backend::Backend;
use crate::output::{Answer, Failure};
use crate::terminal::{list_items, when};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton search why does the lease expire twice
  $ baton search drainQueue --kind observation --since 7d
  $ baton search '\"lease expired\" last week' --file worker.rs";

/// Number of files listed with a result.
const LISTED_FILES: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What to look for, in plain words
    #[arg(required = true, num_args = 1..)]
    query: Vec<String>,
    /// Maximum number of results, 1 to 100 [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Filter by venture [default: all ventures]
    #[arg(long)]
    venture: Option<String>,
    /// Filter by repository, as owner/name
    #[arg(long)]
    repo: Option<String>,
    /// Filter by branch
    #[arg(long)]
    branch: Option<String>,
    /// Filter by session id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Filter by agent
    #[arg(long)]
    agent: Option<String>,
    /// Filter by kind: turn, observation, handoff, summary, checkpoint, task or note
    #[arg(long)]
    kind: Option<String>,
    /// Filter by file: a path or the end of a path
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Earliest time: a timestamp, or a duration before now such as 7d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Latest time: a timestamp, or a duration before now such as 1d
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TimelineArgs {
    /// Item id
    id: String,
    /// Id of a later item: list the items between the two
    #[arg(long, value_name = "ID")]
    to: Option<String>,
    /// Maximum number of items before, and after; or between, 1 to 200 [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Filter by kind: turn, observation, handoff, summary, checkpoint, task or note
    #[arg(long)]
    kind: Option<String>,
    /// List the items of all sessions of the repository
    #[arg(long)]
    all_sessions: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Item ids
    #[arg(required = true, num_args = 1.., value_name = "ID")]
    ids: Vec<String>,
}

pub(crate) fn search(args: &SearchArgs, backend: &Backend) -> Result<Answer, Failure> {
    let params = json!({
        "q": args.query.join(" "), "limit": args.limit, "venture": args.venture, "repo": args.repo,
        "branch": args.branch, "session": args.session, "agent": args.agent, "kind": args.kind,
        "file": args.file, "since": args.since, "until": args.until,
    });
    backend.answer::<Search>(&params, None, |found| {
        let mut lines: Vec<String> = found.results.iter().map(result_lines).collect();
        lines.push(match found.results.len() {
            0 => format!("nothing found, {} ms", found.took_ms),
            count => format!("{count} results, {} ms; read one with: baton get ID", found.took_ms),
        });
        lines.join("\n")
    })
}

pub(crate) fn timeline(args: &TimelineArgs, backend: &Backend) -> Result<Answer, Failure> {
    let params = json!({
        "id": args.id, "to": args.to, "limit": args.limit, "kind": args.kind,
        "all_sessions": args.all_sessions,
    });
    backend.answer::<Timeline>(&params, None, |found| {
        let header = ["ITEM", "TIME", "TOKENS", "TITLE"];
        let lines = list_items(&found.items, entry_line, header, |entry| {
            [
                entry.id.to_string(),
                when(entry.created_at),
                entry.tokens.to_string(),
                visible(&entry.title).into_owned(),
            ]
        });
        lines.join("\n")
    })
}

pub(crate) fn get(args: &GetArgs, backend: &Backend) -> Result<Answer, Failure> {
    backend.answer::<GetItems>(&json!({ "ids": args.ids.join(",") }), None, |found| {
        let mut parts: Vec<String> = found.items.iter().map(describe).collect();
        if !found.missing.is_empty() {
            parts.push(format!("not found: {}", visible(&found.missing.join(", "))));
        }
        parts.join("\n\n")
    })
}

fn result_lines(result: &SearchResult) -> String {
    let mut text = format!(
        "{}  {}  {}\n    {}\n    why: {}; {} tokens",
        result.id,
        when(result.created_at),
        visible(&result.title),
        visible(&result.snippet),
        visible(&result.why),
        result.tokens,
    );
    text += &files_line(&result.files);
    text
}

fn entry_line(entry: &TimelineEntry) -> String {
    let mut text = format!("{}  {}  {}", entry.id, when(entry.created_at), visible(&entry.title));
    text += &format!("  ({} tokens)", entry.tokens);
    text
}

fn describe(item: &ItemView) -> String {
    let mut parts = vec![format!("{}  {}  {}", item.id, when(item.created_at), visible(&item.title))];
    let details = [
        ("repo", item.repo.as_ref().map(ToString::to_string)),
        ("branch", item.branch.clone()),
        ("session", item.session_id.map(|id| id.to_string())),
        ("turn", item.turn_id.clone()),
        ("agent", item.agent.clone()),
    ];
    for (name, value) in details {
        if let Some(value) = value {
            parts.push(format!("{name:<8}{}", visible(&value)));
        }
    }
    if !item.files.is_empty() {
        parts.push(format!("{:<8}{}", "files", visible(&item.files.join(", "))));
    }
    parts.push(format!("\n{}", visible(&item.text)));
    parts.join("\n")
}

fn files_line(files: &[String]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let mut line = format!("\n    {}", visible(&files[..files.len().min(LISTED_FILES)].join(", ")));
    if files.len() > LISTED_FILES {
        line += &format!(" and {} more", files.len() - LISTED_FILES);
    }
    line
}
