//! Flags with the contents of a handoff, for `baton handoff create` and `baton session end`.

use clap::Args;
use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::output::Failure;
use crate::verbs::session::object;

/// Contents of a handoff.
#[derive(Debug, Args)]
pub(crate) struct HandoffArgs {
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
    /// Workflow that the work belongs to [default: workflow that the session saved to last]
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Checkpoint to continue from [default: latest of that workflow]
    #[arg(long, value_name = "ID")]
    checkpoint: Option<String>,
    /// Task that the work belongs to
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Branch with the work [default: branch of the session]
    #[arg(long)]
    branch: Option<String>,
    /// Commit with the work [default: commit of the session]
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
    /// File with uncommitted changes (repeatable)
    #[arg(long = "uncommitted", value_name = "PATH")]
    uncommitted_files: Vec<String>,
    /// Additional fields as a JSON object; its fields override the flags
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Replace secrets with [redacted:…] instead of rejecting the handoff
    #[arg(long)]
    redact_secrets: bool,
}

impl HandoffArgs {
    /// Returns the value of `redact_secrets`; null unless the flag is given.
    pub(crate) fn redact_secrets(&self) -> Option<bool> {
        self.redact_secrets.then_some(true)
    }

    /// Returns the branch with the work.
    pub(crate) fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    /// Returns the handoff as one JSON object.
    pub(crate) fn document(&self) -> Result<Map<String, Value>, Failure> {
        let summary = self.summary.as_deref().ok_or_else(|| {
            Failure::usage("cannot create a handoff: it has no summary")
                .hint("add --summary TEXT: what was done and what the next agent must know")
        })?;
        let mut document =
            self.payload.as_deref().map_or(Ok(Map::new()), |text| object("--payload", text))?;
        document.insert("summary".into(), summary.into());
        for (name, value) in [("status_label", &self.status_label), ("to_agent", &self.to_agent)] {
            document.extend(value.iter().map(|value| (name.to_owned(), value.as_str().into())));
        }
        for (name, value) in self.fields() {
            document.entry(name).or_insert(value);
        }
        Ok(document)
    }

    /// Returns the handoff, or `None` if no flag with contents is given.
    pub(crate) fn optional_document(&self) -> Result<Option<Map<String, Value>>, Failure> {
        let is_empty = self.summary.is_none()
            && self.status_label.is_none()
            && self.to_agent.is_none()
            && self.payload.is_none()
            && self.fields().is_empty();
        if is_empty { Ok(None) } else { self.document().map(Some) }
    }

    /// Returns the fields that were given as flags.
    fn fields(&self) -> Map<String, Value> {
        let text = |value: &Option<String>| value.as_deref().map(Value::from);
        let list = |items: &[String]| (!items.is_empty()).then(|| Value::from(items));
        let references: Map<String, Value> = present([
            ("workflow", text(&self.workflow)),
            ("checkpoint", text(&self.checkpoint)),
            ("task", text(&self.task)),
            ("branch", text(&self.branch)),
            ("commit", text(&self.commit)),
            ("uncommitted_files", list(&self.uncommitted_files)),
        ]);
        present([
            ("goal", text(&self.goal)),
            ("state", text(&self.state)),
            ("work_completed", list(&self.work_completed)),
            ("decisions", list(&self.decisions)),
            ("rejected", list(&self.rejected)),
            ("gotchas", list(&self.gotchas)),
            ("constraints", list(&self.constraints)),
            ("blockers", list(&self.blockers)),
            ("next_actions", list(&self.next_actions)),
            ("references", (!references.is_empty()).then(|| references.into())),
        ])
    }
}

fn present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
