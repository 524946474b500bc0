//! Observations that are finished at the same time share a transaction.
//!
//! Each would otherwise wait for the others anyway, behind the row that counts the day's tokens, and pay for a commit of
//! its own. Whoever comes first writes for all who came meanwhile; the next batch is written by one of those who wait for
//! it, so that nobody works for others only.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::observation::Observation;
use baton_core::{ErrorCode, Fault, Timestamp};
use baton_store::{DailyUsage, Durability, Store, StoreError, Tx};

use crate::transact::Failed;

/// How many observations share a transaction at the most.
const MAX_BATCH: usize = 64;

/// An observation, and the claim by which it may be stored.
#[derive(Debug, Clone)]
pub(super) struct Finished {
    pub(super) observation: Observation,
    pub(super) fence: i64,
    pub(super) usage: Option<DailyUsage>,
    pub(super) at: Timestamp,
}

/// What whoever waits is told.
enum News {
    /// It is stored, or was not ours any more.
    Settled(Result<bool, Fault>),
    /// It is your turn to write for all who wait.
    YourTurn,
}

struct Waiting {
    finished: Finished,
    news: Sender<News>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    is_anybody_writing: bool,
}

/// Where those meet who have something to store. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Finishing {
    state: Arc<Mutex<State>>,
}

impl std::fmt::Debug for Finishing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Finishing")
    }
}

impl Finishing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores an observation and blocks until that is durable; false when its claim is no longer the latest one, and only
    /// what it cost was counted.
    pub(super) fn store(&self, store: &Store, finished: Finished) -> Result<bool, Fault> {
        let (sender, news) = channel();
        let first = {
            let mut state = self.state();
            state.waiting.push(Waiting { finished, news: sender });
            !std::mem::replace(&mut state.is_anybody_writing, true)
        };
        if first {
            self.write_for_all(store);
        }
        loop {
            match news.recv() {
                Ok(News::Settled(result)) => return result,
                Ok(News::YourTurn) => self.write_for_all(store),
                Err(_) => return Err(Fault::new(ErrorCode::Internal, "whoever wrote for others broke off")),
            }
        }
    }

    /// Writes what waits, and hands the turn on.
    fn write_for_all(&self, store: &Store) {
        let mut batch = std::mem::take(&mut self.state().waiting);
        let rest = batch.split_off(batch.len().min(MAX_BATCH));
        if !rest.is_empty() {
            let mut state = self.state();
            let later = std::mem::replace(&mut state.waiting, rest);
            state.waiting.extend(later);
        }
        let results = write(store, batch.iter().map(|waiting| waiting.finished.clone()).collect());
        match results {
            Ok(kept) => {
                for (waiting, kept) in batch.into_iter().zip(kept) {
                    // Whoever does not wait any more needs no answer.
                    let _ = waiting.news.send(News::Settled(Ok(kept)));
                }
            }
            // One that cannot be stored must not take its neighbours with it.
            Err(_) if batch.len() > 1 => {
                for waiting in batch {
                    let result = write(store, vec![waiting.finished]);
                    let result = result.map(|kept| kept.first().copied().unwrap_or(false));
                    let _ = waiting.news.send(News::Settled(result));
                }
            }
            Err(fault) => {
                if let Some(waiting) = batch.pop() {
                    let _ = waiting.news.send(News::Settled(Err(fault)));
                }
            }
        }
        let mut state = self.state();
        // Those who went away without an answer cannot take their turn.
        while let Some(next) = state.waiting.first() {
            if next.news.send(News::YourTurn).is_ok() {
                return;
            }
            state.waiting.remove(0);
        }
        state.is_anybody_writing = false;
    }
}

/// Stores observations in one transaction; tells of each whether its claim was still the latest one.
fn write(store: &Store, batch: Vec<Finished>) -> Result<Vec<bool>, Fault> {
    let usage = add_up(&batch);
    let Some(at) = batch.iter().map(|finished| finished.at).max() else { return Ok(Vec::new()) };
    let claims: Vec<(i64, i64)> =
        batch.iter().map(|finished| (finished.observation.queue_id, finished.fence)).collect();
    let observations: Vec<Observation> = batch.into_iter().map(|finished| finished.observation).collect();
    let work = move |tx: &mut dyn Tx| {
        for usage in &usage {
            tx.add_usage(usage)?;
        }
        let ours = tx.finish_queue_items(&claims, at)?;
        let is_ours = |queue_id: i64| ours.contains(&queue_id);
        let kept: Vec<bool> = claims.iter().map(|(queue_id, _)| is_ours(*queue_id)).collect();
        if ours.len() == claims.len() {
            tx.insert_observations(&observations)?;
        } else {
            let still_ours = observations.iter().filter(|observation| is_ours(observation.queue_id));
            tx.insert_observations(&still_ours.cloned().collect::<Vec<_>>())?;
        }
        Ok::<_, StoreError>(kept)
    };
    store
        .write_blocking(Durability::Full, move |tx| work(tx).map_err(Failed::from))
        .map_err(|Failed(fault)| fault)
}

/// Adds up what models counted, a row for each day and model, always in the same order.
fn add_up(batch: &[Finished]) -> Vec<DailyUsage> {
    let mut total: BTreeMap<(String, String, String), DailyUsage> = BTreeMap::new();
    for usage in batch.iter().filter_map(|finished| finished.usage.clone()) {
        let key = (usage.day.clone(), usage.compressor.clone(), usage.model.clone());
        match total.get_mut(&key) {
            Some(sum) => {
                sum.calls += usage.calls;
                sum.tokens_in += usage.tokens_in;
                sum.tokens_out += usage.tokens_out;
                sum.micro_usd += usage.micro_usd;
            }
            None => _ = total.insert(key, usage),
        }
    }
    total.into_values().collect()
}
