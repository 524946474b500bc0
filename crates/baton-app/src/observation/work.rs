//! Queue operations of a worker: claim, read, finish, release and fail items; and the same for summaries.
//!
//! Owns the transactions. Does not own concurrency, pauses or the choice of compressor.

use std::time::Duration;

use baton_core::observation::{Observation, Provenance, SessionMaterial};
use baton_core::{Fault, ObservationId, SessionId, Timestamp, Ulid};
use baton_llm::{Compression, Price, Summarization, TokenUsage};
use baton_observation::{ToolUse, redact_observation};
use baton_store::{
    DailyUsage, Durability, QueueClaim, QueueItem, QueueRelease, RawOutput, StoreError, SummaryClaim, Tx,
};

use super::automatic::refresh_handoff;
use super::finishing::{self, Finished};
use super::material::{SummaryInput, read_summary_input};
use super::raw::{Extent, tool_use};
use crate::app::App;
use crate::recall::index_some;

/// Delay of a summary while tool uses of its session are pending.
const PENDING_DELAY: Duration = Duration::from_secs(2);

/// Queue operations of a worker. Every method blocks.
#[derive(Debug, Clone)]
pub struct WorkQueue {
    app: App,
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
    /// Creates the queue operations of an application.
    pub fn of(app: App) -> Self {
        Self { app }
    }

    /// Returns the application.
    pub const fn app(&self) -> &App {
        &self.app
    }

    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut dyn Tx) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let written = self.app.store().write_blocking(Durability::Full, work);
        written.inspect_err(|fault| self.app.shared.store_errors.count(fault))
    }

    pub(super) fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut dyn Tx) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let read = self.app.store().read(work).wait();
        read.inspect_err(|fault| self.app.shared.store_errors.count(fault))
    }

    fn price(&self) -> Option<Price> {
        self.app.settings().observations.price
    }

    /// Claims items. An item that was claimed too often without a result is marked as failed, because it may be the
    /// reason why workers died.
    pub fn claim(&self, limit: u32) -> Result<Vec<Claimed>, Fault> {
        let settings = &self.app.settings().observations;
        let now = self.app.now();
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
        let spent = usage_of(&provenance(compressor, "", usage), self.app.now(), self.price());
        self.write(move |tx| Ok(record_usage(tx, session, spent.as_ref())?))
    }

    /// Reads the tool use of a claimed item. For a model, adds the turn of the tool use.
    pub fn tool_use(&self, claimed: &Claimed) -> Result<ToolUse, Fault> {
        let mut tool_use = self.stored_tool_use(claimed)?;
        if self.app.settings().observations.compressor.model().is_some() {
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
        let blobs = self.app.settings().checkpoints.vault.blobs();
        Ok(tool_use(&claimed.item, raw, blobs, Extent::Excerpt)?)
    }

    /// Creates the observation of a claimed item, to be stored with [`Self::finish`].
    pub fn observe(
        &self,
        claimed: &Claimed,
        compression: Compression,
        compressor: &dyn baton_llm::Compressor,
    ) -> Result<Finished, Fault> {
        let (now, item) = (self.app.now(), &claimed.item);
        let observation = self.observation(item, compression, compressor, now)?;
        let usage = usage_of(&observation.provenance, now, self.price());
        Ok(Finished { observation, fence: item.fence, usage, at: now })
    }

    /// Stores observations. Returns for each whether it was stored: false if the claim has been superseded, in which
    /// case only its token usage was recorded.
    pub fn finish(&self, batch: Vec<Finished>) -> Vec<Result<bool, Fault>> {
        let stored = finishing::store(self.app.store(), batch);
        self.index();
        stored
    }

    /// Indexes items for search. The observations are stored; if this fails, a later call indexes them.
    fn index(&self) {
        if let Err(fault) = index_some(self.app.store()) {
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
        let random = self.app.random_bits()? & ((1 << 40) - 1);
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
        let now = self.app.now();
        let (provenance, price) = (provenance(compressor, "", usage), self.price());
        self.write(move |tx| {
            record_usage(tx, session, usage_of(&provenance, now, price).as_ref())?;
            Ok(tx.fail_queue_item(id, fence, &error, now)?)
        })
    }

    /// Claims a summary that is due and reads its input. A summary whose session has pending tool uses is postponed.
    pub fn claim_summary(&self) -> Result<Option<SummaryJob>, Fault> {
        let now = self.app.now();
        let lease_until = now.plus(self.app.settings().observations.lease);
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
        let now = self.app.now();
        let (claim, price) = (job.claim.clone(), self.price());
        let new_summary = |Summarization { summary, usage, prompt_version }| {
            job.input.new_summary(summary, provenance(compressor, prompt_version, usage), now)
        };
        let made = made.map(new_summary).filter(|made| !made.is_unchanged());
        let app = self.app.clone();
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
            refresh_handoff(app.settings(), tx, claim.session_id)?;
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
        let day = self.app.now().day();
        self.read(move |tx| Ok(tx.spent_on(&day)?.tokens))
    }
}

/// Adds the usage of a model call to its day and its session.
pub(super) fn record_usage(
    tx: &mut dyn Tx,
    session: SessionId,
    usage: Option<&DailyUsage>,
) -> Result<(), StoreError> {
    let Some(usage) = usage else { return Ok(()) };
    tx.add_usage(usage)?;
    tx.add_session_usage(session, usage.spent())
}

pub(super) fn provenance(
    compressor: &dyn baton_llm::Compressor,
    prompt_version: &str,
    usage: TokenUsage,
) -> Provenance {
    Provenance {
        compressor: compressor.name().to_owned(),
        model: compressor.model().map(str::to_owned),
        prompt_version: prompt_version.to_owned(),
        tokens_in: usage.tokens_in,
        tokens_out: usage.tokens_out,
    }
}

/// Returns the token usage and cost of a model call; `None` without a model.
pub(super) fn usage_of(provenance: &Provenance, now: Timestamp, price: Option<Price>) -> Option<DailyUsage> {
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
