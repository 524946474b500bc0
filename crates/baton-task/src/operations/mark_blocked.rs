//! `task.mark_blocked`

use baton_core::Fault;
use baton_core::task::{Role, RoleState, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::folder::{Draft, Writing};
use crate::operation::{Effect, TaskOperation};
use crate::place::TaskPlace;

/// How long a finding or note may be, in bytes.
pub(crate) const MAX_TEXT: usize = 4_096;

/// Records something that must be dealt with before the work can go on.
#[derive(Debug)]
pub struct MarkBlocked;

/// Parameters of `task.mark_blocked`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkBlockedParams {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role that reports the finding, for example `reviewer`.
    pub agent: Role,
    /// What must be fixed first, at most 4096 bytes.
    pub finding: String,
    /// Actor to record. Defaults to the agent or user name.
    #[serde(default)]
    pub actor: Option<String>,
    /// Store the text even if it looks like it holds a secret (recorded in the audit).
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of `task.mark_blocked`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MarkBlockedOutput {
    /// Task id.
    pub task_id: TaskId,
    /// Role.
    pub agent: Role,
    /// State of the role after the call.
    pub state: RoleState,
    /// Command that continues the task.
    pub next: String,
    /// Warnings.
    pub warnings: Vec<String>,
}

impl TaskOperation for MarkBlocked {
    const NAME: &'static str = "task.mark_blocked";
    const SUMMARY: &'static str =
        "Record a blocking finding. The role stops until an earlier role resolves it.";
    const EFFECT: Effect = Effect::Write;
    const IDEMPOTENT: bool = true;
    type Params = MarkBlockedParams;
    type Output = MarkBlockedOutput;

    fn run(place: &TaskPlace, params: &MarkBlockedParams) -> Result<MarkBlockedOutput, Fault> {
        let finding = require_text("finding", &params.finding)?;
        let writing = Writing {
            verb: "mark-blocked",
            actor: params.actor.as_deref(),
            force_secrets: params.force_secrets,
        };
        let mut draft = Draft::open(place, &params.task_id, &writing)?;
        draft.context.require_no_drift()?;
        draft.scan().value("finding", &json!(finding));
        draft.require_saved(&params.agent)?;
        draft.context.block(&params.agent, Some(finding))?;
        let actor = draft.actor.clone();
        draft.context.role_mut(&params.agent)?.actor = Some(actor);
        let (context, warnings) = draft.save()?;
        let state = context.role(&params.agent)?.clone();
        let next = context.next_command();
        Ok(MarkBlockedOutput { task_id: context.task_id, agent: params.agent.clone(), state, next, warnings })
    }
}

/// Checks a text that a person or agent wrote.
pub(crate) fn require_text<'a>(field: &str, text: &'a str) -> Result<&'a str, Fault> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Fault::invalid(field, "is empty"));
    }
    if text.len() > MAX_TEXT {
        let problem = format!("has {} bytes, at most {MAX_TEXT} are allowed", text.len());
        return Err(Fault::invalid(field, problem)
            .hint("attach a file with baton task attach-evidence and refer to it"));
    }
    Ok(text)
}
