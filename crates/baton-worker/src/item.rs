//! Processing of one item: read it, compress it, store the result, or handle its failure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_app::observation::{Claimed, Finished, ModelTroubles, SummaryJob, WorkQueue};
use baton_core::{ErrorCode, Fault, Timestamp};
use baton_llm::{CompressError, Compressor, TokenUsage};
use baton_store::QueueRelease;

use crate::breaker::{Breaker, Permission, backoff};

/// Maximum length of an error message stored with an item.
const MAX_ERROR_CHARS: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobOutcome {
    /// An observation was stored.
    Done,
    /// The item was released for a later attempt.
    Released,
    /// The item failed finally.
    Failed,
    /// Another worker has the item because the lease expired.
    Lost,
}

impl JobOutcome {
    /// Returns this outcome if the queue accepted the result.
    const fn if_kept(self, is_kept: bool) -> Self {
        if is_kept { self } else { Self::Lost }
    }
}

/// Result of processing an item.
pub(crate) enum WorkResult {
    /// The item is settled.
    Settled(JobOutcome),
    /// The item was compressed; its observation is not stored yet.
    Compressed(Box<Finished>),
}

impl From<JobOutcome> for WorkResult {
    fn from(outcome: JobOutcome) -> Self {
        Self::Settled(outcome)
    }
}

/// Queue and circuit breakers, shared by all threads.
pub(crate) struct WorkContext {
    pub(crate) queue: WorkQueue,
    /// Circuit breaker of the model.
    pub(crate) breaker: Breaker,
    /// Circuit breaker of the embedding endpoint.
    pub(crate) embedding_breaker: Breaker,
}

impl WorkContext {
    /// Returns the compressor to use now.
    pub(crate) fn compressor(&self) -> Result<Arc<dyn Compressor>, Fault> {
        let settings = &self.queue.settings().observations;
        settings.compressor_within_budget(|| self.queue.tokens_today()).cloned()
    }

    fn now(&self) -> Timestamp {
        self.queue.now()
    }

    fn troubles(&self) -> &ModelTroubles {
        &self.queue.settings().observations.troubles
    }

    /// Records that the model answered.
    fn answered(&self) {
        self.breaker.succeeded(self.now());
        self.troubles().record_success();
    }

    /// Compresses a claimed item, or settles it if it cannot be compressed now.
    pub(crate) fn work(&self, claimed: &Claimed) -> Result<WorkResult, Fault> {
        let compressor = self.compressor()?;
        if let (Some(_), Permission::NotBefore(until)) =
            (compressor.model(), self.breaker.permission(self.now()))
        {
            // The item was claimed before the pause began.
            let release = QueueRelease { run_at: until, counts: false, failed_at: None, error: None };
            return self.release(claimed, release).map(Into::into);
        }
        let started = Instant::now();
        let tool_use = match self.queue.tool_use(claimed) {
            Ok(tool_use) => tool_use,
            Err(fault) if fault.code == ErrorCode::Internal => {
                let damaged = "the raw output is damaged";
                return self.fail(claimed, damaged, compressor.as_ref()).map(Into::into);
            }
            Err(fault) => return Err(fault),
        };
        // A model could add nothing to the observation of a trivial tool use.
        let compressor = if compressor.model().is_some() && tool_use.is_trivial() {
            self.queue.settings().observations.offline.clone()
        } else {
            compressor
        };
        let compressed = catch_unwind(AssertUnwindSafe(|| compressor.compress(&tool_use)));
        drop(tool_use);
        let outcome = match compressed {
            Ok(Ok(compression)) => {
                if compressor.model().is_some() {
                    self.answered();
                }
                let TokenUsage { tokens_in, tokens_out } = compression.usage;
                tracing::info!(
                    event = "compress.done",
                    item = claimed.id(),
                    compressor = compressor.name(),
                    duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                    tokens_in,
                    tokens_out,
                    "compressed a tool use"
                );
                let finished = self.queue.observe(claimed, compression, compressor.as_ref())?;
                return Ok(WorkResult::Compressed(Box::new(finished)));
            }
            Ok(Err(error)) => self.compression_failed(claimed, error, compressor.as_ref()),
            Err(_) => self.fail(claimed, "the compressor panicked", compressor.as_ref()),
        };
        outcome.map(Into::into)
    }

    /// Handles an error of the compressor. An outage releases the item; an unusable answer fails it.
    fn compression_failed(
        &self,
        claimed: &Claimed,
        error: CompressError,
        compressor: &dyn Compressor,
    ) -> Result<JobOutcome, Fault> {
        match error {
            CompressError::Outage { message, retry_after, needs_attention, may_be_caused_by_item } => {
                if may_be_caused_by_item && self.breaker.succeeded_since(claimed.failed_at()) {
                    self.item_failure(claimed, &message, compressor)
                } else {
                    self.outage(claimed, &Outage { message, retry_after, needs_attention })
                }
            }
            CompressError::Unusable { message, usage } => {
                // The model is available, even if its answer is unusable.
                self.answered();
                tracing::warn!(item = claimed.id(), error = %redacted_error(&message), "an item failed");
                let kept = self.queue.fail(claimed, &redacted_error(&message), usage, compressor)?;
                Ok(JobOutcome::Failed.if_kept(kept))
            }
        }
    }

    /// Stores observations and returns the outcome of each.
    pub(crate) fn finish(&self, batch: Vec<Finished>) -> Vec<Result<JobOutcome, Fault>> {
        let stored = self.queue.finish(batch).into_iter();
        stored.map(|kept| kept.map(|kept| JobOutcome::Done.if_kept(kept))).collect()
    }

    fn fail(&self, claimed: &Claimed, error: &str, compressor: &dyn Compressor) -> Result<JobOutcome, Fault> {
        tracing::error!(item = claimed.id(), error, "an item failed");
        let kept = self.queue.fail(claimed, error, TokenUsage::default(), compressor)?;
        Ok(JobOutcome::Failed.if_kept(kept))
    }

    fn release(&self, claimed: &Claimed, release: QueueRelease) -> Result<JobOutcome, Fault> {
        let kept = self.queue.release(claimed, release)?;
        Ok(JobOutcome::Released.if_kept(kept))
    }

    /// Handles an outage: pauses all calls, and releases the item without counting the attempt.
    fn outage(&self, claimed: &Claimed, outage: &Outage) -> Result<JobOutcome, Fault> {
        let now = self.now();
        let paused_until = self.pause(now, outage, jitter_seed(now, claimed));
        let error = Some(redacted_error(&outage.message));
        let release = QueueRelease { run_at: paused_until, counts: false, failed_at: Some(now), error };
        self.release(claimed, release)
    }

    /// Pauses all calls to the model after an outage, and returns the end of the pause.
    fn pause(&self, now: Timestamp, outage: &Outage, jitter_seed: u64) -> Timestamp {
        let Outage { message, retry_after, needs_attention } = outage;
        let until = self.breaker.failed(now, *retry_after, jitter_seed);
        self.troubles().record_failure(now, message, until, *needs_attention);
        if *needs_attention {
            tracing::error!(
                error = %redacted_error(message),
                "the model rejects requests; check the key, the model and the address"
            );
        } else {
            tracing::warn!(error = %redacted_error(message), until = %until, "the model is unavailable; waiting");
        }
        until
    }

    /// Handles a failure of the model on one item while other items succeed: only this item is postponed, and it fails
    /// after the maximum number of attempts.
    fn item_failure(
        &self,
        claimed: &Claimed,
        message: &str,
        compressor: &dyn Compressor,
    ) -> Result<JobOutcome, Fault> {
        let now = self.now();
        if claimed.attempts() >= i64::from(self.queue.settings().observations.max_attempts) {
            let error = redacted_error(&format!("failed after {} attempts: {message}", claimed.attempts()));
            return self.fail(claimed, &error, compressor);
        }
        tracing::warn!(item = claimed.id(), error = %redacted_error(message), "the model fails only on this item");
        let attempts = u32::try_from(claimed.attempts()).unwrap_or(1);
        let run_at = now.plus(backoff(attempts, None, jitter_seed(now, claimed)));
        let error = Some(redacted_error(message));
        self.release(claimed, QueueRelease { run_at, counts: true, failed_at: Some(now), error })
    }

    /// Creates and stores a summary, with the offline compressor if the answer of the model is unusable.
    pub(crate) fn summarize_session(&self, job: &SummaryJob) -> Result<JobOutcome, Fault> {
        let compressor = self.compressor()?;
        if job.needs_no_summary(compressor.as_ref()) {
            let kept = self.queue.keep_summary(job, None, compressor.as_ref())?;
            return Ok(JobOutcome::Done.if_kept(kept));
        }
        let made = catch_unwind(AssertUnwindSafe(|| compressor.summarize(job.material())));
        let error = match made {
            Ok(Ok(made)) => {
                if compressor.model().is_some() {
                    self.answered();
                }
                let kept = self.queue.keep_summary(job, Some(made), compressor.as_ref())?;
                return Ok(JobOutcome::Done.if_kept(kept));
            }
            Ok(Err(CompressError::Outage { message, retry_after, needs_attention, .. })) => {
                let now = self.now();
                let outage = Outage { message, retry_after, needs_attention };
                let until = self.pause(now, &outage, now.as_millis().unsigned_abs());
                self.queue.postpone_summary(job, Some(until), &redacted_error(&outage.message))?;
                return Ok(JobOutcome::Released);
            }
            Ok(Err(CompressError::Unusable { message, usage })) => {
                self.answered();
                self.queue.record_unusable_response(job.session_id(), usage, compressor.as_ref())?;
                message
            }
            Err(_) => "the compressor panicked".to_owned(),
        };
        // Falls back to the offline compressor.
        tracing::warn!(session = %job.session_id(), error = %redacted_error(&error), "creating a summary without the model");
        let offline = self.queue.settings().observations.offline.clone();
        match catch_unwind(AssertUnwindSafe(|| offline.summarize(job.material()))) {
            Ok(Ok(made)) => {
                let kept = self.queue.keep_summary(job, Some(made), offline.as_ref())?;
                Ok(JobOutcome::Done.if_kept(kept))
            }
            _ => {
                self.queue.postpone_summary(job, None, &redacted_error(&error))?;
                Ok(JobOutcome::Failed)
            }
        }
    }
}

/// Details of a model outage.
struct Outage {
    message: String,
    retry_after: Option<Duration>,
    needs_attention: bool,
}

/// Returns a number that differs by item and time, for jitter.
fn jitter_seed(now: Timestamp, claimed: &Claimed) -> u64 {
    now.as_millis().unsigned_abs() ^ claimed.id().unsigned_abs()
}

/// Truncates an error message and redacts secrets.
pub(crate) fn redacted_error(message: &str) -> String {
    baton_secrets::redact(message).chars().take(MAX_ERROR_CHARS).collect()
}
