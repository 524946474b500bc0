//! Vectors for search: of items, in batches for the worker, and of the query of a search.
//!
//! Owns which text of an item is sent, and the transactions. The endpoint is called by the worker, outside of
//! transactions.

use std::time::Duration;

use baton_core::recall::{Candidate, Embedding, ItemKind, Vector};
use baton_core::{Fault, first_characters};
use baton_llm::{Embedded, Price};
use baton_store::{DailyUsage, Durability};

use super::indexing::index_all;
use super::item::{Item, Loader};
use crate::context::Context;
use crate::shared::Shared;

/// Number of items per request.
const BATCH: u32 = 16;
/// Number of characters of an item or a query that are sent. Small models read about 500 tokens.
const MAX_TEXT_CHARS: usize = 2_000;
/// Name of the job, so that one process runs a pass at a time.
const JOB: &str = "embedding";
/// Time after the last batch of a pass during which no other pass begins.
const PASS_INTERVAL: Duration = Duration::from_secs(25);
/// Warning of a search whose query has no vector.
const NO_VECTOR: &str = "the embedding endpoint did not answer: items are found by their words only";

/// An item without a vector.
#[derive(Debug, Clone)]
pub struct ItemToEmbed {
    candidate: Candidate,
    text: String,
}

impl ItemToEmbed {
    /// Returns the number of the item in the index.
    pub const fn number(&self) -> i64 {
        self.candidate.number
    }

    /// Returns the text to send; empty if the item has none.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// See [`WorkQueue::items_to_embed`](crate::observation::WorkQueue::items_to_embed).
pub(crate) fn items_to_embed(
    shared: &Shared,
    model: &str,
    below: Option<i64>,
) -> Result<Vec<ItemToEmbed>, Fault> {
    if below.is_none() {
        index_all(&shared.store, |_| {})?;
    }
    let (model, now, budget) =
        (model.to_owned(), shared.now(), shared.settings().observations.daily_token_budget);
    let items = shared.store.read(move |tx| {
        if let Some(budget) = budget
            && tx.spent_on(&now.day())?.tokens >= budget
        {
            return Ok::<_, Fault>(Vec::new());
        }
        let mut loader = Loader::default();
        let mut items = Vec::new();
        for candidate in tx.documents_without_vector(&model, below.unwrap_or(i64::MAX), BATCH)? {
            let item = loader.load_indexed(tx, &candidate.document)?;
            items.push(ItemToEmbed { candidate, text: item.as_ref().map(text_of).unwrap_or_default() });
        }
        Ok(items)
    });
    let items = items.wait()?;
    if below.is_none() && !items.is_empty() && !claim(shared)? {
        return Ok(Vec::new());
    }
    Ok(items)
}

/// See [`WorkQueue::keep_vectors`](crate::observation::WorkQueue::keep_vectors).
pub(crate) fn keep_vectors(
    shared: &Shared,
    model: &str,
    items: Vec<ItemToEmbed>,
    embedded: Embedded,
) -> Result<(), Fault> {
    let (now, tokens_in) = (shared.now(), embedded.usage.tokens_in);
    let usage = DailyUsage {
        day: now.day(),
        compressor: JOB.to_owned(),
        model: model.to_owned(),
        calls: 1,
        tokens_in,
        tokens_out: 0,
        micro_usd: Price::of(model).map_or(0, |price| price.micro_dollars(tokens_in, 0)),
    };
    let mut vectors = embedded.vectors.into_iter();
    let made: Vec<(Candidate, Vector)> = items
        .into_iter()
        .map(|ItemToEmbed { candidate, text }| {
            let vector = if text.is_empty() { None } else { vectors.next() };
            (candidate, vector.unwrap_or_default())
        })
        .collect();
    // The vectors can be computed again, so they need no disk sync of their own.
    shared.store.write_blocking(Durability::Lazy, move |tx| {
        tx.put_vectors(&usage.model, &made)?;
        if tokens_in > 0 {
            tx.add_usage(&usage)?;
        }
        tx.claim_run(JOB, now, now)?;
        Ok::<_, Fault>(())
    })
}

/// Claims a pass, unless another one is in progress or ended just now.
fn claim(shared: &Shared) -> Result<bool, Fault> {
    let now = shared.now();
    let since = now.minus(PASS_INTERVAL);
    shared.store.write_blocking(Durability::Lazy, move |tx| Ok::<_, Fault>(tx.claim_run(JOB, now, since)?))
}

/// Returns the beginning of the text of an item.
fn text_of(item: &Item) -> String {
    // The title of a turn is the beginning of its text.
    let title = if item.kind == ItemKind::Turn { "" } else { item.title.as_str() };
    first_characters(format!("{title}\n{}", item.text).trim(), MAX_TEXT_CHARS).to_owned()
}

/// Requests the vector of a query, if an endpoint is configured. Fails with a warning for the caller.
pub(super) fn embed_query(context: &Context<'_>, query: &str) -> Result<Option<Embedding>, &'static str> {
    let settings = &context.settings.observations;
    let Some(embedder) = settings.embedder.as_ref().filter(|_| !query.trim().is_empty()) else {
        return Ok(None);
    };
    if settings.embedding_troubles.current().is_some_and(|trouble| trouble.retry_at > context.now) {
        return Err(NO_VECTOR);
    }
    let text = baton_secrets::redact(query);
    embedder.embed_query(first_characters(&text, MAX_TEXT_CHARS)).map(Some).map_err(|error| {
        tracing::warn!(error = %baton_secrets::redact(&error.to_string()), "cannot embed a query");
        NO_VECTOR
    })
}
