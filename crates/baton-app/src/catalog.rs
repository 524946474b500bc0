//! List of all operations.

use crate::any_operation::{AnyOperation, operation};
use crate::{
    agent, bundle, checkpoint, handoff, id, maintenance, memory, note, observation, recall, request, session,
    task, token, turn,
};

/// Returns all operations.
pub fn operations() -> Vec<&'static AnyOperation> {
    vec![
        operation::<session::StartSession>(),
        operation::<session::Heartbeat>(),
        operation::<session::UpdateSession>(),
        operation::<session::EndSession>(),
        operation::<session::ListSessions>(),
        operation::<session::SessionHistory>(),
        operation::<session::SessionOverview>(),
        operation::<session::SessionActivity>(),
        operation::<session::ShowSession>(),
        operation::<handoff::LatestHandoff>(),
        operation::<handoff::ListHandoffs>(),
        operation::<handoff::ShowHandoff>(),
        operation::<handoff::CreateHandoff>(),
        operation::<handoff::LeaveHandoff>(),
        operation::<handoff::AckHandoff>(),
        operation::<handoff::WithdrawHandoff>(),
        operation::<checkpoint::SaveCheckpoint>(),
        operation::<checkpoint::LoadCheckpoint>(),
        operation::<checkpoint::ListCheckpoints>(),
        operation::<checkpoint::MarkCritical>(),
        operation::<checkpoint::DiffCheckpoints>(),
        operation::<checkpoint::ExplainContext>(),
        operation::<checkpoint::DeleteCheckpoint>(),
        operation::<checkpoint::ListWorkflows>(),
        operation::<observation::Hook>(),
        operation::<observation::ImportTranscript>(),
        operation::<observation::ImportObservations>(),
        operation::<observation::ListObservations>(),
        operation::<observation::ShowObservation>(),
        operation::<note::CreateNote>(),
        operation::<note::ListNotes>(),
        operation::<note::ShowNote>(),
        operation::<note::UpdateNote>(),
        operation::<note::DeleteNote>(),
        operation::<turn::ListTurns>(),
        operation::<turn::ShowTurn>(),
        operation::<observation::ReadQueueStats>(),
        operation::<observation::ListQueue>(),
        operation::<observation::RetryQueue>(),
        operation::<observation::PurgeQueue>(),
        operation::<observation::SummarizeSession>(),
        operation::<observation::WorkerHealth>(),
        operation::<bundle::ReadContext>(),
        operation::<recall::Search>(),
        operation::<recall::Timeline>(),
        operation::<recall::GetItems>(),
        operation::<id::FindIds>(),
        operation::<memory::RejectItem>(),
        operation::<memory::SupersedeItem>(),
        operation::<memory::PinItem>(),
        operation::<memory::RestoreItem>(),
        operation::<memory::ListMarks>(),
        operation::<memory::Forget>(),
        operation::<task::RecordTask>(),
        operation::<task::ListTasks>(),
        operation::<task::ShowTask>(),
        operation::<agent::ListAgents>(),
        operation::<token::CreateToken>(),
        operation::<token::ListTokens>(),
        operation::<token::RevokeToken>(),
        operation::<maintenance::Cleanup>(),
        operation::<request::ListRequests>(),
    ]
}

/// Returns the operation with a wire name.
pub fn find(name: &str) -> Option<&'static AnyOperation> {
    operations().into_iter().find(|operation| operation.name == name)
}
