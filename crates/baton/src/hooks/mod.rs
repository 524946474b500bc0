//! Parts of `baton hook` other than the operation: the agent's checkout, the outbox, and records of failures.

mod capture_failure;
mod hook_log;
mod last_captured;
mod outbox;
mod place;
mod replay;

pub(crate) use capture_failure::{CaptureFailures, Outcome};
pub(crate) use hook_log::{HookError, HookLog};
pub(crate) use last_captured::LastCaptured;
pub(crate) use outbox::{ReportId, ReportOutbox, result_of};
pub(crate) use place::{describe_branches, describe_files, describe_place, hash_inside};
pub(crate) use replay::{replay_periodically, replay_reports};
