//! Rows of the request log.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::{
    ActorKeyId, CorrelationId, LoggedRequest, RequestRecord, SessionId, StatusFilter, Timestamp, Ulid,
    Venture,
};

use crate::error::StoreError;
use crate::sql::{Columns, QueryBuilder, RowReader, parts};
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

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT timestamp, track, issue_number, duration_ms, status_code, idempotency_hit, endpoint, method, \
             correlation_id, client_correlation_id, actor_key_id, agent, venture, repo, error_message, idempotency_key, \
             COALESCE(request_count, 1), session_id, id FROM requests ",
            $rest
        )
    };
}

fn read_logged(columns: &dyn Columns) -> Result<LoggedRequest, StoreError> {
    let id = RowReader { table: "requests", columns }.int(18)?;
    Ok(LoggedRequest { id, record: read(columns)? })
}

fn read(columns: &dyn Columns) -> Result<RequestRecord, StoreError> {
    let row = RowReader { table: "requests", columns };
    let session_id = match row.opt_bytes(17)? {
        Some(bytes) => {
            let bytes = bytes.try_into().map_err(|_| row.wrong(17, "is not 16 bytes"))?;
            Some(SessionId::new(Ulid(u128::from_be_bytes(bytes))))
        }
        None => None,
    };
    let correlation_id = match row.opt_bytes(8)? {
        Some(bytes) => {
            CorrelationId::from_uuid(bytes.try_into().map_err(|_| row.wrong(8, "is not 16 bytes"))?)
        }
        None => row.parsed(9)?,
    };
    let actor_key_id = match row.opt_bytes(10)? {
        Some(bytes) => {
            Some(ActorKeyId::from_bytes(bytes.try_into().map_err(|_| row.wrong(10, "is not 8 bytes"))?))
        }
        None => None,
    };
    Ok(RequestRecord {
        timestamp: row.time(0)?,
        correlation_id,
        endpoint: row.text(6)?,
        method: row.text(7)?,
        actor_key_id,
        session_id,
        agent: row.opt_text(11)?,
        venture: row.opt_text(12)?,
        repo: row.opt_text(13)?,
        track: row.opt_int(1)?,
        issue_number: row.opt_int(2)?,
        status_code: u16::try_from(row.int(4)?).map_err(|problem| row.wrong(4, problem))?,
        duration_ms: row.int(3)?,
        error_message: row.opt_text(14)?,
        idempotency_key: row.opt_text(15)?,
        idempotency_hit: row.bool(5)?,
        request_count: row.small(16)?,
    })
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

fn session_names(
    tx: &mut dyn Tx,
    ids: &BTreeSet<SessionId>,
) -> Result<BTreeMap<SessionId, SessionNames>, StoreError> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let mut names = BTreeMap::new();
    for part in parts(&ids) {
        let mut query = QueryBuilder::new("SELECT id, agent, venture, repo, track FROM sessions WHERE ");
        query.among("id", part);
        names.extend(tx.query(query.sql(), query.params(), &mut |columns| {
            let row = RowReader { table: "sessions", columns };
            let (agent, venture, repo) = (row.text(1)?, row.text(2)?, row.text(3)?);
            Ok((row.parsed(0)?, SessionNames { agent, venture, repo, track: row.opt_int(4)? }))
        })?);
    }
    Ok(names)
}

/// Adds the names of sessions to records that have none of their own.
fn fill_in(tx: &mut dyn Tx, requests: &mut [LoggedRequest]) -> Result<(), StoreError> {
    let ids = requests.iter().filter_map(|request| request.record.session_id).collect();
    let names = session_names(tx, &ids)?;
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
        let unread_session = record.session_id.filter(|_| record.venture.is_none()).map(|id| id.to_string());
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
                i64::from(record.status_code).into(),
                record.idempotency_hit.into(),
                (&record.endpoint).into(),
                (&record.method).into(),
                uuid.as_ref().map(|uuid| uuid.as_slice()).into(),
                other_id.into(),
                actor.as_ref().map(|actor| actor.as_slice()).into(),
                record.agent.as_ref().into(),
                record.repo.as_ref().into(),
                record.error_message.as_ref().into(),
                record.idempotency_key.as_ref().into(),
                session.as_ref().map(|session| session.as_slice()).into(),
                record.venture.as_ref().into(),
                unread_session.as_ref().into(),
            ],
        )
    }

    /// Lists the newest records as they were written, last written first.
    pub fn requests(&mut self, limit: u32) -> Result<Vec<RequestRecord>, StoreError> {
        self.query(select!("ORDER BY id DESC LIMIT $1"), &[limit.into()], &mut read)
    }

    /// Lists records that match a filter, last written first. If a call gave no agent, venture, repository or track,
    /// those of its session are returned.
    pub fn find_requests(&mut self, filter: &RequestFilter, limit: u32) -> Result<RequestPage, StoreError> {
        let mut bound = |sql: &str| {
            let found = self.query_one(sql, &[], &mut |columns| columns.opt_int(0))?;
            Ok::<Option<i64>, StoreError>(found.flatten())
        };
        let oldest = bound("SELECT MIN(id) FROM requests")?;
        let newest = bound("SELECT MAX(id) FROM requests")?;
        let start = filter.after.unwrap_or(0).saturating_add(1).max(oldest.unwrap_or(1));
        let end = filter.before.unwrap_or(i64::MAX).min(newest.unwrap_or(0).saturating_add(1));
        let is_failed = filter.status.is_some_and(|status| *status.codes().start() >= 400);
        let has_index = filter.session_id.is_some() || is_failed;
        let from = if has_index { start } else { start.max(end.saturating_sub(MAX_EXAMINED)) };

        let session = filter.session_id.map(session_bytes);
        let actor = filter.actor_key_id.as_ref().map(ActorKeyId::to_bytes);
        let mut query = QueryBuilder::new(if filter.session_id.is_some() {
            self.pick(select!("INDEXED BY requests_by_session WHERE "), select!("WHERE "))
        } else if is_failed {
            self.pick(select!("INDEXED BY requests_failed WHERE "), select!("WHERE "))
        } else {
            select!("WHERE ")
        });
        query.with("id < $?", end).with(" AND id >= $?", from);
        query.with_some(" AND session_id = $?", session.as_ref().map(|session| session.as_slice()));
        if let Some(status) = filter.status {
            let codes = status.codes();
            if is_failed {
                // Literal, as in the condition of the partial index.
                query.text(" AND status_code >= 400");
            }
            query.with(" AND status_code >= $?", i64::from(*codes.start()));
            query.with(" AND status_code <= $?", i64::from(*codes.end()));
        }
        query.with_some(" AND actor_key_id = $?", actor.as_ref().map(|actor| actor.as_slice()));
        query.with_some(" AND endpoint = $?", filter.endpoint.as_ref());
        query.with_some(" AND timestamp >= $?", filter.since);
        match filter.ventures.as_deref() {
            None => {}
            Some([]) => {
                query.text(" AND 1 = 0");
            }
            Some(ventures) => {
                query.among(" AND venture", ventures.iter().map(Venture::as_str));
            }
        }
        query.with(" ORDER BY id DESC LIMIT $?", limit.saturating_add(1));
        let mut requests = self.query(query.sql(), query.params(), &mut read_logged)?;
        let is_more = requests.len() > limit as usize;
        requests.truncate(limit as usize);
        fill_in(self, &mut requests)?;
        let next_before = match requests.last() {
            Some(last) if is_more => Some(last.id),
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
