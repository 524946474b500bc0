//! Which ventures a call searches.

use baton_core::{Fault, Venture, VentureScope};
use baton_store::Tx;

use crate::context::Context;

/// Returns the requested venture, or all that the caller may read.
pub(super) fn ventures(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    requested: Option<&Venture>,
) -> Result<Vec<Venture>, Fault> {
    if let Some(venture) = requested {
        context.actor.require_venture(venture)?;
        return Ok(vec![venture.clone()]);
    }
    match &context.actor.ventures {
        VentureScope::All => Ok(tx.indexed_ventures()?),
        VentureScope::Only(ventures) => Ok(ventures.clone()),
    }
}
