//! Operations on handoffs, one file per verb.

mod ack;
mod create;
mod leave;
mod list;
mod schema;
mod show;
mod view;
mod withdraw;

pub use ack::{AckHandoff, AckHandoffOutput, AckHandoffParams};
pub use create::{CreateHandoff, CreateHandoffOutput, CreateHandoffParams};
pub use leave::{LeaveHandoff, LeaveHandoffOutput, LeaveHandoffParams};
pub use list::{
    LatestHandoff, LatestHandoffOutput, LatestHandoffParams, ListHandoffs, ListHandoffsOutput,
    ListHandoffsParams,
};
pub(crate) use schema::{handoff_schema, optional_handoff_schema};
pub use show::{ShowHandoff, ShowHandoffOutput, ShowHandoffParams};
pub use view::{HandoffSummary, HandoffView};
pub use withdraw::{WithdrawHandoff, WithdrawHandoffOutput, WithdrawHandoffParams};
