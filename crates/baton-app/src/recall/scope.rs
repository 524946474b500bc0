//! How much a request may read: its ventures and the number of its results.

use baton_core::{Fault, Venture};
use baton_store::Tx;

use crate::context::Context;
use crate::page::number_within;

/// Default number of results of a search or of a history.
const DEFAULT_LIMIT: u32 = 10;
/// Maximum number of results of a search or of a history.
const MAX_LIMIT: u32 = 100;

/// Returns the limit of a call, or the default.
pub(super) fn checked_limit(limit: Option<i64>) -> Result<usize, Fault> {
    number_within("limit", limit, DEFAULT_LIMIT, 1..=MAX_LIMIT).map(|limit| limit as usize)
}

/// Returns the requested venture, or all that the caller may read.
pub(super) fn ventures(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    requested: Option<&Venture>,
) -> Result<Vec<Venture>, Fault> {
    match context.readable_ventures(requested)? {
        Some(ventures) => Ok(ventures),
        None => Ok(tx.indexed_ventures()?),
    }
}
