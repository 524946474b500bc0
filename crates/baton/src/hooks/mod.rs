//! What `baton hook` needs beside the operation: where an agent works, what could not be stored, what went wrong.

mod journal;
mod place;
mod spill;

pub(crate) use journal::Journal;
pub(crate) use place::describe_place;
pub(crate) use spill::HookSpill;
