//! `checkpoint.workflows`: lists workflows.

use baton_core::checkpoint::{Workflow, WorkflowId};
use baton_core::{Repo, Session, Sha256Hash, Timestamp, Venture};
use baton_store::WorkflowFilter;

use crate::page::Window;
use crate::prelude::*;

/// Filters and page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListWorkflows {
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Filter by name: the `workflowId` of the context, or the name of the first checkpoint.
    pub name: Option<String>,
    /// Venture to list. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Maximum number of workflows, 1 to 100. Defaults to 20.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<i64>,
    /// Number of workflows to skip. Defaults to 0.
    #[schemars(range(min = 0))]
    pub offset: Option<i64>,
}

/// A workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowView {
    /// Workflow id for saving and loading.
    pub session_id: WorkflowId,
    /// Name that the caller gave the workflow, for example `release 2.1`.
    pub name: Option<String>,
    /// Venture, for example `acme`.
    pub venture: Venture,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Option<Repo>,
    /// Time when the first checkpoint was saved.
    pub created_at: Timestamp,
    /// Time when the latest checkpoint was saved.
    pub last_saved_at: Timestamp,
    /// Time of the last save or load.
    pub last_accessed_at: Timestamp,
    /// Number of checkpoints.
    pub checkpoint_count: u64,
    /// Stored size of all checkpoints in bytes.
    pub stored_bytes: u64,
    /// Keys marked as critical.
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

/// One page of workflows.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListWorkflowsOutput {
    /// Workflows, most recently saved first.
    pub workflows: Vec<WorkflowView>,
}

impl Operation<OnStore> for ListWorkflows {
    const NAME: &'static str = "checkpoint.workflows";
    const SUMMARY: &'static str = "List workflows that have checkpoints, most recently saved first. Call it \
        to find a workflow id at the start of a chat.";
    const EFFECT: Effect = Effect::Read;
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Output = ListWorkflowsOutput;
    params_and!(Window, |params| Window::of(params.limit, params.offset));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, window) = input;
        let filter = WorkflowFilter {
            venture: context.venture(params.venture.as_ref())?,
            repo: params.repo.clone(),
            name: params.name.clone(),
            offset: window.offset,
            limit: window.limit,
        };
        let found = tx.workflows(&filter)?;
        Ok(ListWorkflowsOutput { workflows: found.into_iter().map(Into::into).collect() })
    }
}

/// Returns the workflow id of a chat: the chat id if it is a valid workflow id, otherwise its hash.
pub(crate) fn workflow_of(session: &Session) -> Result<WorkflowId, Fault> {
    let own = session
        .tuple
        .client_session_id
        .as_ref()
        .map_or_else(|| session.id.to_string(), |id| id.as_str().to_owned());
    own.parse().or_else(|_| {
        let hash = Sha256Hash::of(own.as_bytes()).to_string();
        hash.parse().map_err(|problem| Fault::invalid("session_id", problem))
    })
}
