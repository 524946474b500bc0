//! Rows of the request log.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::{
    ActorKeyId, CorrelationId, LoggedRequest, RequestRecord, SessionId, StatusFilter, Timestamp, Ulid,
    Venture,
};

use crate::column::{FromRow, Row};
use crate::error::StoreError;
use crate::record::{columns, record};
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// Maximum number of records that a filter without an index examines for one page. The next page continues
/// there.
const MAX_EXAMINED: i64 = 1_000_000;

/// Filter for records of the request log. Absent conditions match every record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Status code.
    pub status: Option<StatusFilter>,
    /// Credential.
    pub actor_key_id: Option<ActorKeyId>,
    /// Session that the call named.
    pub session_id: Option<SessionId>,
    /// Path or operation, compared exactly.
    pub endpoint: Option<String>,
    /// Ventures that the caller may see. Records without a venture match only when this is absent.
    pub ventures: Option<Vec<Venture>>,
    /// Earliest time of the call.
    pub since: Option<Timestamp>,
    /// Only records with a higher id.
    pub after: Option<i64>,
    /// Only records with a lower id.
    pub before: Option<i64>,
}

/// Records, last written first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPage {
    /// The records.
    pub requests: Vec<LoggedRequest>,
    /// The id below which the list continues; none when there are no more records.
    pub next_before: Option<i64>,
}

fn select(rest: &str) -> String {
    format!(
        "SELECT id, timestamp, track, issue_number, duration_ms, status_code, idempotency_hit, endpoint, method, \
         correlation_id, client_correlation_id, actor_key_id, agent, venture, repo, error_message, idempotency_key, \
         COALESCE(request_count, 1), session_id FROM requests {rest}"
    )
}

impl FromRow for LoggedRequest {
    fn from_row(row: &mut Row<'_>) -> Result<Self, StoreError> {
        let id = row.get()?;
        let record = RequestRecord {
            timestamp: row.get()?,
            track: row.get()?,
            issue_number: row.get()?,
            duration_ms: row.get()?,
            status_code: row.get()?,
            idempotency_hit: row.get()?,
            endpoint: row.get()?,
            method: row.get()?,
            correlation_id: match row.get()? {
                (Some(uuid), _) => CorrelationId::from_uuid(uuid),
                (None, Some(id)) => id,
                (None, None) => return Err(row.wrong("is null")),
            },
            actor_key_id: row.get::<Option<[u8; 8]>>()?.map(ActorKeyId::from_bytes),
            agent: row.get()?,
            venture: row.get()?,
            repo: row.get()?,
            error_message: row.get()?,
            idempotency_key: row.get()?,
            request_count: row.get()?,
            session_id: row
                .get::<Option<[u8; 16]>>()?
                .map(|bytes| SessionId::new(Ulid(u128::from_be_bytes(bytes)))),
        };
        Ok(Self { id, record })
    }
}

/// The stored form of a session id.
fn session_bytes(id: SessionId) -> [u8; 16] {
    id.ulid().0.to_be_bytes()
}

/// Columns that a record takes from its session.
struct SessionNames {
    agent: String,
    venture: String,
    repo: String,
    track: Option<i64>,
}

record! {
    "sessions", SessionNames { agent, venture, repo, track }
}

/// Adds the names of sessions to records that have none of their own.
fn fill_from_sessions(tx: &mut dyn Tx, requests: &mut [LoggedRequest]) -> Result<(), StoreError> {
    let ids: BTreeSet<SessionId> = requests.iter().filter_map(|one| one.record.session_id).collect();
    let ids: Vec<SessionId> = ids.into_iter().collect();
    let select = format!("SELECT id, {} FROM sessions WHERE id", columns::<SessionNames>());
    let names: Vec<(SessionId, SessionNames)> = tx.query_among(&select, &ids, "")?;
    let names: BTreeMap<SessionId, SessionNames> = names.into_iter().collect();
    for LoggedRequest { record, .. } in requests {
        let Some(names) = record.session_id.and_then(|id| names.get(&id)) else { continue };
        record.track = record.track.or(names.track);
        record.agent.get_or_insert_with(|| names.agent.clone());
        record.venture.get_or_insert_with(|| names.venture.clone());
        record.repo.get_or_insert_with(|| names.repo.clone());
    }
    Ok(())
}

impl dyn Tx + '_ {
    /// Adds a record to the log.
    pub fn log_request(&mut self, record: &RequestRecord) -> Result<(), StoreError> {
        let uuid = record.correlation_id.uuid();
        let other_id = uuid.is_none().then(|| record.correlation_id.as_str());
        let actor = record.actor_key_id.as_ref().map(ActorKeyId::to_bytes);
        let count = (record.request_count != 1).then_some(record.request_count);
        let session = record.session_id.map(session_bytes);
        // The venture decides which tokens may read the record. It is looked up for calls that named a session and were
        // refused or replayed before the session was read.
        let unread_session = record.session_id.filter(|_| record.venture.is_none());
        self.run(
            "INSERT INTO requests (timestamp, track, issue_number, duration_ms, request_count, status_code, \
             idempotency_hit, endpoint, method, correlation_id, client_correlation_id, actor_key_id, agent, repo, \
             error_message, idempotency_key, session_id, venture) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
             $12, $13, $14, $15, $16, $17, COALESCE($18, (SELECT venture FROM sessions WHERE id = $19)))",
            &[
                record.timestamp.into(),
                record.track.into(),
                record.issue_number.into(),
                record.duration_ms.into(),
                count.into(),
                record.status_code.into(),
                record.idempotency_hit.into(),
                (&record.endpoint).into(),
                (&record.method).into(),
                uuid.into(),
                other_id.into(),
                actor.into(),
                record.agent.as_ref().into(),
                record.repo.as_ref().into(),
                record.error_message.as_ref().into(),
                record.idempotency_key.as_ref().into(),
                session.into(),
                record.venture.as_ref().into(),
                unread_session.into(),
            ],
        )
    }

    /// Lists the newest records as they were written, last written first.
    pub fn requests(&mut self, limit: u32) -> Result<Vec<RequestRecord>, StoreError> {
        let newest: Vec<LoggedRequest> = self.query(&select("ORDER BY id DESC LIMIT $1"), &[limit.into()])?;
        Ok(newest.into_iter().map(|request| request.record).collect())
    }

    /// Lists records that match a filter, last written first. An agent, venture, repository or track that a call did not
    /// give is filled in from its session.
    pub fn find_requests(&mut self, filter: &RequestFilter, limit: u32) -> Result<RequestPage, StoreError> {
        let mut bound = |sql: &str| self.query_one::<Option<i64>>(sql, &[]).map(Option::flatten);
        let oldest = bound("SELECT MIN(id) FROM requests")?;
        let newest = bound("SELECT MAX(id) FROM requests")?;
        // Ids from `start` to before `end` can match. This page examines ids from `from`.
        let start = filter.after.unwrap_or(0).saturating_add(1).max(oldest.unwrap_or(1));
        let end = filter.before.unwrap_or(i64::MAX).min(newest.unwrap_or(0).saturating_add(1));
        let is_failed = filter.status.is_some_and(|status| *status.codes().start() >= 400);
        let has_index = filter.session_id.is_some() || is_failed;
        let from = if has_index { start } else { start.max(end.saturating_sub(MAX_EXAMINED)) };

        let session = filter.session_id.map(session_bytes);
        let actor = filter.actor_key_id.as_ref().map(ActorKeyId::to_bytes);
        let mut query = QueryBuilder::new(&select(if filter.session_id.is_some() {
            self.pick("INDEXED BY requests_by_session WHERE ", "WHERE ")
        } else if is_failed {
            self.pick("INDEXED BY requests_failed WHERE ", "WHERE ")
        } else {
            "WHERE "
        }));
        query.with("id < $?", end).with(" AND id >= $?", from);
        query.with_some(" AND session_id = $?", session);
        if let Some(status) = filter.status {
            let codes = status.codes();
            if is_failed {
                // Literal, as in the condition of the partial index.
                query.text(" AND status_code >= 400");
            }
            query.with(" AND status_code >= $?", *codes.start());
            query.with(" AND status_code <= $?", *codes.end());
        }
        query.with_some(" AND actor_key_id = $?", actor);
        query.with_some(" AND endpoint = $?", filter.endpoint.as_ref());
        query.with_some(" AND timestamp >= $?", filter.since);
        query.among_ventures("venture", filter.ventures.as_deref());
        query.with(" ORDER BY id DESC LIMIT $?", limit.saturating_add(1));
        let mut requests: Vec<LoggedRequest> = self.query(query.sql(), query.params())?;
        let has_more = requests.len() > limit as usize;
        requests.truncate(limit as usize);
        fill_from_sessions(self, &mut requests)?;
        let next_before = match requests.last() {
            Some(last) if has_more => Some(last.id),
            _ => (from > start).then_some(from),
        };
        Ok(RequestPage { requests, next_before })
    }

    /// Deletes records of calls before a time and returns their number. Examines the `limit` oldest records, because
    /// records are written roughly in the order of the calls.
    pub fn delete_requests(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.execute(
            "DELETE FROM requests WHERE id < (SELECT MIN(id) FROM requests) + $1 AND timestamp < $2",
            &[limit.into(), before.into()],
        )
    }

    /// Deletes the oldest records beyond a number of records to keep, at most `limit`, and returns their number.
    pub fn trim_requests(&mut self, keep: u64, limit: u32) -> Result<u64, StoreError> {
        self.execute(
            "DELETE FROM requests WHERE id <= (SELECT MAX(id) FROM requests) - $1 \
             AND id < (SELECT MIN(id) FROM requests) + $2",
            &[keep.into(), limit.into()],
        )
    }
}
