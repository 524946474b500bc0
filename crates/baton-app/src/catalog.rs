//! The table of all operations: one entry each, from which routes, tools, OpenAPI and the tables of the documentation are
//! made.

use crate::any_operation::AnyOperation;
use crate::operation::{OnStore, Operation};
use crate::registration::Filled::{
    Agent, Client, LiveSession, RecordedSession, Repo, Scope, Session, Venture,
};
use crate::registration::{Registration, Route, ToolBinding, ToolSet};
use crate::{
    agent, bundle, checkpoint, handoff, id, maintenance, memory, note, observation, recall, request, session,
    task, token, turn,
};

/// Returns all operations in the order in which their tools are listed.
pub fn registrations() -> Vec<Registration> {
    fn on<O: Operation<OnStore>>() -> Registration {
        Registration::of::<O>()
    }
    vec![
        on::<session::StartSession>()
            .post("/sod")
            .post("/sos")
            .tool(ToolSet::Sessions, "session_start")
            .in_default_set(&[])
            .filling(&[LiveSession, Repo, Agent, Client]),
        on::<session::Heartbeat>()
            .post("/heartbeat")
            .tool(ToolSet::Sessions, "session_heartbeat")
            .filling(&[Session]),
        on::<session::UpdateSession>()
            .post("/update")
            .tool(ToolSet::Sessions, "session_update")
            .filling(&[Session]),
        on::<session::EndSession>()
            .post("/eod")
            .post("/eos")
            .tool(ToolSet::Sessions, "session_end")
            .in_default_set(&["summary", "status_label", "to_agent", "payload"])
            .filling(&[Session]),
        on::<session::ShowSession>()
            .get("/sessions/{session_id}")
            .tool(ToolSet::Sessions, "session_show")
            .filling(&[Session]),
        on::<session::ListSessions>()
            .get("/active")
            .tool(ToolSet::Sessions, "active_sessions")
            .filling(&[Scope]),
        on::<session::SessionHistory>()
            .get("/sessions")
            .tool(ToolSet::Sessions, "session_history")
            .filling(&[Scope]),
        on::<session::SessionOverview>().get("/api/overview").tool(ToolSet::Sessions, "session_overview"),
        on::<session::SessionActivity>().get("/api/activity").tool(ToolSet::Sessions, "session_activity"),
        on::<handoff::LatestHandoff>()
            .get("/handoffs/latest")
            .tool(ToolSet::Sessions, "handoff_latest")
            .filling(&[Scope, Venture]),
        on::<handoff::ListHandoffs>()
            .get("/handoffs")
            .tool(ToolSet::Sessions, "handoff_list")
            .filling(&[Scope, Venture]),
        on::<handoff::ShowHandoff>().get("/handoffs/{handoff_id}").tool(ToolSet::Sessions, "handoff_show"),
        on::<handoff::CreateHandoff>()
            .post("/handoffs")
            .tool(ToolSet::Sessions, "handoff_create")
            .filling(&[Session]),
        on::<handoff::LeaveHandoff>().post("/handoffs/leave"),
        on::<handoff::AckHandoff>()
            .post("/handoffs/{handoff_id}/ack")
            .tool(ToolSet::Sessions, "handoff_ack")
            .filling(&[Agent]),
        on::<handoff::WithdrawHandoff>()
            .post("/handoffs/{handoff_id}/withdraw")
            .tool(ToolSet::Sessions, "handoff_withdraw"),
        on::<checkpoint::SaveCheckpoint>()
            .post("/api/checkpoints")
            .tool(ToolSet::Checkpoints, "workflow_checkpoint_save")
            .in_default_set(&[])
            .filling(&[RecordedSession("agentSessionId"), Repo]),
        on::<checkpoint::LoadCheckpoint>()
            .get("/api/checkpoints/load")
            .get("/api/checkpoints/{checkpointId}")
            .tool(ToolSet::Checkpoints, "workflow_checkpoint_load")
            .in_default_set(&[]),
        on::<checkpoint::ListCheckpoints>()
            .get("/api/checkpoints")
            .tool(ToolSet::Checkpoints, "workflow_checkpoint_list")
            .in_default_set(&[])
            .text_from("checkpoints"),
        on::<checkpoint::MarkCritical>()
            .post("/api/checkpoints/critical")
            .tool(ToolSet::Checkpoints, "workflow_mark_critical")
            .in_default_set(&[]),
        on::<checkpoint::DiffCheckpoints>()
            .get("/api/checkpoints/diff")
            .tool(ToolSet::Checkpoints, "workflow_checkpoint_diff"),
        on::<checkpoint::ExplainContext>()
            .get("/api/checkpoints/explain")
            .tool(ToolSet::Checkpoints, "workflow_explain"),
        on::<checkpoint::DeleteCheckpoint>()
            .delete("/api/checkpoints/{checkpointId}")
            .tool(ToolSet::Checkpoints, "workflow_checkpoint_delete"),
        on::<checkpoint::ListWorkflows>().get("/api/workflows").tool(ToolSet::Checkpoints, "workflow_list"),
        on::<observation::Hook>().post("/hooks/{event}"),
        on::<observation::ImportTranscript>().post("/api/transcripts/import"),
        on::<observation::ImportObservations>().post("/api/observations/import"),
        on::<recall::Search>()
            .get("/api/search")
            .tool(ToolSet::Memory, "search")
            .in_default_set(&["current_branch"]),
        on::<recall::Timeline>().get("/api/timeline").tool(ToolSet::Memory, "timeline"),
        on::<recall::GetItems>()
            .get("/api/items")
            .tool(ToolSet::Memory, "get")
            .in_default_set(&["repo", "content_hash", "limit"])
            .filling(&[Repo]),
        on::<memory::RejectItem>().post("/api/memory/reject").tool(ToolSet::Memory, "memory_reject"),
        on::<memory::SupersedeItem>().post("/api/memory/supersede").tool(ToolSet::Memory, "memory_supersede"),
        on::<observation::ListObservations>()
            .get("/api/observations")
            .tool(ToolSet::Memory, "observation_list"),
        on::<observation::ShowObservation>()
            .get("/api/observations/{observation_id}")
            .tool(ToolSet::Memory, "observation_show"),
        on::<note::CreateNote>()
            .post("/api/notes")
            .tool(ToolSet::Memory, "note")
            .in_default_set(&["agent", "repo"])
            .filling(&[RecordedSession("session_id"), Repo]),
        on::<note::ListNotes>().get("/api/notes").tool(ToolSet::Memory, "note_list").filling(&[Scope]),
        on::<note::ShowNote>().get("/api/notes/{note_id}").tool(ToolSet::Memory, "note_show"),
        on::<note::UpdateNote>().post("/api/notes/{note_id}").tool(ToolSet::Memory, "note_update"),
        on::<note::DeleteNote>().delete("/api/notes/{note_id}").tool(ToolSet::Memory, "note_delete"),
        on::<turn::ListTurns>().get("/api/turns").tool(ToolSet::Memory, "turn_list").filling(&[Session]),
        on::<turn::ShowTurn>().get("/api/turns/{turn_id}").tool(ToolSet::Memory, "turn_show"),
        on::<observation::SummarizeSession>()
            .post("/api/summarize")
            .tool(ToolSet::Sessions, "session_summarize")
            .filling(&[Session]),
        on::<observation::ReadQueueStats>().get("/api/queue/stats"),
        on::<observation::ListQueue>().get("/api/queue"),
        on::<observation::RetryQueue>().post("/api/queue/retry"),
        on::<observation::PurgeQueue>().post("/api/queue/purge"),
        on::<observation::WorkerHealth>().get("/api/health"),
        on::<bundle::ReadContext>().get("/api/context"),
        on::<id::FindIds>().get("/api/ids"),
        on::<memory::PinItem>().post("/api/memory/pin"),
        on::<memory::RestoreItem>().post("/api/memory/restore"),
        on::<memory::ListMarks>().get("/api/memory"),
        on::<memory::Forget>().post("/api/memory/forget"),
        on::<task::RecordTask>().post("/api/tasks"),
        on::<task::ListTasks>().get("/api/tasks").tool(ToolSet::Tasks, "tasks_everywhere"),
        on::<task::ShowTask>().get("/api/tasks/show"),
        on::<agent::ListAgents>().get("/api/agents"),
        on::<token::CreateToken>(),
        on::<token::ListTokens>(),
        on::<token::RevokeToken>(),
        on::<maintenance::Cleanup>(),
        on::<request::ListRequests>().get("/api/requests"),
    ]
}

/// Returns the operation with a wire name.
pub fn find(name: &str) -> Option<&'static AnyOperation> {
    registrations()
        .into_iter()
        .map(|registered| registered.operation)
        .find(|operation| operation.name == name)
}

/// Returns all routes. The first route of an operation is canonical, others are aliases.
pub fn routes() -> Vec<Route> {
    registrations().into_iter().flat_map(|registered| registered.routes).collect()
}

pub fn tools() -> Vec<ToolBinding> {
    registrations().into_iter().filter_map(|registered| registered.tool).collect()
}
