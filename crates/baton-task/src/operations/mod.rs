//! Every operation on tasks, one file each.

mod attach_evidence;
mod complete;
mod get_context;
mod get_diff;
mod init_context;
mod list;
mod mark_blocked;
mod note;
mod purge_context;
mod rebuild_context;
mod record_qa;
mod resolve_drift;
mod run_qa;
mod snapshot_worktree;
mod sweep_contexts;
mod update_agent;
mod verify_worktree;

pub use attach_evidence::{AttachEvidence, AttachEvidenceOutput, AttachEvidenceParams};
pub use complete::{CompleteTask, CompleteTaskOutput, CompleteTaskParams};
pub use get_context::{
    GetContext, GetContextOutput, GetContextParams, QaLine, RoleContext, SnapshotLine, qa_lines,
    snapshot_lines,
};
pub use get_diff::{DiffType, GetDiff, GetDiffOutput, GetDiffParams};
pub use init_context::{InitContext, InitContextOutput, InitContextParams};
pub use list::{ListTasks, ListTasksOutput, ListTasksParams, TaskLine};
pub use mark_blocked::{MarkBlocked, MarkBlockedOutput, MarkBlockedParams};
pub use note::{WriteNote, WriteNoteOutput, WriteNoteParams};
pub use purge_context::{PurgeContext, PurgeContextOutput, PurgeContextParams};
pub use rebuild_context::{RebuildContext, RebuildContextOutput, RebuildContextParams};
pub use record_qa::{RecordQa, RecordQaOutput, RecordQaParams};
pub use resolve_drift::{ResolveDrift, ResolveDriftOutput, ResolveDriftParams};
pub use run_qa::{RunQa, RunQaParams};
pub use snapshot_worktree::{SnapshotWorktree, SnapshotWorktreeOutput, SnapshotWorktreeParams};
pub use sweep_contexts::{SweepContexts, SweepContextsOutput, SweepContextsParams};
pub use update_agent::{UpdateAgent, UpdateAgentOutput, UpdateAgentParams};
pub use verify_worktree::{VerifyWorktree, VerifyWorktreeOutput, VerifyWorktreeParams};
