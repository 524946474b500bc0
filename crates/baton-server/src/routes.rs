//! The table of HTTP routes, one line each.

use baton_app::agent::ListAgents;
use baton_app::bundle::ReadContext;
use baton_app::checkpoint::{
    DeleteCheckpoint, DiffCheckpoints, ExplainContext, ListCheckpoints, ListWorkflows, LoadCheckpoint,
    MarkCritical, SaveCheckpoint,
};
use baton_app::handoff::{
    AckHandoff, CreateHandoff, LatestHandoff, LeaveHandoff, ListHandoffs, ShowHandoff, WithdrawHandoff,
};
use baton_app::id::FindIds;
use baton_app::memory::{Forget, ListMarks, PinItem, RejectItem, RestoreItem, SupersedeItem};
use baton_app::note::{CreateNote, DeleteNote, ListNotes, ShowNote, UpdateNote};
use baton_app::observation::{
    Hook, ImportObservations, ImportTranscript, ListObservations, ListQueue, PurgeQueue, ReadQueueStats,
    RetryQueue, ShowObservation, SummarizeSession, WorkerHealth,
};
use baton_app::recall::{GetItems, Search, Timeline};
use baton_app::request::ListRequests;
use baton_app::session::{
    EndSession, Heartbeat, ListSessions, SessionActivity, SessionHistory, SessionOverview, ShowSession,
    StartSession, UpdateSession,
};
use baton_app::task::{ListTasks, RecordTask, ShowTask};
use baton_app::turn::{ListTurns, ShowTurn};
use baton_app::{AnyOperation, operation};

/// Method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Parameters are in the query and the path.
    Get,
    /// Parameters are in a JSON body and the path.
    Post,
    /// Parameters are in the query and the path.
    Delete,
}

impl Verb {
    /// Returns the name of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }

    /// Returns true if parameters are in a body.
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Post)
    }
}

/// A route of an operation.
#[derive(Clone, Copy)]
pub struct Route {
    /// The method.
    pub verb: Verb,
    /// Path; `{name}` is the parameter of that name.
    pub path: &'static str,
    /// The operation.
    pub operation: &'static AnyOperation,
}

/// Returns all routes. The first route of an operation is canonical, others are aliases.
pub fn routes() -> Vec<Route> {
    let get = |path, operation| Route { verb: Verb::Get, path, operation };
    let post = |path, operation| Route { verb: Verb::Post, path, operation };
    let delete = |path, operation| Route { verb: Verb::Delete, path, operation };
    vec![
        post("/sod", operation::<StartSession>()),
        post("/sos", operation::<StartSession>()),
        post("/eod", operation::<EndSession>()),
        post("/eos", operation::<EndSession>()),
        post("/update", operation::<UpdateSession>()),
        post("/heartbeat", operation::<Heartbeat>()),
        get("/active", operation::<ListSessions>()),
        get("/sessions", operation::<SessionHistory>()),
        get("/api/overview", operation::<SessionOverview>()),
        get("/api/activity", operation::<SessionActivity>()),
        get("/sessions/{session_id}", operation::<ShowSession>()),
        get("/handoffs/latest", operation::<LatestHandoff>()),
        get("/handoffs", operation::<ListHandoffs>()),
        post("/handoffs", operation::<CreateHandoff>()),
        post("/handoffs/leave", operation::<LeaveHandoff>()),
        get("/handoffs/{handoff_id}", operation::<ShowHandoff>()),
        post("/handoffs/{handoff_id}/ack", operation::<AckHandoff>()),
        post("/handoffs/{handoff_id}/withdraw", operation::<WithdrawHandoff>()),
        post("/api/checkpoints", operation::<SaveCheckpoint>()),
        get("/api/checkpoints", operation::<ListCheckpoints>()),
        get("/api/checkpoints/load", operation::<LoadCheckpoint>()),
        get("/api/checkpoints/diff", operation::<DiffCheckpoints>()),
        get("/api/checkpoints/explain", operation::<ExplainContext>()),
        post("/api/checkpoints/critical", operation::<MarkCritical>()),
        get("/api/checkpoints/{checkpointId}", operation::<LoadCheckpoint>()),
        delete("/api/checkpoints/{checkpointId}", operation::<DeleteCheckpoint>()),
        get("/api/workflows", operation::<ListWorkflows>()),
        post("/hooks/{event}", operation::<Hook>()),
        post("/api/transcripts/import", operation::<ImportTranscript>()),
        post("/api/observations/import", operation::<ImportObservations>()),
        get("/api/observations", operation::<ListObservations>()),
        get("/api/observations/{observation_id}", operation::<ShowObservation>()),
        post("/api/notes", operation::<CreateNote>()),
        get("/api/notes", operation::<ListNotes>()),
        get("/api/notes/{note_id}", operation::<ShowNote>()),
        post("/api/notes/{note_id}", operation::<UpdateNote>()),
        delete("/api/notes/{note_id}", operation::<DeleteNote>()),
        get("/api/turns", operation::<ListTurns>()),
        get("/api/turns/{turn_id}", operation::<ShowTurn>()),
        get("/api/queue/stats", operation::<ReadQueueStats>()),
        get("/api/queue", operation::<ListQueue>()),
        post("/api/queue/retry", operation::<RetryQueue>()),
        post("/api/queue/purge", operation::<PurgeQueue>()),
        post("/api/summarize", operation::<SummarizeSession>()),
        get("/api/health", operation::<WorkerHealth>()),
        get("/api/context", operation::<ReadContext>()),
        get("/api/search", operation::<Search>()),
        get("/api/timeline", operation::<Timeline>()),
        get("/api/items", operation::<GetItems>()),
        get("/api/ids", operation::<FindIds>()),
        get("/api/memory", operation::<ListMarks>()),
        post("/api/memory/reject", operation::<RejectItem>()),
        post("/api/memory/supersede", operation::<SupersedeItem>()),
        post("/api/memory/pin", operation::<PinItem>()),
        post("/api/memory/restore", operation::<RestoreItem>()),
        post("/api/memory/forget", operation::<Forget>()),
        get("/api/tasks", operation::<ListTasks>()),
        post("/api/tasks", operation::<RecordTask>()),
        get("/api/tasks/show", operation::<ShowTask>()),
        get("/api/agents", operation::<ListAgents>()),
        get("/api/requests", operation::<ListRequests>()),
    ]
}
