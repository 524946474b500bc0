//! What a worker does with the queue: claim, read, finish, give back, give up; and the same for summaries.
//!
//! Owns the transactions. Does not own how many are worked on at a time, when to pause, or who compresses.

use std::time::Duration;

use baton_core::observation::{Observation, Price, Provenance, SessionMaterial, ToolUse};
use baton_core::{Fault, ObservationId, SessionId, Timestamp, Ulid, secrets};
use baton_llm::{Compression, Summarization, TokenUsage};
use baton_store::{
    DailyUsage, Durability, QueueClaim, QueueItem, QueueRelease, RawOutput, StoreError, SummaryClaim, Tx,
};

use super::finishing::{self, Finished};
use super::material::{Gathered, gather};
use super::raw::{Extent, tool_use};
use crate::app::App;

/// How long a session's summary waits for tool uses of it that are still being worked on.
const WAIT_FOR_OPEN: Duration = Duration::from_secs(2);

/// The queue as a worker sees it. Every method blocks.
#[derive(Debug, Clone)]
pub struct WorkQueue {
    app: App,
}

/// A captured tool use that is ours for a while.
#[derive(Debug, Clone)]
pub struct Claimed {
    item: QueueItem,
}

impl Claimed {
    /// Its number.
    pub const fn id(&self) -> i64 {
        self.item.id
    }

    /// How often it was tried, this time included.
    pub const fn attempts(&self) -> i64 {
        self.item.attempts
    }

    /// When it failed for the last time.
    pub const fn failed_at(&self) -> Option<Timestamp> {
        self.item.failed_at
    }
}

/// A summary that is ours to make, and what it is made from.
#[derive(Debug, Clone)]
pub struct SummaryJob {
    claim: SummaryClaim,
    gathered: Gathered,
}

impl SummaryJob {
    /// The session.
    pub const fn session_id(&self) -> SessionId {
        self.claim.session_id
    }

    /// How often it was tried, this time included.
    pub const fn attempts(&self) -> i64 {
        self.claim.attempts
    }

    /// The part of it that one prompt has room for; the rest is left to the next step.
    pub fn in_one_prompt(&self) -> Self {
        let mut part = self.clone();
        part.gathered.fit_prompt();
        part
    }

    /// Returns the input of a compressor: for a model the previous summary and what is new since then, otherwise the whole
    /// session.
    pub fn material(&self, compressor: &dyn baton_llm::Compressor) -> &SessionMaterial {
        if compressor.model().is_some() { &self.gathered.material } else { &self.gathered.session }
    }

    /// Returns true if there is nothing new for the compressor.
    pub fn is_empty(&self, compressor: &dyn baton_llm::Compressor) -> bool {
        match compressor.model() {
            Some(_) => self.gathered.material.digests.is_empty(),
            None => self.gathered.is_empty(),
        }
    }
}

impl WorkQueue {
    /// Takes the queue of an application.
    pub fn of(app: App) -> Self {
        Self { app }
    }

    /// The application behind it.
    pub const fn app(&self) -> &App {
        &self.app
    }

    fn write<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Fault> {
        self.app
            .store()
            .write_blocking(Durability::Full, move |tx| work(tx).map_err(Fault::from))
            .inspect_err(|fault| self.app.shared.store_errors.count(fault))
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut dyn Tx) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let read = self.app.store().read(work).wait();
        read.inspect_err(|fault| self.app.shared.store_errors.count(fault))
    }

    fn price(&self) -> Option<Price> {
        self.app.settings().observations.price
    }

    /// Claims items. An item that was claimed too often without a result fails, because it may be what kills the
    /// workers.
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

    /// Counts what a model counted although nothing came of it.
    pub fn count(&self, usage: TokenUsage, compressor: &dyn baton_llm::Compressor) -> Result<(), Fault> {
        let spent = usage_of(&provenance(compressor, "", usage), self.app.now(), self.price());
        self.write(move |tx| spent.iter().try_for_each(|usage| tx.add_usage(usage)))
    }

    /// Reads what a tool did.
    pub fn tool_use(&self, claimed: &Claimed) -> Result<ToolUse, Fault> {
        let blobs = self.app.settings().checkpoints.vault.blobs();
        if let Some(bytes) = &claimed.item.raw_output {
            return tool_use(&claimed.item, RawOutput::Row(bytes.clone()), blobs, Extent::Excerpt)
                .map_err(Fault::from);
        }
        let id = claimed.item.id;
        let raw = self.read(move |tx| tx.queue_raw(id).map_err(Fault::from))?;
        let raw = raw.ok_or_else(|| Fault::from(StoreError::corrupt("pending_queue", "the item is gone")))?;
        tool_use(&claimed.item, raw, blobs, Extent::Excerpt).map_err(Fault::from)
    }

    /// Makes the observation of a claimed item, to be [stored](Self::finish).
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

    /// Stores observations together and tells of each what came of it: false when the claim is no longer ours, and nothing
    /// was kept but what it cost.
    pub fn finish(&self, batch: Vec<Finished>) -> Vec<Result<bool, Fault>> {
        finishing::store(self.app.store(), batch)
    }

    fn observation(
        &self,
        item: &QueueItem,
        compression: Compression,
        compressor: &dyn baton_llm::Compressor,
        now: Timestamp,
    ) -> Result<Observation, Fault> {
        let Compression { observation, usage, prompt_version } = compression;
        let compressed = observation.without_secrets();
        let mut files = item.files_touched.clone();
        files.extend(
            compressed.files_touched.iter().filter(|file| !item.files_touched.contains(file)).cloned(),
        );
        let captured = u64::try_from(item.created_at.as_millis()).unwrap_or(0);
        // What was captured within one millisecond keeps the order of the queue.
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

    /// Gives a claimed item back.
    pub fn release(&self, claimed: &Claimed, mut release: QueueRelease) -> Result<bool, Fault> {
        release.error = release.error.map(|error| secrets::redact(&error).into_owned());
        let (id, fence) = (claimed.item.id, claimed.item.fence);
        self.write(move |tx| tx.release_queue_item(id, fence, &release))
    }

    /// Gives a claimed item up; what the model counted all the same is counted.
    pub fn give_up(
        &self,
        claimed: &Claimed,
        error: &str,
        usage: TokenUsage,
        compressor: &dyn baton_llm::Compressor,
    ) -> Result<bool, Fault> {
        let (id, fence, error) = (claimed.item.id, claimed.item.fence, secrets::redact(error).into_owned());
        let now = self.app.now();
        let (provenance, price) = (provenance(compressor, "", usage), self.price());
        self.write(move |tx| {
            usage_of(&provenance, now, price).iter().try_for_each(|usage| tx.add_usage(usage))?;
            tx.fail_queue_item(id, fence, &error, now)
        })
    }

    /// Claims a summary that is due and gathers what it is made from. One whose session is still being worked on is put
    /// off for a moment.
    pub fn claim_summary(&self) -> Result<Option<SummaryJob>, Fault> {
        let now = self.app.now();
        let lease_until = now.plus(self.app.settings().observations.lease);
        let claimed = self.write(move |tx| tx.claim_summaries(now, lease_until, 1))?;
        let Some(claim) = claimed.into_iter().next() else { return Ok(None) };
        let session = claim.session_id;
        let gathered = self.read(move |tx| gather(tx, session))?;
        if gathered.waiting.is_empty() {
            return Ok(Some(SummaryJob { claim, gathered }));
        }
        self.write(move |tx| tx.postpone_summary(&claim, Some(now.plus(WAIT_FOR_OPEN)), ""))?;
        Ok(None)
    }

    /// Puts a claimed summary off, or gives it up until it is asked for again.
    pub fn postpone_summary(
        &self,
        job: &SummaryJob,
        until: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, Fault> {
        let (claim, error) = (job.claim.clone(), secrets::redact(error).into_owned());
        self.write(move |tx| tx.postpone_summary(&claim, until, &error))
    }

    /// Keeps a summary; none is a session about which there is nothing new to say. False when the claim is no longer ours,
    /// or another summary was made meanwhile.
    pub fn keep_summary(
        &self,
        job: &SummaryJob,
        made: Option<Summarization>,
        compressor: &dyn baton_llm::Compressor,
    ) -> Result<bool, Fault> {
        let now = self.app.now();
        let (claim, more) = (job.claim.clone(), job.gathered.more);
        let Some(Summarization { summary, usage, prompt_version }) = made else {
            return self.write(move |tx| tx.postpone_summary(&claim, None, ""));
        };
        let made = job.gathered.summed_up(summary, provenance(compressor, prompt_version, usage), now);
        if made.says_nothing_new() {
            return self.write(move |tx| tx.postpone_summary(&claim, None, ""));
        }
        let price = self.price();
        self.write(move |tx| {
            usage_of(&made.stored.provenance, now, price).iter().try_for_each(|usage| tx.add_usage(usage))?;
            if !tx.keep_summary(claim.session_id, &made, Some(claim.fence))? {
                // Somebody else made one meanwhile; what that does not cover is summed up on top of it.
                tx.request_summary(claim.session_id, now, now)?;
                return Ok(false);
            }
            if more {
                tx.request_summary(claim.session_id, now, now)?;
            }
            Ok(true)
        })
    }

    /// Tells when there will be something to do: the earliest item or summary that is due, or lease that runs out.
    pub fn wakes_at(&self) -> Result<Option<Timestamp>, Fault> {
        self.read(|tx| {
            let items = tx.queue_wakes_at()?;
            let summaries = tx.summaries_wake_at()?;
            Ok(match (items, summaries) {
                (Some(items), Some(summaries)) => Some(items.min(summaries)),
                (items, summaries) => items.or(summaries),
            })
        })
    }

    /// Tells how many tokens were used today.
    pub fn tokens_today(&self) -> Result<u64, Fault> {
        let day = self.app.now().day();
        self.read(move |tx| Ok(tx.spent_on(&day)?.tokens))
    }
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

/// What a model counted, for the day's account; none without a model.
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
