//! Vectors for search: embeds indexed items in batches. An outage of the endpoint affects nothing else.

use baton_core::Fault;
use baton_llm::{CompressError, Embedded};

use crate::breaker::Permission;
use crate::item::{WorkContext, redacted_error};

impl WorkContext {
    /// Embeds all items without a vector, newest first, until the endpoint fails or `should_continue` returns false
    /// before a batch. Returns the number of embedded items.
    pub(crate) fn embed_missing(&self, should_continue: impl Fn() -> bool) -> Result<u64, Fault> {
        let queue = &self.queue;
        let settings = &queue.settings().observations;
        let Some(embedder) = &settings.embedder else { return Ok(0) };
        if matches!(self.embedding_breaker.permission(queue.now()), Permission::NotBefore(_)) {
            return Ok(0);
        }
        let (mut below, mut count) = (None, 0);
        loop {
            let items = queue.items_to_embed(embedder.model(), below)?;
            let Some(last) = items.last() else { return Ok(count) };
            if !should_continue() {
                return Ok(count);
            }
            below = Some(last.number());
            let texts: Vec<&str> =
                items.iter().map(|item| item.text()).filter(|text| !text.is_empty()).collect();
            let embedded = if texts.is_empty() { Ok(Embedded::default()) } else { embedder.embed(&texts) };
            match embedded {
                Ok(embedded) => {
                    self.embedding_breaker.succeeded(queue.now());
                    settings.embedding_troubles.record_success();
                    count += items.len() as u64;
                    queue.keep_vectors(embedder.model(), items, embedded)?;
                }
                Err(error) => {
                    self.embedding_failed(&error);
                    return Ok(count);
                }
            }
        }
    }

    /// Pauses all calls to the embedding endpoint.
    fn embedding_failed(&self, error: &CompressError) {
        let queue = &self.queue;
        let (retry_after, needs_attention) = match error {
            CompressError::Outage { retry_after, needs_attention, .. } => (*retry_after, *needs_attention),
            CompressError::Unusable { .. } => (None, true),
        };
        let now = queue.now();
        let until = self.embedding_breaker.failed(now, retry_after, now.as_millis().unsigned_abs());
        let message = redacted_error(&error.to_string());
        queue.settings().observations.embedding_troubles.record_failure(
            now,
            &message,
            until,
            needs_attention,
        );
        tracing::warn!(error = %message, until = %until, "cannot compute vectors for search; waiting");
    }
}
