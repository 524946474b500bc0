//! Named fields of a handoff payload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Named fields of a handoff. Fields that the payload does not have are null or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffFields {
    /// What the work is for.
    pub goal: Option<String>,
    /// What works and which checks fail.
    pub state: Option<String>,
    /// What was finished, one item each.
    pub work_completed: Vec<String>,
    /// Decisions with their reasons.
    pub decisions: Vec<String>,
    /// Rejected approaches with the reasons.
    pub rejected: Vec<String>,
    /// Surprising facts that cost time.
    pub gotchas: Vec<String>,
    /// Requirements that limit the solution.
    pub constraints: Vec<String>,
    /// Problems that block the work, for example `No access to the staging database.`
    pub blockers: Vec<String>,
    /// Next actions, in order.
    pub next_actions: Vec<String>,
    /// Where the work is.
    pub references: HandoffReferences,
}

/// Places that a handoff refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffReferences {
    /// Workflow id, for example `auth-migration`.
    pub workflow: Option<String>,
    /// Checkpoint id (`ckpt_…`).
    pub checkpoint: Option<String>,
    /// Task id, for example `TASK-0824`.
    pub task: Option<String>,
    /// Git branch, for example `feature/login`.
    pub branch: Option<String>,
    /// Git commit, for example `9f3c2d1`.
    pub commit: Option<String>,
    /// Files with uncommitted changes.
    pub uncommitted_files: Vec<String>,
}

impl HandoffFields {
    /// Reads the named fields of a payload. Fields of another type, which older versions accepted, are skipped.
    pub fn of(payload: &Map<String, Value>) -> Self {
        let list = |name| texts(payload.get(name));
        Self {
            goal: text(payload.get("goal")),
            state: text(payload.get("state")),
            work_completed: list("work_completed"),
            decisions: list("decisions"),
            rejected: list("rejected"),
            gotchas: list("gotchas"),
            constraints: list("constraints"),
            blockers: list("blockers"),
            next_actions: list("next_actions"),
            references: HandoffReferences::of(payload.get("references")),
        }
    }

    /// Returns the fields that have content as labelled texts, in the order in which a reader needs them.
    pub fn labelled(&self) -> Vec<(&'static str, String)> {
        let one = |text: &Option<String>| text.iter().cloned().collect::<Vec<_>>();
        let groups = [
            ("goal", one(&self.goal)),
            ("state", one(&self.state)),
            ("done", self.work_completed.clone()),
            ("decision", self.decisions.clone()),
            ("rejected", self.rejected.clone()),
            ("gotcha", self.gotchas.clone()),
            ("constraint", self.constraints.clone()),
            ("blocked by", self.blockers.clone()),
            ("next", self.next_actions.clone()),
            ("workflow", one(&self.references.workflow)),
            ("checkpoint", one(&self.references.checkpoint)),
            ("task", one(&self.references.task)),
            ("branch", one(&self.references.branch)),
            ("commit", one(&self.references.commit)),
            ("uncommitted", self.references.uncommitted_files.clone()),
        ];
        groups
            .into_iter()
            .flat_map(|(label, texts)| texts.into_iter().map(move |text| (label, text)))
            .collect()
    }
}

impl HandoffReferences {
    fn of(value: Option<&Value>) -> Self {
        let member = |name: &str| value.and_then(|references| references.get(name));
        Self {
            workflow: text(member("workflow")),
            checkpoint: text(member("checkpoint")),
            task: text(member("task")),
            branch: text(member("branch")),
            commit: text(member("commit")),
            uncommitted_files: texts(member("uncommitted_files")),
        }
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value?.as_str().map(str::to_owned).filter(|text| !text.is_empty())
}

fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(item_text).collect(),
        _ => text(value).into_iter().collect(),
    }
}

/// Returns an item as text. An object such as `{"decision": …, "reason": …}` becomes its first text and the others with
/// their names.
fn item_text(item: &Value) -> Option<String> {
    let Value::Object(members) = item else { return text(Some(item)) };
    let mut texts = members.iter().filter_map(|(name, value)| Some((name, text(Some(value))?)));
    let (_, first) = texts.next()?;
    let rest: Vec<String> = texts.map(|(name, text)| format!("{name}: {text}")).collect();
    Some(if rest.is_empty() { first } else { format!("{first} ({})", rest.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(payload: Value) -> HandoffFields {
        HandoffFields::of(payload.as_object().unwrap())
    }

    #[test]
    fn reads_texts_lists_objects_and_references() {
        let read = fields(json!({
            "goal": "Fast login", "state": "", "decisions": ["a", { "decision": "Use WAL", "reason": "readers" }],
            "rejected": "Polling", "next_actions": ["x", 7, {}],
            "references": { "task": "TASK-1", "uncommitted_files": ["a.rs"], "other": 1 },
        }));
        assert_eq!((read.goal.as_deref(), read.state.as_deref()), (Some("Fast login"), None));
        assert_eq!(read.decisions, ["a", "Use WAL (reason: readers)"]);
        assert_eq!((read.rejected, read.next_actions), (vec!["Polling".to_owned()], vec!["x".to_owned()]));
        assert_eq!(read.references.task.as_deref(), Some("TASK-1"));
        assert_eq!(read.references.uncommitted_files, ["a.rs"]);
        assert_eq!(fields(json!({ "references": "none", "goal": 7 })), HandoffFields::default());
    }

    #[test]
    fn labels_every_text_in_reading_order() {
        let read =
            fields(json!({ "next_actions": ["n1", "n2"], "goal": "g", "references": { "commit": "c" } }));
        let expected = [("goal", "g"), ("next", "n1"), ("next", "n2"), ("commit", "c")];
        assert_eq!(read.labelled(), expected.map(|(label, text)| (label, text.to_owned())));
    }
}
