//! List of all operations.

use crate::agent::ListAgents;
use crate::any_operation::{AnyOperation, operation};
use crate::bundle::ReadContext;
use crate::checkpoint::{
    DeleteCheckpoint, DiffCheckpoints, ExplainContext, ListCheckpoints, ListWorkflows, LoadCheckpoint,
    MarkCritical, SaveCheckpoint,
};
use crate::handoff::{
    AckHandoff, CreateHandoff, LatestHandoff, LeaveHandoff, ListHandoffs, ShowHandoff, WithdrawHandoff,
};
use crate::id::FindIds;
use crate::maintenance::Cleanup;
use crate::memory::{Forget, ListMarks, PinItem, RejectItem, RestoreItem, SupersedeItem};
use crate::note::{CreateNote, DeleteNote, ListNotes, ShowNote, UpdateNote};
use crate::observation::{
    Hook, ImportObservations, ImportTranscript, ListObservations, ListQueue, PurgeQueue, ReadQueueStats,
    RetryQueue, ShowObservation, SummarizeSession, WorkerHealth,
};
use crate::recall::{GetItems, Search, Timeline};
use crate::request::ListRequests;
use crate::session::{
    EndSession, Heartbeat, ListSessions, SessionActivity, SessionHistory, SessionOverview, ShowSession,
    StartSession, UpdateSession,
};
use crate::task::{ListTasks, RecordTask, ShowTask};
use crate::token::{CreateToken, ListTokens, RevokeToken};
use crate::turn::{ListTurns, ShowTurn};

/// Returns all operations.
pub fn operations() -> Vec<&'static dyn AnyOperation> {
    vec![
        operation::<StartSession>(),
        operation::<Heartbeat>(),
        operation::<UpdateSession>(),
        operation::<EndSession>(),
        operation::<ListSessions>(),
        operation::<SessionHistory>(),
        operation::<SessionOverview>(),
        operation::<SessionActivity>(),
        operation::<ShowSession>(),
        operation::<LatestHandoff>(),
        operation::<ListHandoffs>(),
        operation::<ShowHandoff>(),
        operation::<CreateHandoff>(),
        operation::<LeaveHandoff>(),
        operation::<AckHandoff>(),
        operation::<WithdrawHandoff>(),
        operation::<SaveCheckpoint>(),
        operation::<LoadCheckpoint>(),
        operation::<ListCheckpoints>(),
        operation::<MarkCritical>(),
        operation::<DiffCheckpoints>(),
        operation::<ExplainContext>(),
        operation::<DeleteCheckpoint>(),
        operation::<ListWorkflows>(),
        operation::<Hook>(),
        operation::<ImportTranscript>(),
        operation::<ImportObservations>(),
        operation::<ListObservations>(),
        operation::<ShowObservation>(),
        operation::<CreateNote>(),
        operation::<ListNotes>(),
        operation::<ShowNote>(),
        operation::<UpdateNote>(),
        operation::<DeleteNote>(),
        operation::<ListTurns>(),
        operation::<ShowTurn>(),
        operation::<ReadQueueStats>(),
        operation::<ListQueue>(),
        operation::<RetryQueue>(),
        operation::<PurgeQueue>(),
        operation::<SummarizeSession>(),
        operation::<WorkerHealth>(),
        operation::<ReadContext>(),
        operation::<Search>(),
        operation::<Timeline>(),
        operation::<GetItems>(),
        operation::<FindIds>(),
        operation::<RejectItem>(),
        operation::<SupersedeItem>(),
        operation::<PinItem>(),
        operation::<RestoreItem>(),
        operation::<ListMarks>(),
        operation::<Forget>(),
        operation::<RecordTask>(),
        operation::<ListTasks>(),
        operation::<ShowTask>(),
        operation::<ListAgents>(),
        operation::<CreateToken>(),
        operation::<ListTokens>(),
        operation::<RevokeToken>(),
        operation::<Cleanup>(),
        operation::<ListRequests>(),
    ]
}

/// Returns the operation with a wire name.
pub fn find(name: &str) -> Option<&'static dyn AnyOperation> {
    operations().into_iter().find(|operation| operation.name() == name)
}
