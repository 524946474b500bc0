//! `baton search`, `baton timeline`, `baton get`, `baton file` and `baton how`

use baton_app::recall::{
    CommandRun, FileHistory, GetItems, ItemView, Search, SearchResult, Timeline, TimelineEntry,
};
use baton_core::{Sha256Hash, counted, visible};
use baton_git::Repository;
use clap::Args;
use serde::{Serialize, Serializer};

use crate::backend::Backend;
use crate::checkout::{find_root, normalize, repository_at};
use crate::exit::Exit;
use crate::hooks::hash_inside;
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, when, wrap};
use crate::verbs::memory::describe_mark;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton search why does the lease expire twice
  $ baton search drainQueue --kind observation --since 7d
  $ baton search '\"lease expired\" last week' --file worker.rs";

/// Indentation of the lines after the first one of a result.
const INDENT: usize = 4;

/// Number of files listed with a result.
const LISTED_FILES: usize = 5;

#[derive(Debug, Args, Serialize)]
pub(crate) struct SearchArgs {
    /// What to look for, in plain words
    #[arg(required = true, num_args = 1..)]
    #[serde(rename = "q", serialize_with = "in_one_line")]
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
    #[arg(skip)]
    current_branch: Option<String>,
}

/// Serializes words as one text.
fn in_one_line<S: Serializer>(words: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&words.join(" "))
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct TimelineArgs {
    /// Item id, for example turn_42
    id: String,
    /// Id of a later item: list the items between the two
    #[arg(long, value_name = "ID")]
    to: Option<String>,
    /// Maximum number of items on each side of the item, or between the two items, 1 to 200 [default: 10]
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

#[derive(Debug, Args, Serialize)]
pub(crate) struct FileArgs {
    /// Path of the file
    #[arg(value_name = "PATH")]
    file: String,
    /// Repository of the file, as owner/name [default: repository of the current checkout]
    #[arg(long)]
    repo: Option<String>,
    /// Maximum number of sessions, 1 to 100 [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    #[arg(skip)]
    content_hash: Option<Sha256Hash>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct HowArgs {
    /// Repository, as owner/name [default: all repositories]
    #[arg(long)]
    repo: Option<String>,
    /// Maximum number of runs, 1 to 100 [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Command, or words of it; options of baton come before it
    #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    #[serde(serialize_with = "in_one_line")]
    command: Vec<String>,
}

pub(crate) fn search(mut args: SearchArgs, backend: &Backend) -> Result<Answer, Failure> {
    let here = std::env::current_dir().ok().and_then(|folder| find_root(&folder));
    args.current_branch =
        here.and_then(|root| Repository::read_head_info(&root)).and_then(|head_info| head_info.branch);
    backend.answer::<Search>(&args, None, |found| {
        let mut lines: Vec<String> = found.results.iter().map(result_lines).collect();
        lines.push(match found.results.len() {
            0 => format!("nothing found, {:.1} ms", found.took_ms),
            count => {
                let results = counted(count as u64, "result");
                format!("{results}, {:.1} ms; read one with: baton get ID", found.took_ms)
            }
        });
        lines.extend(found.warning.as_ref().map(|warning| format!("warning: {warning}")));
        wrap(&lines.join("\n"), INDENT)
    })
}

pub(crate) fn timeline(args: &TimelineArgs, backend: &Backend) -> Result<Answer, Failure> {
    backend.answer::<Timeline>(args, None, |found| {
        let columns: [Column<TimelineEntry>; _] = [
            (Whole("ITEM"), |entry| entry.id.to_string()),
            (Whole("TIME"), |entry| when(entry.created_at)),
            (Whole("TOKENS"), |entry| entry.tokens.to_string()),
            (Text("TITLE"), |entry| visible(&entry.title).into_owned()),
        ];
        list_items(&found.items, "", entry_line, columns).join("\n")
    })
}

pub(crate) fn get(args: &GetArgs, backend: &Backend) -> Result<Answer, Failure> {
    let params = GetItems { ids: Some(args.ids.join(",")), ..GetItems::default() };
    backend.answer::<GetItems>(&params, None, |found| {
        let mut parts: Vec<String> = found.items.iter().map(describe).collect();
        if !found.missing.is_empty() {
            parts.push(format!("not found: {}", visible(&found.missing.join(", "))));
        }
        parts.join("\n\n")
    })
}

pub(crate) fn file(mut args: FileArgs, backend: &Backend) -> Result<Answer, Failure> {
    args.find_in_checkout()?;
    backend
        .answer::<GetItems>(&args, None, |found| found.file.as_ref().map(describe_file).unwrap_or_default())
}

impl FileArgs {
    /// Makes the path relative to the current checkout, and adds the repository and the hash of the content. Outside of a
    /// checkout, or with another repository, the path is used as it is.
    fn find_in_checkout(&mut self) -> Result<(), Failure> {
        let here = std::env::current_dir().ok();
        let Some((folder, root)) = here.and_then(|folder| find_root(&folder).map(|root| (folder, root)))
        else {
            return Ok(());
        };
        let repo = repository_at(&root)?.map(|repo| repo.as_str().to_owned());
        if self.repo.is_some() && self.repo != repo {
            return Ok(());
        }
        let outside = || {
            let message = format!("cannot show {}: it is outside of {}", self.file, root.display());
            Failure::new(Exit::Validation, "invalid_request", message)
                .hint("give a path inside the checkout, or name its repository with --repo")
        };
        let path = normalize(&folder.join(&self.file));
        let inside = path.strip_prefix(&root).map_err(|_| outside())?;
        self.content_hash = hash_inside(&root, inside);
        self.file = inside.to_str().filter(|path| !path.is_empty()).ok_or_else(outside)?.to_owned();
        self.repo = repo;
        Ok(())
    }
}

fn describe_file(file: &FileHistory) -> String {
    let path = visible(&file.path);
    if file.sessions.is_empty() && file.notes.is_empty() {
        return format!("nothing is recorded about {path}");
    }
    let changed = match file.changed_since {
        Some(true) => "; changed since",
        Some(false) => "; unchanged since",
        None => "",
    };
    let mut lines = vec![format!("{path}: used in {}{changed}", counted(file.session_count, "session"))];
    for note in &file.notes {
        lines.push(format!(
            "{}  {}  {}: {}",
            note.id,
            when(note.created_at),
            note.kind.as_str(),
            visible(&note.text)
        ));
    }
    for session in &file.sessions {
        let agent = session.agent.as_deref().unwrap_or("unknown agent");
        let branch = session.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
        lines.push(format!(
            "{}  {}  {}: {}, {}",
            session.session_id,
            when(session.last_used_at),
            visible(&format!("{agent}{branch}")),
            counted(session.changes, "change"),
            counted(session.reads, "read")
        ));
        lines.extend(session.turns.iter().map(|turn| format!("    {}  {}", turn.id, visible(&turn.title))));
    }
    wrap(&lines.join("\n"), INDENT)
}

pub(crate) fn how(args: HowArgs, backend: &Backend) -> Result<Answer, Failure> {
    backend.answer::<GetItems>(&args, None, |found| {
        let runs = found.command.as_ref().map(|command| command.runs.as_slice()).unwrap_or_default();
        if runs.is_empty() {
            return "no earlier runs are recorded".to_owned();
        }
        wrap(&runs.iter().map(describe_run).collect::<Vec<_>>().join("\n"), INDENT)
    })
}

fn describe_run(run: &CommandRun) -> String {
    let agent = run.agent.as_deref().unwrap_or("unknown agent");
    format!(
        "{}  {}  {}, {}\n    {}\n    {}",
        run.id,
        when(run.created_at),
        visible(agent),
        run.repo,
        visible(&run.title),
        visible(&run.summary)
    )
}

fn result_lines(result: &SearchResult) -> String {
    format!(
        "{}  {}  {}\n    {}\n    why: {}; {} tokens{}",
        result.id,
        when(result.created_at),
        visible(&result.title),
        visible(&result.snippet),
        visible(&result.why),
        result.tokens,
        files_line(&result.files)
    )
}

fn entry_line(entry: &TimelineEntry) -> String {
    let (time, title) = (when(entry.created_at), visible(&entry.title));
    format!("{}  {time}  {title}  ({} tokens)", entry.id, entry.tokens)
}

fn describe(item: &ItemView) -> String {
    let mut parts = vec![format!("{}  {}  {}", item.id, when(item.created_at), visible(&item.title))];
    let list = |files: &[String]| (!files.is_empty()).then(|| files.join(", "));
    let details = [
        ("repo", item.repo.as_ref().map(ToString::to_string)),
        ("branch", item.branch.clone()),
        ("session", item.session_id.map(|id| id.to_string())),
        ("turn", item.turn_id.clone()),
        ("agent", item.agent.clone()),
        ("mark", item.mark.as_ref().map(describe_mark)),
        ("files", list(&item.files)),
        ("changed", list(&item.changed_files).map(|files| format!("{files} since this was recorded"))),
    ];
    for (name, value) in details {
        if let Some(value) = value {
            parts.push(format!("{name:<8}{}", visible(&value)));
        }
    }
    parts.push(format!("\n{}", visible(&item.text)));
    parts.join("\n")
}

/// Returns the line with the first files of a result; empty if there are none.
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
