//! Items that marks hide.

use std::collections::HashSet;

use baton_core::Fault;
use baton_store::Tx;

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
