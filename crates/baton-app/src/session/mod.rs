//! Operations on sessions, one file per verb.

mod activity;
mod end;
mod heartbeat;
mod history;
mod list;
mod overview;
mod show;
mod start;
mod update;
mod view;

pub use activity::{ActiveDay, SessionActivity, SessionActivityOutput, SessionActivityParams};
pub(crate) use end::new_handoff;
pub use end::{EndSession, EndSessionOutput, EndSessionParams};
pub use heartbeat::{Heartbeat, HeartbeatOutput, HeartbeatParams};
pub use history::{SessionHistory, SessionHistoryOutput, SessionHistoryParams};
pub use list::{ListSessions, ListSessionsOutput, ListSessionsParams};
pub(crate) use overview::changed_files;
pub use overview::{
    Attention, AttentionKind, LiveSession, SessionOverview, SessionOverviewOutput, SessionOverviewParams,
    SharedFile,
};
pub use show::{ShowSession, ShowSessionOutput, ShowSessionParams};
pub use start::{StartSession, StartSessionOutput, StartSessionParams, StartStatus};
pub(crate) use start::{
    find_or_create, latest_handoffs, lock_active_sessions, other_sessions, start_bundle, tuple_of,
};
pub use update::{UpdateSession, UpdateSessionOutput, UpdateSessionParams};
pub use view::{ActiveSession, SessionView, session_of_client};
