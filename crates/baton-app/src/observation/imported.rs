//! Sessions and observations that are imported instead of captured by hooks.
//!
//! Ids are derived from the origin of a record, so that a repeated import finds the record again.

use baton_core::observation::Observation;
use baton_core::{
    EndReason, Fault, Session, SessionFacts, SessionId, SessionStatus, SessionTuple, Sha256Hash, Timestamp,
    Ulid,
};
use baton_observation::make_private;
use baton_store::Tx;
use serde_json::{Map, Value};

use super::finishing::add_task_subjects;
use crate::context::Context;

/// Field of the session's meta data with the state of the import.
const META_FIELD: &str = "import";

/// Returns the hash of a record's origin. Parts are separated, so that different parts never give the same text.
pub(super) fn origin(parts: &[&str]) -> Sha256Hash {
    let separated = parts.iter().flat_map(|part| [part.as_bytes(), b"\0".as_slice()]);
    Sha256Hash::of_parts(separated)
}

/// Returns the id of an imported session. It contains the start of the chat, or nothing if records of the session can
/// arrive in any order.
pub(super) fn session_id(started_at: Option<Timestamp>, origin: &Sha256Hash) -> SessionId {
    let millis = started_at.and_then(|at| u64::try_from(at.as_millis()).ok()).unwrap_or(0);
    SessionId::new(Ulid::from_parts(millis, u128::from(first_bytes(origin))))
}

/// Returns the number that stands for a queue item in an imported observation. It is negative, because there is no queue
/// item, and makes the observation unique.
pub(super) fn queue_id(origin: &Sha256Hash) -> i64 {
    -i64::try_from(first_bytes(origin) >> 1).unwrap_or(i64::MAX).max(1)
}

fn first_bytes(hash: &Sha256Hash) -> u64 {
    hash.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the id of an imported observation: time of the tool use, time and place of the import.
pub(super) fn observation_ulid(
    context: &Context<'_>,
    captured_at: Timestamp,
    place: usize,
) -> Result<Ulid, Fault> {
    let captured = u64::try_from(captured_at.as_millis()).unwrap_or(0);
    let import = u128::from(u32::try_from(context.now.as_millis() & 0xFFFF_FFFF).unwrap_or(0));
    let place = u128::from(u16::try_from(place).unwrap_or(u16::MAX));
    let random = context.random_bits()? & 0xFFFF_FFFF;
    Ok(Ulid::from_parts(captured, import << 48 | place << 32 | random))
}

/// Period of imported records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImportPeriod {
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

impl ImportPeriod {
    /// Returns the period of some times; `None` if there are none.
    pub(super) fn of(times: impl Iterator<Item = Timestamp> + Clone) -> Option<Self> {
        Some(Self { first: times.clone().min()?, last: times.max()? })
    }

    /// Returns the period of a session.
    pub(super) const fn of_session(session: &Session) -> Self {
        Self { first: session.created_at, last: session.last_heartbeat_at }
    }
}

/// Removes private parts and secrets from parameters. A private part that is not closed ends with its item of the list.
pub(super) fn redact_items(params: &mut Value, list: &str) {
    let items = params.get_mut(list).map(Value::take);
    make_private(params);
    if let Some(mut items) = items {
        items.as_array_mut().into_iter().flatten().for_each(make_private);
        params[list] = items;
    }
}

/// State of the import of a session, from its meta data.
pub(super) fn import_state(session: &Session) -> Map<String, Value> {
    let state = session.meta.as_ref().and_then(|meta| meta.get(META_FIELD));
    state.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Finds or creates an imported session and extends it to the period. Imported sessions have ended.
pub(super) fn store_session(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    id: SessionId,
    new: NewSession<'_>,
) -> Result<Session, Fault> {
    let NewSession { tuple, facts, period, state } = new;
    let meta = || Map::from_iter([(META_FIELD.to_owned(), Value::Object(state.clone()))]);
    if let Some(mut session) = tx.lock_session(id)? {
        let before = session.clone();
        session.last_heartbeat_at = session.last_heartbeat_at.max(period.last);
        session.ended_at = Some(session.last_heartbeat_at);
        session.meta = Some(meta());
        if session != before {
            tx.update_session(&session)?;
        }
        return Ok(session);
    }
    let session = Session {
        id,
        tuple,
        facts,
        status: SessionStatus::Ended,
        created_at: period.first,
        last_heartbeat_at: period.last,
        ended_at: Some(period.last),
        end_reason: Some(EndReason::Manual),
        schema_version: "1.0".into(),
        actor_key_id: context.actor.key_id.clone(),
        creation_correlation_id: context.correlation_id.clone(),
        meta: Some(meta()),
    };
    tx.insert_session(&session)?;
    Ok(session)
}

/// Data of an imported session.
pub(super) struct NewSession<'a> {
    pub(super) tuple: SessionTuple,
    pub(super) facts: SessionFacts,
    pub(super) period: ImportPeriod,
    pub(super) state: &'a Map<String, Value>,
}

/// Adds observations and returns how many are new.
pub(super) fn store_observations(tx: &mut dyn Tx, observations: &[Observation]) -> Result<u64, Fault> {
    if observations.is_empty() {
        return Ok(0);
    }
    let mut observations = observations.to_vec();
    add_task_subjects(tx, &mut observations)?;
    Ok(tx.insert_observations(&observations)? as u64)
}
