//! Which ventures a call searches.

use baton_core::{Fault, Venture};
use baton_store::Tx;

use crate::context::Context;

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
