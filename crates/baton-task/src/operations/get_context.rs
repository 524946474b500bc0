//! `task.get_context`

use std::collections::BTreeMap;

use baton_core::Fault;
use baton_core::task::{Evidence, Role, RoleState, RoleStatus, TaskContext, TaskId, counted, role_export};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::folder::require_context;
use crate::gather::{stale, task_file_is_unchanged};
use crate::operation::{Effect, TaskOperation};
use crate::place::TaskPlace;

/// Reads what is known of a task.
#[derive(Debug)]
pub struct GetContext;

/// What [`GetContext`] is told.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetContextParams {
    /// The task, like `TASK-0824`.
    pub task_id: TaskId,
    /// Only what this role needs.
    #[serde(default)]
    pub role: Option<Role>,
}

/// What [`GetContext`] answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GetContextOutput {
    /// The task.
    pub task_id: TaskId,
    /// Everything; `null` when a role was named.
    pub context: Option<TaskContext>,
    /// What the role needs; `null` when none was named.
    pub role: Option<RoleContext>,
    /// What makes the context doubtful or stops work: a moved HEAD, changed files, an open drift.
    pub warnings: Vec<String>,
}

/// What one role needs to know.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RoleContext {
    /// The role.
    pub role: Role,
    /// Its part of the frozen context.
    pub export: Map<String, Value>,
    /// Where it stands itself.
    pub state: RoleState,
    /// Where every role stands.
    pub statuses: BTreeMap<Role, RoleStatus>,
    /// What other roles found that must be dealt with.
    pub blocking_findings: BTreeMap<Role, Vec<String>>,
    /// What was attached.
    pub evidence: Vec<Evidence>,
    /// How many drifts are open.
    pub drift_budget: u64,
}

impl TaskOperation for GetContext {
    const NAME: &'static str = "task.get_context";
    const SUMMARY: &'static str = "Read a task's frozen description, standards and quality plan and where each role stands, or only what one role needs";
    const EFFECT: Effect = Effect::Read;
    const IDEMPOTENT: bool = true;
    type Params = GetContextParams;
    type Output = GetContextOutput;

    fn run(place: &TaskPlace, params: &GetContextParams) -> Result<GetContextOutput, Fault> {
        let context = require_context(place, &params.task_id)?;
        let warnings = warnings(place, &context);
        let role = params.role.as_ref().map(|role| role_context(&context, role)).transpose()?;
        Ok(GetContextOutput {
            task_id: context.task_id.clone(),
            context: role.is_none().then_some(context),
            role,
            warnings,
        })
    }
}

fn role_context(context: &TaskContext, role: &Role) -> Result<RoleContext, Fault> {
    let state = context.role(role)?.clone();
    let export = match role_export(context, role)? {
        Value::Object(export) => export,
        _ => Map::new(),
    };
    let findings = context.coordination.iter().filter(|(_, state)| !state.blocking_findings.is_empty());
    Ok(RoleContext {
        role: role.clone(),
        export,
        state,
        statuses: context.coordination.iter().map(|(role, state)| (role.clone(), state.status)).collect(),
        blocking_findings: findings
            .map(|(role, state)| (role.clone(), state.blocking_findings.clone()))
            .collect(),
        evidence: context.evidence.clone(),
        drift_budget: context.drift.open(),
    })
}

/// Says what makes a context doubtful.
pub(crate) fn warnings(place: &TaskPlace, context: &TaskContext) -> Vec<String> {
    let mut warnings = Vec::new();
    let name = |commit: &Option<String>| commit.clone().unwrap_or_else(|| "no commit".into());
    match place.tree().head() {
        Ok(head) if head.commit != context.git.head => warnings.push(format!(
            "context created at {}, current HEAD is {}; context may be stale",
            name(&context.git.head),
            name(&head.commit)
        )),
        Ok(_) => {}
        Err(fault) => warnings.push(format!("HEAD is not known: {}", fault.message)),
    }
    if !task_file_is_unchanged(place, context) {
        warnings.push(format!(
            "{} changed after the context was made; take it over with baton task rebuild-context {}",
            context.task_file, context.task_id
        ));
    }
    warnings.extend(
        stale(place, &context.immutable)
            .into_iter()
            .map(|text| format!("a cited standard changed, rebuild the context: {text}")),
    );
    if context.drift.open() > 0 {
        let open = counted(context.drift.open(), "unresolved drift");
        warnings
            .push(format!("{open}; settle it with baton task resolve-drift {} --note TEXT", context.task_id));
    }
    for artifact in context.artifacts() {
        if !place.root().join(&artifact.path).is_file() {
            warnings.push(format!("{} is missing", artifact.path));
        }
    }
    warnings
}
