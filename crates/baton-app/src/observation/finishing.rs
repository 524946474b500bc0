//! Stores finished observations. Observations that are ready at the same time share a transaction.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::observation::Observation;
use baton_core::{Fault, SessionId, Timestamp};
use baton_observation::{TASK_CREATION, add_task_subject, may_supersede, superseded, updated_task};
use baton_store::{DailyUsage, Durability, ObservationFilter, Page, Spent, Store, Tx};

/// Maximum number of observations of a turn that are compared.
const MAX_TURN_OBSERVATIONS: u32 = 500;

/// Maximum number of tasks of a session whose subjects are known.
const MAX_TASKS: u32 = 200;

/// An observation that is ready to be stored, with the claim of its queue item.
#[derive(Debug, Clone)]
pub struct Finished {
    pub(super) observation: Observation,
    pub(super) fence: i64,
    pub(super) usage: Option<DailyUsage>,
    pub(super) at: Timestamp,
}

/// Stores observations. Returns for each whether it was stored: false if its claim has been superseded.
pub(super) fn store(store: &Store, batch: Vec<Finished>) -> Vec<Result<bool, Fault>> {
    match write(store, batch.clone()) {
        Ok(kept) => kept.into_iter().map(Ok).collect(),
        Err(fault) if batch.len() == 1 => vec![Err(fault)],
        // If the batch fails, each observation is stored alone, so that one bad observation does not block the others.
        Err(_) => {
            let alone = |finished| write(store, vec![finished]).map(|kept| kept.contains(&true));
            batch.into_iter().map(alone).collect()
        }
    }
}

/// Stores observations in one transaction. Token usage is recorded even if the claim has been superseded.
fn write(store: &Store, batch: Vec<Finished>) -> Result<Vec<bool>, Fault> {
    let Some(at) = batch.iter().map(|finished| finished.at).max() else { return Ok(Vec::new()) };
    let usage = total_usage(&batch);
    let by_session = usage_by_session(&batch);
    let claims: Vec<(i64, i64)> =
        batch.iter().map(|finished| (finished.observation.queue_id, finished.fence)).collect();
    let observations: Vec<Observation> = batch.into_iter().map(|finished| finished.observation).collect();
    let work = move |tx: &mut dyn Tx| {
        for usage in &usage {
            tx.add_usage(usage)?;
        }
        for (session, spent) in &by_session {
            tx.add_session_usage(*session, *spent)?;
        }
        let finished_ids = tx.finish_queue_items(&claims, at)?;
        let is_finished = |queue_id: i64| finished_ids.contains(&queue_id);
        let new = observations.iter().filter(|observation| is_finished(observation.queue_id));
        let mut new: Vec<Observation> = new.cloned().collect();
        add_task_subjects(tx, &mut new)?;
        tx.insert_observations(&new)?;
        for observation in observations.iter().filter(|one| may_supersede(&one.tool_name)) {
            delete_superseded(tx, observation)?;
        }
        Ok::<_, Fault>(claims.iter().map(|(queue_id, _)| is_finished(*queue_id)).collect())
    };
    store.write_blocking(Durability::Full, work)
}

/// Adds the subjects of tasks to the observations that update them.
pub(super) fn add_task_subjects(tx: &mut dyn Tx, observations: &mut [Observation]) -> Result<(), Fault> {
    let sessions: BTreeSet<SessionId> =
        observations.iter().filter(|one| updated_task(one).is_some()).map(|one| one.session_id).collect();
    for session in sessions {
        let filter = ObservationFilter {
            session_id: Some(session),
            tool_name: Some(TASK_CREATION.to_owned()),
            ..ObservationFilter::default()
        };
        let is_creation = |one: &&Observation| one.session_id == session && one.tool_name == TASK_CREATION;
        let mut created: Vec<Observation> = observations.iter().rev().filter(is_creation).cloned().collect();
        created.extend(tx.observations(&filter, Page::first(MAX_TASKS))?);
        for update in observations.iter_mut().filter(|one| one.session_id == session) {
            add_task_subject(update, created.iter());
        }
    }
    Ok(())
}

/// Deletes the observations of a turn that a new one replaces, or the new one.
fn delete_superseded(tx: &mut dyn Tx, observation: &Observation) -> Result<(), Fault> {
    let Some(turn) = tx.turn_at(observation.session_id, observation.captured_at)? else { return Ok(()) };
    let until = tx.next_turn(&turn)?.map(|next| next.started_at);
    let all = tx.observations_between(turn.session_id, turn.started_at, until, MAX_TURN_OBSERVATIONS)?;
    tx.delete_observations(&superseded(&all)).map_err(Fault::from)
}

/// Returns the total token usage per session, in a fixed order.
fn usage_by_session(batch: &[Finished]) -> BTreeMap<SessionId, Spent> {
    let mut total: BTreeMap<SessionId, Spent> = BTreeMap::new();
    for finished in batch {
        if let Some(Spent { tokens, micro_usd }) = finished.usage.as_ref().map(DailyUsage::spent) {
            let sum = total.entry(finished.observation.session_id).or_default();
            sum.tokens += tokens;
            sum.micro_usd += micro_usd;
        }
    }
    total
}

/// Returns the total token usage per day, compressor and model, in a fixed order.
fn total_usage(batch: &[Finished]) -> Vec<DailyUsage> {
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
