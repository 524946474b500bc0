//! The table of MCP tools, one line each.

use std::borrow::Cow;
use std::sync::Arc;

use baton_app::checkpoint::{
    DeleteCheckpoint, DiffCheckpoints, ExplainContext, ListCheckpoints, ListWorkflows, LoadCheckpoint,
    MarkCritical, SaveCheckpoint,
};
use baton_app::handoff::{
    AckHandoff, CreateHandoff, LatestHandoff, ListHandoffs, ShowHandoff, WithdrawHandoff,
};
use baton_app::memory::{RejectItem, SupersedeItem};
use baton_app::note::{CreateNote, DeleteNote, ListNotes, ShowNote, UpdateNote};
use baton_app::observation::{ListObservations, ShowObservation, SummarizeSession};
use baton_app::recall::{GetItems, Search, Timeline};
use baton_app::session::{
    EndSession, Heartbeat, ListSessions, SessionActivity, SessionHistory, SessionOverview, ShowSession,
    StartSession, UpdateSession,
};
use baton_app::task::ListTasks;
use baton_app::turn::{ListTurns, ShowTurn};
use baton_app::{AnyOperation, operation};
use baton_core::OperationDescription;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::mcp::defaults::{Filled, Locality};
use crate::mcp::schema::short_input;
use crate::mcp::selection::Area;

/// A tool and its operation.
#[derive(Clone, Copy)]
pub struct ToolBinding {
    /// Name of the tool.
    pub tool: &'static str,
    /// The operation.
    pub operation: &'static AnyOperation,
    /// Area of the tool, for `--tools`.
    pub area: Area,
    /// Whether the tool is part of the default set.
    pub in_default_set: bool,
    /// Further parameters that the default set does not list for this tool.
    pub(super) rare_params: &'static [&'static str],
    /// Field of the response that is shown as text; `None` shows the whole response.
    pub text: Option<&'static str>,
    /// Parameters that are filled in if the call omits them.
    pub filled: &'static [Filled],
}

/// Returns all tools.
pub fn tools() -> Vec<ToolBinding> {
    let session = |tool, operation| ToolBinding::new(Area::Sessions, tool, operation);
    let checkpoint = |tool, operation| ToolBinding::new(Area::Checkpoints, tool, operation);
    let memory = |tool, operation| ToolBinding::new(Area::Memory, tool, operation);
    let task = |tool, operation| ToolBinding::new(Area::Tasks, tool, operation);
    vec![
        session("session_start", operation::<StartSession>()).in_default_set().filling(&[
            Filled::LiveSession,
            Filled::Repo,
            Filled::Agent,
            Filled::Client,
        ]),
        session("session_heartbeat", operation::<Heartbeat>()).filling(&[Filled::Session]),
        session("session_update", operation::<UpdateSession>()).filling(&[Filled::Session]),
        session("session_end", operation::<EndSession>())
            .in_default_set()
            .without_rare(&["summary", "status_label", "to_agent", "payload"])
            .filling(&[Filled::Session]),
        session("session_show", operation::<ShowSession>()).filling(&[Filled::Session]),
        session("active_sessions", operation::<ListSessions>()).filling(&[Filled::Scope]),
        session("session_history", operation::<SessionHistory>()).filling(&[Filled::Scope]),
        session("session_overview", operation::<SessionOverview>()),
        session("session_activity", operation::<SessionActivity>()),
        session("handoff_latest", operation::<LatestHandoff>()).filling(&[Filled::Scope, Filled::Venture]),
        session("handoff_list", operation::<ListHandoffs>()).filling(&[Filled::Scope, Filled::Venture]),
        session("handoff_show", operation::<ShowHandoff>()),
        session("handoff_create", operation::<CreateHandoff>()).filling(&[Filled::Session]),
        session("handoff_ack", operation::<AckHandoff>()).filling(&[Filled::Agent]),
        session("handoff_withdraw", operation::<WithdrawHandoff>()),
        checkpoint("workflow_checkpoint_save", operation::<SaveCheckpoint>())
            .in_default_set()
            .filling(&[Filled::RecordedSession("agentSessionId"), Filled::Repo]),
        checkpoint("workflow_checkpoint_load", operation::<LoadCheckpoint>()).in_default_set(),
        checkpoint("workflow_checkpoint_list", operation::<ListCheckpoints>())
            .in_default_set()
            .text_from("checkpoints"),
        checkpoint("workflow_mark_critical", operation::<MarkCritical>()).in_default_set(),
        checkpoint("workflow_checkpoint_diff", operation::<DiffCheckpoints>()),
        checkpoint("workflow_explain", operation::<ExplainContext>()),
        checkpoint("workflow_checkpoint_delete", operation::<DeleteCheckpoint>()),
        checkpoint("workflow_list", operation::<ListWorkflows>()),
        memory("search", operation::<Search>()).in_default_set().without_rare(&["current_branch"]),
        memory("timeline", operation::<Timeline>()),
        memory("get", operation::<GetItems>())
            .in_default_set()
            .without_rare(&["repo", "content_hash", "limit"])
            .filling(&[Filled::Repo]),
        memory("memory_reject", operation::<RejectItem>()),
        memory("memory_supersede", operation::<SupersedeItem>()),
        memory("observation_list", operation::<ListObservations>()),
        memory("observation_show", operation::<ShowObservation>()),
        memory("note", operation::<CreateNote>())
            .in_default_set()
            .without_rare(&["agent", "repo"])
            .filling(&[Filled::RecordedSession("session_id"), Filled::Repo]),
        memory("note_list", operation::<ListNotes>()).filling(&[Filled::Scope]),
        memory("note_show", operation::<ShowNote>()),
        memory("note_update", operation::<UpdateNote>()),
        memory("note_delete", operation::<DeleteNote>()),
        memory("turn_list", operation::<ListTurns>()).filling(&[Filled::Session]),
        memory("turn_show", operation::<ShowTurn>()),
        session("session_summarize", operation::<SummarizeSession>()).filling(&[Filled::Session]),
        task("tasks_everywhere", operation::<ListTasks>()),
    ]
}

/// Argument with the idempotency key. Every tool that writes has it in addition to the parameters of its operation.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency_key";

impl ToolBinding {
    const fn new(area: Area, tool: &'static str, operation: &'static AnyOperation) -> Self {
        Self { tool, operation, area, in_default_set: false, rare_params: &[], text: None, filled: &[] }
    }

    /// Lists the tool in the default set.
    const fn in_default_set(self) -> Self {
        Self { in_default_set: true, ..self }
    }

    /// Omits parameters from the default set.
    const fn without_rare(self, rare_params: &'static [&'static str]) -> Self {
        Self { rare_params, ..self }
    }

    /// Shows one field of the response as text. The structured response is complete.
    const fn text_from(self, field: &'static str) -> Self {
        Self { text: Some(field), ..self }
    }

    /// Fills in parameters that the call omits.
    const fn filling(self, filled: &'static [Filled]) -> Self {
        Self { filled, ..self }
    }

    /// Describes the tool to a client.
    pub(super) fn describe(&self, locality: Locality) -> Tool {
        let mut input = short_input(self.operation.params_schema());
        for (name, default) in self.filled.iter().flat_map(|filled| filled.optional_params(locality)) {
            make_optional(&mut input, name, default);
        }
        if self.operation.effect.is_write()
            && let Some(Value::Object(properties)) = input.get_mut("properties")
        {
            properties.insert(
                IDEMPOTENCY_KEY.into(),
                json!({
                    "type": "string",
                    "description": "Key of your choice, for example a UUID. Requests with the same key are executed at most once.",
                }),
            );
        }
        describe_tool(self.tool, self.operation, input, self.operation.output_schema())
    }
}

/// Describes the tool of an operation to a client.
pub(super) fn describe_tool(
    name: impl Into<Cow<'static, str>>,
    operation: &OperationDescription,
    input: Map<String, Value>,
    output: Value,
) -> Tool {
    let mut annotations = ToolAnnotations::default();
    annotations.read_only_hint = Some(!operation.effect.is_write());
    annotations.destructive_hint = Some(operation.effect.is_destructive());
    annotations.idempotent_hint = Some(operation.effect.is_idempotent());
    annotations.open_world_hint = Some(false);
    let mut tool = Tool::new(name, operation.summary, Arc::new(input));
    tool.output_schema = Some(Arc::new(object(output)));
    tool.annotations = Some(annotations);
    tool
}

/// Removes a parameter from the required ones and states its default.
fn make_optional(input: &mut Map<String, Value>, name: &str, default: &str) {
    if let Some(Value::Array(required)) = input.get_mut("required") {
        required.retain(|required| required != name);
        if required.is_empty() {
            input.remove("required");
        }
    }
    if let Some(Value::String(text)) =
        input.get_mut("properties").and_then(|all| all[name].get_mut("description"))
        && !text.contains("Defaults to")
    {
        *text = format!("{text} {default}");
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
