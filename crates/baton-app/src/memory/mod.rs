//! Corrections of memory: rejected, superseded, pinned and forgotten items.
//!
//! A mark is stored once per item and read in few places: when items are indexed (rejected and superseded ones are not),
//! in the lists of notes, observations and handoffs, in the input of summaries, and in the context bundle.

mod forget;
mod list;
mod mark;

use std::collections::HashSet;

use baton_core::Fault;
use baton_store::Tx;

pub use forget::{Forget, ForgetOutput, ForgottenItems};
pub use list::{ListMarks, ListMarksOutput, MarkedItem};
pub use mark::{MarkOutput, PinItem, RejectItem, RestoreItem, SupersedeItem};

/// Returns the rejected and superseded items among the given ids.
pub(crate) fn hidden_items(
    tx: &mut dyn Tx,
    ids: impl IntoIterator<Item = String>,
) -> Result<HashSet<String>, Fault> {
    let ids: HashSet<String> = ids.into_iter().collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let marks = tx.marks_of(&ids)?;
    Ok(marks.into_iter().filter(|mark| mark.kind.hides()).map(|mark| mark.item).collect())
}
