//! `task.mark_blocked`

use baton_core::Fault;
use baton_core::task::{Role, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input, require_text};
use crate::rules::RoleState;
use crate::unsaved::require_saved;

/// Records a finding that blocks a role until it is fixed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkBlocked {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role that reports the finding, for example `reviewer`.
    pub agent: Role,
    /// Problem that must be fixed, for example "No test covers logout". At most 4096 bytes.
    pub finding: String,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Store the text even if it appears to contain a secret (recorded in the audit log). Defaults to false.
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of `task.mark_blocked`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MarkBlockedOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role in the task, for example `implementer`.
    pub agent: Role,
    /// State of the role after the call.
    pub state: RoleState,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for MarkBlocked {
    const NAME: &'static str = "task.mark_blocked";
    const SUMMARY: &'static str = "Record a blocking finding and release the task, so that an earlier role can fix the problem. The finding is \
         resolved when the role that reported it acquires the task again and finishes.";
    const EFFECT: Effect = Effect::Write;
    type Output = MarkBlockedOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let finding = require_text("finding", &params.finding)?;
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = Draft::open(environment, &params.task_id, &options)?;
        draft.context.require_no_drift()?;
        draft.scan().value("finding", &json!(finding));
        require_saved(&draft, &params.agent)?;
        draft.context.block(&params.agent, Some(finding))?;
        let state = draft.role(&params.agent)?.clone();
        let (context, warnings) = draft.save()?;
        let next = context.next_command();
        Ok(MarkBlockedOutput { task_id: context.task_id, agent: params.agent.clone(), state, next, warnings })
    }
}
