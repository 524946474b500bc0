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
mod recall_candidates;
mod recall_counts;
mod recall_match;
mod recall_scope;
mod recall_vector;
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

pub use checkpoint::{Frame, FrameBody, SeriesMember, StoredFrame};
pub use file_version::FileOf;
pub use forget::ForgetFilter;
pub use handoff::{Acknowledgement, HandoffFilter};
pub use mark::MarkFilter;
pub use note::NoteFilter;
pub use observation::{ObservationFiles, ObservationFilter};
pub use queue::{NewQueueItem, PurgedItems, QueueClaim, QueueItem, QueueRelease, RawOutput};
pub use recall::{PendingItem, TimelinePosition};
pub use recall_match::MatchPlan;
pub use recall_scope::RecallFilter;
pub use request::{RequestFilter, RequestPage};
pub use session::{SessionCounts, SessionFilter};
pub use summary::{NewSummary, StoredSummary, SummaryClaim};
pub use task::TaskFilter;
pub use turn::{TurnEnd, TurnStarts};
pub use usage::{DailyUsage, Spent};
pub use workflow::WorkflowFilter;

#[cfg(test)]
mod plan_tests;
