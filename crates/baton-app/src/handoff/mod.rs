//! Operations on handoffs, one file per verb.

mod ack;
mod create;
mod leave;
mod list;
mod new_handoff;
mod schema;
mod show;
mod view;
mod withdraw;

pub use ack::{AckHandoff, AckHandoffOutput};
pub use create::{CreateHandoff, CreateHandoffOutput};
pub use leave::{LeaveHandoff, LeaveHandoffOutput};
pub use list::{LatestHandoff, LatestHandoffOutput, ListHandoffs, ListHandoffsOutput};
pub(crate) use new_handoff::new_handoff;
pub(crate) use schema::{handoff_schema, optional_handoff_schema};
pub use show::{ShowHandoff, ShowHandoffOutput};
pub(crate) use view::stored_automatic_content;
pub use view::{HandoffSummary, HandoffView};
pub use withdraw::{WithdrawHandoff, WithdrawHandoffOutput};
