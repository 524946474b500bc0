//! What `baton hook` needs beside the operation: where an agent works, spooled reports, and records of what went wrong.

mod capture_failure;
mod fallback;
mod journal;
mod place;
mod spill;
mod take_in;

pub(crate) use capture_failure::{CaptureFailures, Outcome};
pub(crate) use journal::{Journal, Trouble};
pub(crate) use place::describe_place;
pub(crate) use spill::{HookSpill, Kept, ReplayLimits, ReportId, Taken};
pub(crate) use take_in::{take_in_now_and_then, take_in_reports};
