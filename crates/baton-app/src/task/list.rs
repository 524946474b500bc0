//! `task.list`: which tasks there are, in whatever checkout.

use baton_core::task::{TaskRecord, TaskStatus};
use baton_core::{Fault, Repo, Venture};
use baton_store::{TaskFilter, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checkpoint::window;
use crate::operation::{Context, Effect, Operation, store_fault};

/// Lists tasks.
#[derive(Debug)]
pub struct ListTasks;

/// Which tasks.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasksParams {
    /// In this repository.
    #[serde(default)]
    pub repo: Option<Repo>,
    /// That stand there.
    #[serde(default)]
    pub status: Option<TaskStatus>,
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

/// A part of the list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListTasksOutput {
    /// The tasks, latest written first.
    pub tasks: Vec<TaskRecord>,
}

impl Operation for ListTasks {
    const NAME: &'static str = "task.list";
    const SUMMARY: &'static str = "List the tasks of every checkout, latest written first: where each stands, which role holds it, open drifts.";
    const EFFECT: Effect = Effect::Read;
    type Params = ListTasksParams;
    type Output = ListTasksOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        window(params.limit, params.offset).map(|_| ())
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let (limit, offset) = window(params.limit, params.offset)?;
        let venture = params.venture.as_ref().unwrap_or(&context.settings.default_venture).clone();
        context.actor.require_venture(&venture)?;
        let filter = TaskFilter { venture, repo: params.repo.clone(), status: params.status, offset, limit };
        Ok(ListTasksOutput { tasks: tx.tasks(&filter).map_err(store_fault)? })
    }
}
