//! `baton requests`

use std::collections::BTreeSet;
use std::time::Duration;

use baton_app::request::ListRequests;
use baton_core::{ActorKeyId, LoggedRequest, RequestRecord, Since, StatusFilter, visible};
use clap::Args;
use serde::Serialize;

use crate::backend::Backend;
use crate::output::{Answer, Failure, Format, Printed, print_line, to_json};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, page_text, when};

/// Maximum page size of the operation.
const MAX_PAGE: usize = 200;
/// Time between two reads of the log while it is followed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Records before the newest one that are read again while the log is followed: several servers on one
/// database may commit records in another order than their ids.
const OVERLAP: i64 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct RequestsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Maximum number of records
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Show records with an id lower than this
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    /// Print the latest records in order of time, then new ones as they are written
    #[arg(long, short, conflicts_with = "before")]
    follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

// Filters of the log.
#[derive(Debug, Clone, Args, Serialize)]
struct FilterArgs {
    /// Status code (404), class (4xx), or error for every status from 400
    #[arg(long)]
    status: Option<StatusFilter>,
    /// Credential, as the 16 hex digits of its actor_key_id
    #[arg(long, value_name = "KEY_ID")]
    actor: Option<ActorKeyId>,
    /// Session that the request named, started or resumed
    #[arg(long, value_name = "SESSION_ID")]
    #[serde(rename = "session_id")]
    session: Option<String>,
    /// Path (/heartbeat), or operation of an MCP or CLI call (session.heartbeat)
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,
    /// Earliest time: RFC 3339, or a duration before now (90s, 15m, 2h, 7d)
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,
}

/// Parameters of one page of the log.
#[derive(Serialize)]
struct Page<'a> {
    #[serde(flatten)]
    filter: &'a FilterArgs,
    after: Option<i64>,
    before: Option<i64>,
    limit: usize,
}

/// Records, newest first, and the id below which the list continues.
#[derive(Serialize)]
struct Found {
    requests: Vec<LoggedRequest>,
    next_before: Option<i64>,
}

impl RequestsArgs {
    /// Reads the newest `limit` records below `before` and above `after`, page by page.
    fn find(
        &self,
        backend: &Backend,
        limit: usize,
        after: Option<i64>,
        before: Option<i64>,
    ) -> Result<Found, Failure> {
        let mut found = Found { requests: Vec::new(), next_before: before };
        loop {
            let limit_of_page = (limit - found.requests.len()).min(MAX_PAGE);
            let params =
                Page { filter: &self.filter, after, before: found.next_before, limit: limit_of_page };
            let page = backend.call::<ListRequests>(&params, None)?;
            found.requests.extend(page.requests);
            found.next_before = page.next_before;
            if found.requests.len() >= limit || found.next_before.is_none() {
                return Ok(found);
            }
        }
    }

    /// Prints a record as text or as JSON.
    fn print(&self, format: Format, request: &LoggedRequest) -> Result<Printed, Failure> {
        let is_json = self.json || format == Format::Json;
        let line = if is_json { to_json(request)?.to_string() } else { describe(&request.record) };
        Ok(print_line(&line))
    }
}

pub(crate) fn run(args: &RequestsArgs, format: Format, backend: &Backend) -> Result<Answer, Failure> {
    if args.follow {
        return follow(args, format, backend);
    }
    let found = args.find(backend, args.limit as usize, None, args.before)?;
    if args.json {
        for request in &found.requests {
            if args.print(format, request)? == Printed::ReaderGone {
                break;
            }
        }
        return Ok(Answer::silent());
    }
    let columns: [Column<LoggedRequest>; _] = [
        (Whole("TIME"), |request| when(request.record.timestamp)),
        (Whole("STATUS"), |request| request.record.status_code.to_string()),
        (Text("REQUEST"), |request| format!("{} {}", request.record.method, request.record.endpoint)),
        (Whole("MS"), |request| request.record.duration_ms.to_string()),
        (Text("AGENT"), |request| request.record.agent.clone().unwrap_or_default()),
        (Text("REPOSITORY"), |request| request.record.repo.clone().unwrap_or_default()),
        (Text("ERROR"), |request| request.record.error_message.clone().unwrap_or_default()),
    ];
    let lines =
        list_items(&found.requests, "no requests match", |request| describe(&request.record), columns);
    let text = page_text(lines, "--before", found.next_before);
    Answer::new(&found, text)
}

/// Prints records as they are written, until the reader of the output is gone or the process is ended.
fn follow(args: &RequestsArgs, format: Format, backend: &Backend) -> Result<Answer, Failure> {
    let mut printed = BTreeSet::new();
    let mut found = args.find(backend, args.limit as usize, None, None)?;
    // Records before the first one shown are never printed.
    let oldest = found.requests.last().map_or(0, |request| request.id);
    loop {
        for request in found.requests.iter().rev() {
            if printed.insert(request.id) && args.print(format, request)? == Printed::ReaderGone {
                return Ok(Answer::silent());
            }
        }
        let newest = printed.last().copied().unwrap_or(0);
        printed = printed.split_off(&(newest - OVERLAP));
        std::thread::sleep(POLL_INTERVAL);
        let after = (newest - OVERLAP).max(oldest - 1);
        found = args.find(backend, usize::MAX, Some(after), None)?;
    }
}

fn describe(request: &RequestRecord) -> String {
    let mut line = format!(
        "{}  {}  {} {}  {} ms",
        request.timestamp, request.status_code, request.method, request.endpoint, request.duration_ms
    );
    if request.request_count > 1 {
        line.push_str(&format!("  {} requests", request.request_count));
    }
    let texts = [
        ("agent", request.agent.clone()),
        ("venture", request.venture.clone()),
        ("repo", request.repo.clone()),
        ("track", request.track.map(|track| track.to_string())),
        ("session", request.session_id.map(|id| id.to_string())),
        ("actor", request.actor_key_id.as_ref().map(ToString::to_string)),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            line.push_str(&format!("  {name}={text}"));
        }
    }
    if request.idempotency_hit {
        line.push_str("  replayed");
    }
    if let Some(message) = &request.error_message {
        line.push_str(&format!("\n    {message}"));
    }
    visible(&line).into_owned()
}
