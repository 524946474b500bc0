//! The table of MCP tools, one line each.

use std::sync::Arc;

use baton_app::checkpoint::{
    DeleteCheckpoint, DiffCheckpoints, ExplainContext, ListCheckpoints, ListWorkflows, LoadCheckpoint,
    MarkCritical, SaveCheckpoint,
};
use baton_app::handoff::{AckHandoff, CreateHandoff, LatestHandoff, ListHandoffs, ShowHandoff};
use baton_app::observation::{ListObservations, ShowObservation, SummarizeSession};
use baton_app::session::{EndSession, Heartbeat, ListSessions, ShowSession, StartSession, UpdateSession};
use baton_app::task::ListTasks;
use baton_app::turn::{ListTurns, ShowTurn};
use baton_app::{AnyOperation, Effect, operation};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// A tool and its operation.
#[derive(Clone, Copy)]
pub struct ToolBinding {
    /// Name of the tool.
    pub tool: &'static str,
    /// The operation.
    pub operation: &'static dyn AnyOperation,
    /// Field of the answer that is shown as text; `None` shows the whole answer.
    pub text: Option<&'static str>,
    /// Whether the tool stores data under a repository, which defaults to that of the checkout.
    pub stores_repo: bool,
}

/// Returns all tools.
pub fn tools() -> Vec<ToolBinding> {
    let tool = |tool, operation| ToolBinding { tool, operation, text: None, stores_repo: false };
    vec![
        tool("session_start", operation::<StartSession>()).storing_repo(),
        tool("session_heartbeat", operation::<Heartbeat>()),
        tool("session_update", operation::<UpdateSession>()),
        tool("session_end", operation::<EndSession>()),
        tool("session_show", operation::<ShowSession>()),
        tool("active_sessions", operation::<ListSessions>()),
        tool("handoff_latest", operation::<LatestHandoff>()),
        tool("handoff_list", operation::<ListHandoffs>()),
        tool("handoff_show", operation::<ShowHandoff>()),
        tool("handoff_create", operation::<CreateHandoff>()),
        tool("handoff_ack", operation::<AckHandoff>()),
        tool("workflow_checkpoint_save", operation::<SaveCheckpoint>()).storing_repo(),
        tool("workflow_checkpoint_load", operation::<LoadCheckpoint>()),
        tool("workflow_checkpoint_list", operation::<ListCheckpoints>()).text_from("checkpoints"),
        tool("workflow_mark_critical", operation::<MarkCritical>()),
        tool("workflow_checkpoint_diff", operation::<DiffCheckpoints>()),
        tool("workflow_explain", operation::<ExplainContext>()),
        tool("workflow_checkpoint_delete", operation::<DeleteCheckpoint>()),
        tool("workflow_list", operation::<ListWorkflows>()),
        tool("observation_list", operation::<ListObservations>()),
        tool("observation_show", operation::<ShowObservation>()),
        tool("turn_list", operation::<ListTurns>()),
        tool("turn_show", operation::<ShowTurn>()),
        tool("session_summarize", operation::<SummarizeSession>()),
        tool("tasks_everywhere", operation::<ListTasks>()),
    ]
}

/// Argument with the idempotency key. Every tool that writes has it in addition to the parameters of its operation.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency_key";

/// Argument with the repository.
pub(super) const REPO: &str = "repo";

impl ToolBinding {
    /// Shows one field of the answer as text. The structured answer is complete.
    #[must_use]
    pub const fn text_from(self, field: &'static str) -> Self {
        Self { text: Some(field), ..self }
    }

    /// Uses the repository of the checkout if `repo` is not given.
    #[must_use]
    pub const fn storing_repo(self) -> Self {
        Self { stores_repo: true, ..self }
    }

    /// Describes the tool to a client in a checkout, where `repo` is optional.
    pub(super) fn describe_in_checkout(&self) -> Tool {
        let mut tool = self.describe();
        let input = Arc::make_mut(&mut tool.input_schema);
        if let Some(Value::Array(required)) = input.get_mut("required") {
            required.retain(|name| name != REPO);
        }
        if let Some(repo) = input.get_mut("properties").and_then(|properties| properties.get_mut(REPO)) {
            repo["description"] =
                "Repository as owner/name, for example acme/webshop. Defaults to the repository of the current \
                 checkout."
                    .into();
        }
        tool
    }

    /// Describes the tool to a client.
    pub(super) fn describe(&self) -> Tool {
        let reads = self.operation.effect() == Effect::Read;
        let mut input = object(self.operation.params_schema());
        if !reads && let Some(Value::Object(properties)) = input.get_mut("properties") {
            properties.insert(
                IDEMPOTENCY_KEY.into(),
                json!({
                    "type": ["string", "null"], "minLength": 1, "maxLength": 255,
                    "description": "Key of your choice. Requests with the same key are executed at most once.",
                }),
            );
        }
        let mut annotations = ToolAnnotations::default();
        annotations.read_only_hint = Some(reads);
        annotations.destructive_hint = Some(self.operation.effect().is_destructive());
        annotations.idempotent_hint = Some(self.operation.effect().is_idempotent());
        annotations.open_world_hint = Some(false);
        let mut tool = Tool::new(self.tool, self.operation.summary(), Arc::new(input));
        tool.output_schema = Some(Arc::new(object(self.operation.output_schema())));
        tool.annotations = Some(annotations);
        tool
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
