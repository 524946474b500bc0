//! `baton import claude-mem DB`: imports the memory of claude-mem.
//!
//! Observations, session summaries and prompts become observations of the session that they belong to. Column names of
//! older versions are accepted: `sdk_session_id` for `memory_session_id`, `claude_session_id` for `content_session_id`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use baton_core::{Repo, Timestamp};
use baton_store::ForeignDatabase;
use clap::Args;
use serde_json::{Map, Value, json};

use super::invalid::InvalidLines;
use super::observations::{Batch, parse, report};
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure};
use crate::progress::{Amount, Progress};

/// Number of rows that are read at once.
const PAGE_ROWS: usize = 500;
/// Maximum length of a text in bytes; the rest is left out.
const MAX_TEXT_BYTES: usize = 60_000;

type Row = Map<String, Value>;
type Convert = fn(&Row) -> Memory;

/// Content of a row.
struct Memory {
    title: String,
    summary: String,
    detail: String,
    files: Vec<Value>,
}

/// Tables with the prefix of the ids of their rows.
const TABLES: [(&str, &str, Convert); 3] = [
    ("observations", "observation", observation),
    ("session_summaries", "summary", summary),
    ("user_prompts", "prompt", prompt),
];

#[derive(Debug, Args)]
pub(crate) struct ClaudeMemArgs {
    /// Database of claude-mem
    #[arg(value_name = "DB")]
    database: PathBuf,
    /// Repository of all records [default: local/ and the project of each record]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Venture [default: session.venture]
    #[arg(long)]
    venture: Option<String>,
}

pub(super) fn import(args: &ClaudeMemArgs, config: &Config) -> Result<Answer, Failure> {
    let database = Database::open(&args.database)?;
    let mut batch = Batch::new(config, args.repo.as_deref(), args.venture.as_deref())?;
    let sessions = Sessions::new(&database.rows("SELECT * FROM sdk_sessions", &[])?, args.repo.is_none());
    let (mut invalid, progress) =
        (InvalidLines::default(), Progress::new("importing", Amount::Items("records")));
    for (table, kind, convert) in TABLES {
        let mut last = 0;
        while let Some(page) = database.page(table, last)? {
            for row in &page {
                last = row["id"].as_i64().unwrap_or(i64::MAX);
                let line = sessions.line(row, kind, convert).to_string();
                match parse(Some(line.as_bytes())) {
                    Ok(None) => {}
                    Ok(Some(observation)) => batch.add(observation, line.len())?,
                    Err(reason) => {
                        invalid.add(&format!("{} {table}", database.path), last.unsigned_abs(), reason)
                    }
                }
            }
            progress.add(page.len() as u64);
        }
    }
    batch.send()?;
    drop(progress);
    report(&batch, &invalid)
}

struct Database {
    path: String,
    database: ForeignDatabase,
}

impl Database {
    fn open(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let database = ForeignDatabase::open(path).map_err(|error| failed(&name, &error.to_string()))?;
        let database = Self { path: name, database };
        if !database.has_table("observations")? || !database.has_table("sdk_sessions")? {
            let reason =
                "it is not a database of claude-mem: it has no tables `observations` and `sdk_sessions`";
            return Err(failed(&database.path, reason));
        }
        Ok(database)
    }

    fn has_table(&self, name: &str) -> Result<bool, Failure> {
        self.database.has_table(name).map_err(|error| failed(&self.path, &error.to_string()))
    }

    fn rows(&self, sql: &str, params: &[&str]) -> Result<Vec<Row>, Failure> {
        self.database.rows(sql, params).map_err(|error| failed(&self.path, &error.to_string()))
    }

    /// Returns the rows of a table after an id; `None` at the end, and for a table that this version does not have.
    fn page(&self, table: &str, last: i64) -> Result<Option<Vec<Row>>, Failure> {
        if !self.has_table(table)? {
            return Ok(None);
        }
        let sql =
            format!("SELECT * FROM {table} WHERE id > CAST($1 AS INTEGER) ORDER BY id LIMIT {PAGE_ROWS}");
        let page = self.rows(&sql, &[last.to_string().as_str()])?;
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}

fn failed(path: &str, reason: &str) -> Failure {
    Failure::new(Exit::Failure, "read_failed", format!("cannot import {path}: {reason}"))
        .hint("name the database of claude-mem, for example ~/.claude-mem/claude-mem.db")
}

/// Sessions of claude-mem.
struct Sessions {
    /// Chat of each session.
    chats: HashMap<String, String>,
    /// Project and agent of each chat.
    facts: HashMap<String, (String, String)>,
    /// True if the repository of a record follows from its project.
    has_project_repos: bool,
}

impl Sessions {
    fn new(rows: &[Row], has_project_repos: bool) -> Self {
        let mut sessions = Self { chats: HashMap::new(), facts: HashMap::new(), has_project_repos };
        for row in rows {
            let chat = text(row, &["content_session_id", "claude_session_id"]);
            sessions.chats.insert(text(row, &["memory_session_id", "sdk_session_id"]), chat.clone());
            let agent = match text(row, &["platform_source"]).as_str() {
                "" | "claude" => "claude-code".to_owned(),
                other => other.to_owned(),
            };
            sessions.facts.insert(chat, (text(row, &["project"]), agent));
        }
        sessions
    }

    /// Returns a row as a line of an import of observations.
    fn line(&self, row: &Row, kind: &str, convert: Convert) -> Value {
        let Memory { title, summary, detail, files } = convert(row);
        let session = text(row, &["memory_session_id", "sdk_session_id"]);
        let named = text(row, &["content_session_id", "claude_session_id"]);
        let chat =
            if named.is_empty() { self.chats.get(&session).cloned().unwrap_or(session) } else { named };
        let (project, agent) = self.facts.get(&chat).cloned().unwrap_or_default();
        let own = text(row, &["project"]);
        let repo = Repo::of_folder(if own.is_empty() { &project } else { &own });
        let millis = row.get("created_at_epoch").and_then(Value::as_i64).map(Timestamp::from_millis);
        let created_at = text(row, &["created_at"]).parse::<Timestamp>().ok().or(millis);
        json!({
            "title": limited(&title), "summary": limited(&summary),
            "detail": Some(limited(&detail)).filter(|detail| !detail.is_empty()),
            "files_touched": files, "external_id": format!("{kind}-{}", row["id"]),
            "repo": repo.filter(|_| self.has_project_repos), "session": Some(chat).filter(|chat| !chat.is_empty()),
            "agent": Some(agent).filter(|agent| !agent.is_empty()), "created_at": created_at,
        })
    }
}

fn observation(row: &Row) -> Memory {
    let title = first_line(&text(row, &["title", "subtitle", "narrative", "text"]));
    let summary = text(row, &["narrative", "subtitle", "text", "title"]);
    let facts = list(row, "facts").into_iter().filter_map(|fact| fact.as_str().map(str::to_owned));
    let detail: Vec<String> = [text(row, &["subtitle"])].into_iter().chain(facts).collect();
    let files = [list(row, "files_modified"), list(row, "files_read")].concat();
    Memory { title, summary, detail: detail.join("\n").trim().to_owned(), files }
}

fn summary(row: &Row) -> Memory {
    let part = |(label, column): (&str, &str)| {
        let text = text(row, &[column]);
        (!text.is_empty()).then(|| format!("{label}: {text}"))
    };
    let parts = [("Done", "completed"), ("Learned", "learned"), ("Next", "next_steps")];
    let more = [("Investigated", "investigated"), ("Notes", "notes")];
    let joined = |parts: &[(&'static str, &'static str)]| {
        parts.iter().copied().filter_map(part).collect::<Vec<_>>().join("\n")
    };
    let request = text(row, &["request"]);
    let files = [list(row, "files_edited"), list(row, "files_read")].concat();
    let (done, detail) = (joined(&parts), joined(&more));
    let title = if request.is_empty() { "Session summary".to_owned() } else { first_line(&request) };
    Memory { title, summary: if done.is_empty() { request } else { done }, detail, files }
}

fn prompt(row: &Row) -> Memory {
    let text = text(row, &["prompt_text"]);
    Memory { title: first_line(&text), summary: text, detail: String::new(), files: Vec::new() }
}

/// Returns the first text of some columns that is not empty.
fn text(row: &Row, columns: &[&str]) -> String {
    let texts = columns.iter().filter_map(|column| row.get(*column)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty()).unwrap_or_default().to_owned()
}

/// Returns the texts of a column that holds a JSON list.
fn list(row: &Row, column: &str) -> Vec<Value> {
    let values: Vec<Value> = serde_json::from_str(&text(row, &[column])).unwrap_or_default();
    values.into_iter().filter(Value::is_string).collect()
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().to_owned()
}

fn limited(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default()
}
