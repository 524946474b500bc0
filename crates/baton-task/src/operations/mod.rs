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

pub use attach_evidence::{AttachEvidence, AttachEvidenceOutput};
pub use complete::{CompleteTask, CompleteTaskOutput};
pub use get_context::{
    GetContext, GetContextOutput, QaLine, RoleContext, SnapshotLine, qa_lines, snapshot_lines,
};
pub use get_diff::{DiffType, GetDiff, GetDiffOutput};
pub use init_context::{InitContext, InitContextOutput};
pub use list::{ListTasks, ListTasksOutput, TaskLine};
pub use mark_blocked::{MarkBlocked, MarkBlockedOutput};
pub use note::{WriteNote, WriteNoteOutput};
pub use purge_context::{PurgeContext, PurgeContextOutput};
pub use rebuild_context::{RebuildContext, RebuildContextOutput};
pub use record_qa::RecordQa;
pub use resolve_drift::{ResolveDrift, ResolveDriftOutput};
pub use run_qa::RunQa;
pub use snapshot_worktree::{SnapshotWorktree, SnapshotWorktreeOutput};
pub use sweep_contexts::{SweepContexts, SweepContextsOutput};
pub use update_agent::{UpdateAgent, UpdateAgentOutput};
pub use verify_worktree::{VerifyWorktree, VerifyWorktreeOutput};
