//! Flags with the contents of a handoff, for `baton handoff create`, `baton handoff leave` and `baton session end`.

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::output::Failure;

// A handoff as parameters of an operation.
#[derive(Debug, Args, Serialize)]
pub(crate) struct HandoffArgs {
    #[command(flatten)]
    #[serde(skip)]
    contents: ContentArgs,
    /// Replace secrets with [redacted:…] instead of rejecting the handoff
    #[arg(long)]
    redact_secrets: bool,
    #[arg(skip)]
    handoff: Option<Map<String, Value>>,
}

// Contents of a handoff. The fields have the names of the handoff.
#[derive(Debug, Args, Serialize)]
struct ContentArgs {
    /// What was done and what the next agent must know
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<String>,
    /// Short status of the work, for example in-progress, blocked or done
    #[arg(long = "status", value_name = "LABEL")]
    status_label: Option<String>,
    /// Agent that should take over [default: any agent]
    #[arg(long, value_name = "AGENT")]
    to_agent: Option<String>,
    /// What the work is for
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    goal: Option<String>,
    /// What works and which checks fail
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    state: Option<String>,
    /// Completed item (repeatable)
    #[arg(long = "done", value_name = "TEXT", allow_hyphen_values = true)]
    work_completed: Vec<String>,
    /// Decision with its reason (repeatable)
    #[arg(long = "decision", value_name = "TEXT", allow_hyphen_values = true)]
    decisions: Vec<String>,
    /// Rejected approach with the reason (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    rejected: Vec<String>,
    /// Surprising fact that cost time (repeatable)
    #[arg(long = "gotcha", value_name = "TEXT", allow_hyphen_values = true)]
    gotchas: Vec<String>,
    /// Requirement that limits the solution (repeatable)
    #[arg(long = "constraint", value_name = "TEXT", allow_hyphen_values = true)]
    constraints: Vec<String>,
    /// Problem that blocks the work (repeatable)
    #[arg(long = "blocker", value_name = "TEXT", allow_hyphen_values = true)]
    blockers: Vec<String>,
    /// Next action (repeatable)
    #[arg(long = "next", value_name = "TEXT", allow_hyphen_values = true)]
    next_actions: Vec<String>,
    #[command(flatten)]
    references: ReferenceArgs,
    /// Additional fields as a JSON object; its fields override the flags, except --summary, --status and --to-agent
    #[arg(long, value_name = "JSON")]
    #[serde(skip)]
    payload: Option<String>,
}

// What a handoff refers to.
#[derive(Debug, Args, Serialize)]
struct ReferenceArgs {
    /// Workflow that the work belongs to [default: workflow to which the session saved last]
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Checkpoint to continue from [default: latest of that workflow]
    #[arg(long, value_name = "ID")]
    checkpoint: Option<String>,
    /// Task that the work belongs to
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Branch with the work [default: branch of the session, if there is one]
    #[arg(long)]
    branch: Option<String>,
    /// Commit with the work [default: commit of the session, if there is one]
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
    /// File with uncommitted changes (repeatable)
    #[arg(long = "uncommitted", value_name = "PATH")]
    uncommitted_files: Vec<String>,
}

impl HandoffArgs {
    /// Returns the branch with the work.
    pub(crate) fn branch(&self) -> Option<&str> {
        self.contents.references.branch.as_deref()
    }

    /// Reads the handoff from the flags, if any of them is given.
    pub(crate) fn read_if_given(&mut self) -> Result<(), Failure> {
        let is_empty = self.contents.payload.is_none() && self.contents.given().is_empty();
        if is_empty { Ok(()) } else { self.read() }
    }

    /// Reads the handoff from the flags.
    pub(crate) fn read(&mut self) -> Result<(), Failure> {
        let contents = &self.contents;
        if contents.summary.is_none() {
            return Err(Failure::usage("cannot create a handoff: it has no summary")
                .hint("add --summary TEXT: what was done and what the next agent must know"));
        }
        let mut document =
            contents.payload.as_deref().map_or(Ok(Map::new()), |text| object("--payload", text))?;
        for (name, value) in contents.given() {
            match name.as_str() {
                "summary" | "status_label" | "to_agent" => _ = document.insert(name, value),
                _ => _ = document.entry(name).or_insert(value),
            }
        }
        self.handoff = Some(document);
        Ok(())
    }
}

impl ContentArgs {
    /// Returns the fields that were given as flags.
    fn given(&self) -> Map<String, Value> {
        let mut fields = present(json!(self));
        let references = present(fields.remove("references").unwrap_or_default());
        if !references.is_empty() {
            fields.insert("references".into(), references.into());
        }
        fields
    }
}

/// Parses a JSON object from an argument with the same strict rules as a request body.
pub(crate) fn object(flag: &str, text: &str) -> Result<Map<String, Value>, Failure> {
    let wrong = |problem: String| {
        Failure::new(Exit::Validation, "invalid_json", format!("cannot read {flag}: {problem}"))
            .hint(format!("pass a JSON object, for example {flag} '{{\"key\": \"value\"}}'"))
    };
    match baton_core::read_strict(text.as_bytes()) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(wrong("it is not a JSON object".into())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Returns the members of an object that are neither null nor an empty list.
fn present(object: Value) -> Map<String, Value> {
    let Value::Object(mut members) = object else { return Map::new() };
    members.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()));
    members
}
