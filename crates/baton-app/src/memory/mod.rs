//! Corrections of memory: rejected, superseded, pinned and forgotten items.
//!
//! A mark is stored once per item and read in few places: when items are indexed (rejected and superseded ones are not),
//! in the lists of notes, observations and handoffs, in the input of summaries, and in the context bundle.

mod forget;
mod list;
mod mark;

pub use forget::{Forget, ForgetOutput, ForgottenItems};
pub use list::{ListMarks, ListMarksOutput, MarkedItem};
pub use mark::{MarkOutput, PinItem, RejectItem, RestoreItem, SupersedeItem};
