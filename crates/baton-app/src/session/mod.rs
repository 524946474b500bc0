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

pub use activity::{ActiveDay, SessionActivity, SessionActivityOutput};
pub use end::{EndSession, EndSessionOutput};
pub use heartbeat::{Heartbeat, HeartbeatOutput};
pub use history::{SessionHistory, SessionHistoryOutput};
pub use list::{ListSessions, ListSessionsOutput};
pub use overview::{
    Attention, AttentionKind, LiveSession, SessionOverview, SessionOverviewOutput, SharedFile,
};
pub use show::{ShowSession, ShowSessionOutput};
pub use start::{StartSession, StartSessionOutput, StartStatus};
pub(crate) use start::{find_or_create, lock_active_sessions, start_bundle, tuple_of};
pub use update::{UpdateSession, UpdateSessionOutput};
pub use view::{ActiveSession, SessionView, session_of_client};
