//! `task.record`: records the state of a task in the index.

use baton_core::task::{Role, TaskId, TaskRecord, TaskStatus};
use baton_core::{Repo, Timestamp, Venture};

use crate::prelude::*;

const MAX_NAME_BYTES: usize = 4_096;

/// State of a task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RecordTaskParams")]
pub struct RecordTask {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Host name of the machine with the checkout, for example `build-3`.
    #[schemars(length(min = 1, max = 4096))]
    pub host: String,
    /// Path of the root of the checkout, for example `/home/ada/webshop`.
    #[schemars(length(min = 1, max = 4096))]
    pub checkout: String,
    /// Venture. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Option<Repo>,
    /// Title of the task, for example "Add passkey login".
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub title: String,
    /// Status of the task. Omit to remove the task from the index.
    pub status: Option<TaskStatus>,
    /// Role that currently holds the task, for example `reviewer`; null if no role holds it.
    pub holder: Option<Role>,
    /// Number of open drifts.
    #[serde(default)]
    pub open_drifts: u64,
    /// Time when the task files were last written. Defaults to the current time.
    pub updated_at: Option<Timestamp>,
}

/// State of the task in the index.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordTaskOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// True if the task is now in the index.
    pub listed: bool,
}

impl Operation<OnStore> for RecordTask {
    const NAME: &'static str = "task.record";
    const SUMMARY: &'static str =
        "Record the state of a task in the index, so that other machines can list it.";
    const EFFECT: Effect = Effect::Write;
    type Output = RecordTaskOutput;
    params_as_input!(|params| {
        let names =
            [("host", &params.host, 1), ("checkout", &params.checkout, 1), ("title", &params.title, 0)];
        Fault::all(names.map(|(field, text, least)| {
            let fits = (least..=MAX_NAME_BYTES).contains(&text.len());
            Fault::require(fits, field, format!("must have {least} to {MAX_NAME_BYTES} bytes"))
        }))
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let venture = context.venture(params.venture.as_ref())?;
        let task_id = params.task_id.clone();
        let Some(status) = params.status else {
            tx.delete_task(&venture, &params.host, &params.checkout, &task_id)?;
            return Ok(RecordTaskOutput { task_id, listed: false });
        };
        let record = TaskRecord {
            venture,
            host: params.host.clone(),
            checkout: params.checkout.clone(),
            task_id,
            repo: params.repo.clone(),
            title: params.title.clone(),
            status,
            holder: params.holder.clone(),
            open_drifts: params.open_drifts,
            updated_at: params.updated_at.unwrap_or(context.now),
        };
        tx.put_task(&record)?;
        Ok(RecordTaskOutput { task_id: record.task_id, listed: true })
    }
}
