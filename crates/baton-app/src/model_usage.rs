//! Token usage of model calls: who made a text, and what it cost.

use baton_core::observation::Provenance;
use baton_core::{SessionId, Timestamp};
use baton_llm::{Compressor, Price, TokenUsage};
use baton_store::{DailyUsage, StoreError, Tx};

/// Adds the usage of a model call to its day and its session.
pub(crate) fn record_usage(
    tx: &mut dyn Tx,
    session: SessionId,
    usage: Option<&DailyUsage>,
) -> Result<(), StoreError> {
    let Some(usage) = usage else { return Ok(()) };
    tx.add_usage(usage)?;
    tx.add_session_usage(session, usage.spent())
}

/// Returns the origin of a text that a compressor made.
pub(crate) fn provenance(compressor: &dyn Compressor, prompt_version: &str, usage: TokenUsage) -> Provenance {
    Provenance {
        compressor: compressor.name().to_owned(),
        model: compressor.model().map(str::to_owned),
        prompt_version: prompt_version.to_owned(),
        tokens_in: usage.tokens_in,
        tokens_out: usage.tokens_out,
    }
}

/// Returns the token usage and cost of a model call; `None` without a model.
pub(crate) fn usage_of(provenance: &Provenance, now: Timestamp, price: Option<Price>) -> Option<DailyUsage> {
    let model = provenance.model.clone()?;
    let price = price.or_else(|| Price::of(&model));
    Some(DailyUsage {
        day: now.day(),
        compressor: provenance.compressor.clone(),
        model,
        calls: 1,
        tokens_in: provenance.tokens_in,
        tokens_out: provenance.tokens_out,
        micro_usd: price.map_or(0, |price| price.micro_dollars(provenance.tokens_in, provenance.tokens_out)),
    })
}
