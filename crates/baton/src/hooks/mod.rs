//! What `baton hook` needs beside the operation: where an agent works, what could not be stored, what went wrong.

mod journal;
mod place;
mod spill;
mod take_in;

pub(crate) use journal::{Journal, Trouble};
pub(crate) use place::describe_place;
pub(crate) use spill::{Addressee, HookSpill, ReportId, Taken};
pub(crate) use take_in::{take_in_now_and_then, take_in_reports};
