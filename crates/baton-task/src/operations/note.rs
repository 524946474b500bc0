//! `task.note`

use baton_core::Fault;
use baton_core::task::{Role, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input, require_text};
use crate::rules::{RoleNote, RoleNoteKind};

/// Records a note of a role. Notes never block the task.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteNote {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role that writes the note, for example `reviewer`.
    pub agent: Role,
    /// Text of the note, for example "The proxy drops headers". At most 4096 bytes.
    pub text: String,
    /// `handover` for information the next role needs (one per role; a new one replaces it), `review` for a remark
    /// that does not block the work. Use `task_mark_blocked` for problems that must be fixed.
    #[serde(default)]
    pub kind: RoleNoteKind,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Store the text even if it appears to contain a secret (recorded in the audit log). Defaults to false.
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of `task.note`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WriteNoteOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// The note as it was stored.
    pub note: RoleNote,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for WriteNote {
    const NAME: &'static str = "task.note";
    const SUMMARY: &'static str =
        "Write a handover note for the next role, or a review note that does not block the work.";
    const EFFECT: Effect = Effect::Write;
    type Output = WriteNoteOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let text = require_text("text", &params.text)?;
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = Draft::open(environment, &params.task_id, &options)?;
        draft.context.role(&params.agent)?;
        draft.scan().value("text", &json!(text));
        let note = RoleNote {
            agent: params.agent.clone(),
            kind: params.kind,
            text: text.to_owned(),
            written_at: draft.now,
            written_by: draft.actor.clone(),
        };
        let notes = &mut draft.context.notes;
        notes.retain(|known| {
            let replaced = known.kind == RoleNoteKind::Handover || known.text == note.text;
            !(known.agent == note.agent && known.kind == note.kind && replaced)
        });
        notes.push(note.clone());
        let (context, warnings) = draft.save()?;
        Ok(WriteNoteOutput { next: context.next_command(), task_id: context.task_id, note, warnings })
    }
}
