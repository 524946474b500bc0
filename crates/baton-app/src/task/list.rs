//! `task.list`: lists the tasks of all checkouts.

use baton_core::task::{TaskRecord, TaskStatus};
use baton_core::{Repo, Venture};
use baton_store::TaskFilter;

use crate::page::Window;
use crate::prelude::*;

/// Filters and page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Filter by status, for example `waiting`.
    pub status: Option<TaskStatus>,
    /// Venture to list. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Maximum number of tasks, 1 to 100. Defaults to 20.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<i64>,
    /// Number of tasks to skip. Defaults to 0.
    #[schemars(range(min = 0))]
    pub offset: Option<i64>,
}

/// One page of tasks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListTasksOutput {
    /// Tasks, most recently updated first.
    pub tasks: Vec<TaskRecord>,
}

impl Operation<OnStore> for ListTasks {
    const NAME: &'static str = "task.list";
    const SUMMARY: &'static str = "List the tasks of all checkouts, most recently updated first, with \
        status, current role and open drifts.";
    const EFFECT: Effect = Effect::Read;
    type Output = ListTasksOutput;
    params_and!(Window, |params| Window::of(params.limit, params.offset));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, window) = input;
        let filter = TaskFilter {
            venture: context.venture(params.venture.as_ref())?,
            repo: params.repo.clone(),
            status: params.status,
            only_open: false,
            offset: window.offset,
            limit: window.limit,
        };
        Ok(ListTasksOutput { tasks: tx.tasks(&filter)? })
    }
}
