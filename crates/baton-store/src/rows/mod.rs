//! One file per entity: the operations of a transaction on it, and the SQL, written once for both databases.

mod checkpoint;
mod file_version;
mod forget;
mod handoff;
mod id;
mod idempotency;
mod mark;
mod note;
mod observation;
mod queue;
mod recall;
mod recall_counts;
mod recall_match;
mod recall_scope;
mod request;
mod schedule;
mod session;
mod shown_item;
mod summary;
mod task;
mod token;
mod turn;
mod unmerged_branch;
mod usage;
mod workflow;

pub use checkpoint::{CheckpointRows, Frame, FrameBody, SeriesMember, StoredFrame};
pub use file_version::{FileOf, FileVersionRows};
pub use forget::{ForgetFilter, ForgetRows};
pub use handoff::{Acknowledgement, HandoffFilter, HandoffRows};
pub use id::IdRows;
pub use idempotency::KeyRows;
pub use mark::{MarkFilter, MarkRows};
pub use note::{NoteFilter, NoteRows};
pub use observation::{ObservationFilter, ObservationRows};
pub use queue::{NewQueueItem, PurgedItems, QueueClaim, QueueItem, QueueRelease, QueueRows, RawOutput};
pub use recall::{PendingItem, RecallFilter, RecallRows, TimelinePosition};
pub use recall_match::MatchPlan;
pub use request::{LoggedRequest, RequestFilter, RequestPage, RequestRows};
pub use schedule::ScheduleRows;
pub use session::{SessionCounts, SessionFilter, SessionRows};
pub use shown_item::ShownItemRows;
pub use summary::{NewSummary, StoredSummary, SummaryClaim, SummaryRows};
pub use task::{TaskFilter, TaskRows};
pub use token::TokenRows;
pub use turn::{TurnEnd, TurnRows};
pub use unmerged_branch::UnmergedBranchRows;
pub use usage::{DailyUsage, Spent, UsageRows};
pub use workflow::{WorkflowFilter, WorkflowRows};

#[cfg(test)]
mod plan_tests;
