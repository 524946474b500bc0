//! `checkpoint.workflows`: which workflows there are, for a chat that starts without knowing.

use baton_core::checkpoint::{Workflow, WorkflowId};
use baton_core::{Fault, Repo, Timestamp, Venture};
use baton_store::{Tx, WorkflowFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::find::venture_of;
use super::list::window;
use crate::operation::{Context, Effect, Operation, store_fault};

/// Lists workflows.
#[derive(Debug)]
pub struct ListWorkflows;

/// Which workflows.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListWorkflowsParams {
    /// In this repository.
    #[serde(default)]
    pub repo: Option<Repo>,
    /// With this name: the `workflowId` of the context, or the name of the first checkpoint.
    #[serde(default)]
    pub name: Option<String>,
    /// Of this undertaking; the configured one when left out.
    #[serde(default)]
    pub venture: Option<Venture>,
    /// How many at the most: 1 to 100, 20 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<i64>,
    /// How many to skip first.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub offset: Option<i64>,
}

/// A workflow in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowView {
    /// Its id, for saving and loading.
    pub session_id: WorkflowId,
    /// What it calls itself.
    pub name: Option<String>,
    /// The undertaking.
    pub venture: Venture,
    /// The repository.
    pub repo: Option<Repo>,
    /// When it began.
    pub created_at: Timestamp,
    /// When its latest checkpoint was saved.
    pub last_saved_at: Timestamp,
    /// When it was last saved or loaded.
    pub last_accessed_at: Timestamp,
    /// How many checkpoints it has.
    pub checkpoint_count: u64,
    /// How many bytes they take.
    pub stored_bytes: u64,
    /// The keys that were marked as critical.
    pub critical_keys: Vec<String>,
}

impl From<Workflow> for WorkflowView {
    fn from(workflow: Workflow) -> Self {
        Self {
            session_id: workflow.id,
            name: workflow.name,
            venture: workflow.venture,
            repo: workflow.repo,
            created_at: workflow.created_at,
            last_saved_at: workflow.last_saved_at,
            last_accessed_at: workflow.last_accessed_at,
            checkpoint_count: workflow.checkpoint_count,
            stored_bytes: workflow.stored_bytes,
            critical_keys: workflow.critical_keys,
        }
    }
}

/// A part of the list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListWorkflowsOutput {
    /// The workflows, latest saved first.
    pub workflows: Vec<WorkflowView>,
}

impl Operation for ListWorkflows {
    const NAME: &'static str = "checkpoint.workflows";
    const SUMMARY: &'static str = "List the workflows that have checkpoints, latest saved first: start here when a chat begins without a session ID.";
    const EFFECT: Effect = Effect::Read;
    const MEETS_WAITING: bool = true;
    type Params = ListWorkflowsParams;
    type Output = ListWorkflowsOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        window(params.limit, params.offset).map(|_| ())
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let (limit, offset) = window(params.limit, params.offset)?;
        let filter = WorkflowFilter {
            venture: venture_of(context, params.venture.as_ref())?,
            repo: params.repo.clone(),
            name: params.name.clone(),
            offset,
            limit,
        };
        let found = tx.workflows(&filter).map_err(store_fault)?;
        Ok(ListWorkflowsOutput { workflows: found.into_iter().map(Into::into).collect() })
    }
}
