//! Queue operations of a worker: claim, read, finish, release and fail items; and the same for summaries.
//!
//! Owns the transactions. Does not own concurrency, pauses or the choice of compressor.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_core::observation::{Observation, SessionMaterial};
use baton_core::{Fault, ObservationId, SessionId, Timestamp, Ulid};
use baton_llm::{Compression, Embedded, Price, Summarization, TokenUsage};
use baton_observation::{ToolUse, redact_observation};
use baton_store::{Durability, QueueClaim, QueueItem, QueueRelease, RawOutput, StoreError, SummaryClaim, Tx};

use super::finishing::{self, Finished};
use super::raw::{Extent, tool_use};
use crate::model_usage::{provenance, record_usage, usage_of};
use crate::recall::{ItemToEmbed, index_some, items_to_embed, keep_vectors};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::summary::{SummaryInput, read_summary_input, refresh_handoff};

/// Delay of a summary while tool uses of its session are pending.
const PENDING_DELAY: Duration = Duration::from_secs(2);

/// Queue operations of a worker. Every method blocks.
#[derive(Clone)]
pub struct WorkQueue {
    shared: Arc<Shared>,
}

impl fmt::Debug for WorkQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkQueue")
    }
}

/// A queue item that this worker has leased.
#[derive(Debug, Clone)]
pub struct Claimed {
    item: QueueItem,
}

impl Claimed {
    /// Returns the item id.
    pub const fn id(&self) -> i64 {
        self.item.id
    }

    /// Returns the number of attempts, including the current one.
    pub const fn attempts(&self) -> i64 {
        self.item.attempts
    }

    /// Returns the time of the last failure.
    pub const fn failed_at(&self) -> Option<Timestamp> {
        self.item.failed_at
    }
}

/// A claimed summary request with its input.
#[derive(Debug, Clone)]
pub struct SummaryJob {
    claim: SummaryClaim,
    input: SummaryInput,
}

impl SummaryJob {
    pub const fn session_id(&self) -> SessionId {
        self.claim.session_id
    }

    /// Returns the number of attempts, including the current one.
    pub const fn attempts(&self) -> i64 {
        self.claim.attempts
    }

    /// Returns the input of a compressor: the whole session.
    pub const fn material(&self) -> &SessionMaterial {
        &self.input.session
    }

    /// Returns true if there is nothing to summarize, or if a model would be called for a summary that is up to date.
    pub fn needs_no_summary(&self, compressor: &dyn baton_llm::Compressor) -> bool {
        self.input.session.is_empty() || (compressor.model().is_some() && self.input.is_up_to_date())
    }
}

impl WorkQueue {
    pub(crate) const fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns the settings of the operations.
    pub fn settings(&self) -> &Settings {
        self.shared.settings()
    }

    /// Returns the current time of the operations.
    pub fn now(&self) -> Timestamp {
        self.shared.now()
    }

    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut dyn Tx) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let written = self.shared.store.write_blocking(Durability::Full, work);
        written.inspect_err(|fault| self.shared.store_errors.count(fault))
    }

    pub(super) fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut dyn Tx) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let read = self.shared.store.read(work).wait();
        read.inspect_err(|fault| self.shared.store_errors.count(fault))
    }

    /// Lists the newest items without a vector of the model whose number is lower than `below`. Without `below`, first
    /// indexes new items and claims a pass over all items. Returns nothing if another process runs a pass, or if the daily
    /// token budget is used up.
    pub fn items_to_embed(&self, model: &str, below: Option<i64>) -> Result<Vec<ItemToEmbed>, Fault> {
        items_to_embed(&self.shared, model, below)
    }

    /// Stores the vectors of items and the token usage, and continues the pass. Items that changed since they were read are
    /// skipped. Items that were not embedded get a vector without dimensions.
    pub fn keep_vectors(
        &self,
        model: &str,
        items: Vec<ItemToEmbed>,
        embedded: Embedded,
    ) -> Result<(), Fault> {
        keep_vectors(&self.shared, model, items, embedded)
    }

    fn price(&self) -> Option<Price> {
        self.settings().observations.price
    }

    /// Claims items. An item that was claimed too often without a result is marked as failed, because it may be the
    /// reason why workers died.
    pub fn claim(&self, limit: u32) -> Result<Vec<Claimed>, Fault> {
        let settings = &self.settings().observations;
        let now = self.now();
        let claim = QueueClaim { now, lease_until: now.plus(settings.lease), limit };
        let most = i64::from(settings.max_attempts);
        loop {
            let (claimed, failed) = self.write(move |tx| {
                let found = tx.claim_queue(claim)?;
                let (failed, claimed): (Vec<_>, Vec<_>) =
                    found.into_iter().partition(|item| item.attempts > most);
                for item in &failed {
                    let ended = || format!("failed: {most} workers died while processing this item");
                    let error = item.last_error.clone().unwrap_or_else(ended);
                    tx.fail_queue_item(item.id, item.fence, &error, now)?;
                }
                Ok((claimed, failed))
            })?;
            for item in &failed {
                tracing::error!(item = item.id, "an item failed: it was claimed too often");
            }
            // Other items may be queued behind the failed ones.
            if !claimed.is_empty() || failed.is_empty() {
                return Ok(claimed.into_iter().map(|item| Claimed { item }).collect());
            }
        }
    }

    /// Records the token usage of a model call without a usable result.
    pub fn record_unusable_response(
        &self,
        session: SessionId,
        usage: TokenUsage,
        compressor: &dyn baton_llm::Compressor,
    ) -> Result<(), Fault> {
        let spent = usage_of(&provenance(compressor, "", usage), self.now(), self.price());
        self.write(move |tx| Ok(record_usage(tx, session, spent.as_ref())?))
    }

    /// Reads the tool use of a claimed item. For a model, adds the turn of the tool use.
    pub fn tool_use(&self, claimed: &Claimed) -> Result<ToolUse, Fault> {
        let mut tool_use = self.stored_tool_use(claimed)?;
        if self.settings().observations.compressor.model().is_some() {
            let (session, at) = (claimed.item.session_id, claimed.item.created_at);
            let turn = self.read(move |tx| tx.turn_at(session, at).map_err(Fault::from))?;
            tool_use.turn = turn.map(Into::into);
        }
        Ok(tool_use)
    }

    fn stored_tool_use(&self, claimed: &Claimed) -> Result<ToolUse, Fault> {
        let id = claimed.item.id;
        let raw = match &claimed.item.raw_output {
            Some(bytes) => Some(RawOutput::Row(bytes.clone())),
            None => self.read(move |tx| Ok(tx.queue_raw(id)?))?,
        };
        let raw = raw.ok_or_else(|| StoreError::corrupt("pending_queue", "the item no longer exists"))?;
        let blobs = self.settings().checkpoints.storage.blobs();
        Ok(tool_use(&claimed.item, raw, blobs, Extent::Excerpt)?)
    }

    /// Creates the observation of a claimed item, to be stored with [`Self::finish`].
    pub fn observe(
        &self,
        claimed: &Claimed,
        compression: Compression,
        compressor: &dyn baton_llm::Compressor,
    ) -> Result<Finished, Fault> {
        let (now, item) = (self.now(), &claimed.item);
        let observation = self.observation(item, compression, compressor, now)?;
        let usage = usage_of(&observation.provenance, now, self.price());
        Ok(Finished { observation, fence: item.fence, usage, at: now })
    }

    /// Stores observations. Returns for each whether it was stored: false if the claim has been superseded, in which
    /// case only its token usage was recorded.
    pub fn finish(&self, batch: Vec<Finished>) -> Vec<Result<bool, Fault>> {
        let stored = finishing::store(&self.shared.store, batch);
        self.index();
        stored
    }

    /// Indexes items for search. The observations are stored; if this fails, a later call indexes them.
    fn index(&self) {
        if let Err(fault) = index_some(&self.shared.store) {
            tracing::warn!(%fault, "cannot index items for search; retrying later");
        }
    }

    fn observation(
        &self,
        item: &QueueItem,
        compression: Compression,
        compressor: &dyn baton_llm::Compressor,
        now: Timestamp,
    ) -> Result<Observation, Fault> {
        let Compression { observation: mut compressed, usage, prompt_version } = compression;
        redact_observation(&mut compressed);
        let mut files = item.files_touched.clone();
        files.extend(
            compressed.files_touched.iter().filter(|file| !item.files_touched.contains(file)).cloned(),
        );
        let captured = u64::try_from(item.created_at.as_millis()).unwrap_or(0);
        // Observations captured in the same millisecond sort in queue order.
        let place = u128::from(item.id.unsigned_abs()) << 40;
        let random = self.shared.environment.entropy.bits()? & ((1 << 40) - 1);
        Ok(Observation {
            id: ObservationId::new(Ulid::from_parts(captured, place | random)),
            queue_id: item.id,
            session_id: item.session_id,
            venture: item.venture.clone(),
            repo: item.repo.clone(),
            tool_name: item.tool_name.clone(),
            tool_use_id: item.tool_use_id.clone(),
            compressed,
            files,
            provenance: provenance(compressor, prompt_version, usage),
            raw_bytes: item.raw_bytes,
            captured_at: item.created_at,
            compressed_at: now,
        })
    }

    /// Releases a claimed item to the queue. Returns false if the claim has been superseded.
    pub fn release(&self, claimed: &Claimed, mut release: QueueRelease) -> Result<bool, Fault> {
        release.error = release.error.map(|error| baton_secrets::redact(&error).into_owned());
        let (id, fence) = (claimed.item.id, claimed.item.fence);
        self.write(move |tx| Ok(tx.release_queue_item(id, fence, &release)?))
    }

    /// Marks a claimed item as failed and records the token usage. Returns false if the claim has been superseded.
    pub fn fail(
        &self,
        claimed: &Claimed,
        error: &str,
        usage: TokenUsage,
        compressor: &dyn baton_llm::Compressor,
    ) -> Result<bool, Fault> {
        let (id, fence, error) =
            (claimed.item.id, claimed.item.fence, baton_secrets::redact(error).into_owned());
        let session = claimed.item.session_id;
        let now = self.now();
        let (provenance, price) = (provenance(compressor, "", usage), self.price());
        self.write(move |tx| {
            record_usage(tx, session, usage_of(&provenance, now, price).as_ref())?;
            Ok(tx.fail_queue_item(id, fence, &error, now)?)
        })
    }

    /// Claims a summary that is due and reads its input. A summary whose session has pending tool uses is postponed.
    pub fn claim_summary(&self) -> Result<Option<SummaryJob>, Fault> {
        let now = self.now();
        let lease_until = now.plus(self.settings().observations.lease);
        let claimed = self.write(move |tx| Ok(tx.claim_summaries(now, lease_until, 1)?))?;
        let Some(claim) = claimed.into_iter().next() else { return Ok(None) };
        let session = claim.session_id;
        self.complete_turns(session)?;
        let input = self.read(move |tx| read_summary_input(tx, session))?;
        if input.pending.is_empty() {
            return Ok(Some(SummaryJob { claim, input }));
        }
        self.write(move |tx| Ok(tx.postpone_summary(&claim, Some(now.plus(PENDING_DELAY)), "")?))?;
        Ok(None)
    }

    /// Postpones a claimed summary; without `until`, drops it until it is requested again.
    pub fn postpone_summary(
        &self,
        job: &SummaryJob,
        until: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, Fault> {
        let (claim, error) = (job.claim.clone(), baton_secrets::redact(error).into_owned());
        self.write(move |tx| Ok(tx.postpone_summary(&claim, until, &error)?))
    }

    /// Stores a summary; `None` means that there is nothing new to summarize. Returns false if the claim has been
    /// superseded or another summary was stored in the meantime.
    pub fn keep_summary(
        &self,
        job: &SummaryJob,
        made: Option<Summarization>,
        compressor: &dyn baton_llm::Compressor,
    ) -> Result<bool, Fault> {
        let now = self.now();
        let (claim, price) = (job.claim.clone(), self.price());
        let new_summary = |Summarization { summary, usage, prompt_version }| {
            job.input.new_summary(summary, provenance(compressor, prompt_version, usage), now)
        };
        let made = made.map(new_summary).filter(|made| !made.is_unchanged());
        let shared = self.shared.clone();
        self.write(move |tx| {
            let kept = match &made {
                None => tx.postpone_summary(&claim, None, "")?,
                Some(made) => {
                    let usage = usage_of(&made.stored.provenance, now, price);
                    record_usage(tx, claim.session_id, usage.as_ref())?;
                    tx.keep_summary(claim.session_id, made, Some(claim.fence))?
                }
            };
            if made.is_some() && !kept {
                // Another summary was stored in the meantime.
                tx.request_summary(claim.session_id, now, now)?;
            }
            refresh_handoff(shared.settings(), tx, claim.session_id)?;
            Ok(kept)
        })
    }

    /// Returns when there is work next: the earliest due time of an item or summary, or expiry of a lease.
    pub fn next_due_at(&self) -> Result<Option<Timestamp>, Fault> {
        self.read(|tx| {
            let items = tx.next_queue_due_at()?;
            let summaries = tx.next_summary_due_at()?;
            Ok(match (items, summaries) {
                (Some(items), Some(summaries)) => Some(items.min(summaries)),
                (items, summaries) => items.or(summaries),
            })
        })
    }

    /// Returns the number of tokens used today (UTC).
    pub fn tokens_today(&self) -> Result<u64, Fault> {
        let day = self.now().day();
        self.read(move |tx| Ok(tx.spent_on(&day)?.tokens))
    }
}
