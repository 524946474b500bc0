//! Operations on sessions, one file per verb.

mod end;
mod heartbeat;
mod list;
mod show;
mod start;
mod update;
mod view;

pub(crate) use end::new_handoff;
pub use end::{EndSession, EndSessionOutput, EndSessionParams};
pub use heartbeat::{Heartbeat, HeartbeatOutput, HeartbeatParams};
pub use list::{ListSessions, ListSessionsOutput, ListSessionsParams};
pub use show::{ShowSession, ShowSessionOutput, ShowSessionParams};
pub(crate) use start::{
    LatestHandoffs, find_or_create, latest_handoffs, lock_active_sessions, other_sessions, start_bundle,
    tuple_of,
};
pub use start::{StartSession, StartSessionOutput, StartSessionParams, StartStatus};
pub use update::{UpdateSession, UpdateSessionOutput, UpdateSessionParams};
pub use view::{ActiveSession, SessionView, session_of_client};
