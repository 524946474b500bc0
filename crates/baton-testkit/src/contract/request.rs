//! The request log: records are read back; old and surplus records are deleted in batches.

use baton_core::{ActorKeyId, RequestRecord, SessionTuple};
use baton_store::{RequestFilter, Store};

use super::fixture::{AWKWARD, NOW, earlier, later, request, session, session_id, track, tuple};
use super::store::{TestStore, read, write};

fn log(store: &Store, records: &[RequestRecord]) {
    let records = records.to_vec();
    write(store, move |tx| records.iter().try_for_each(|record| tx.log_request(record)));
}

/// Every field is read back as it was written, last written first, as many as asked for.
pub fn reads_back_every_field(store: &TestStore) {
    let full = RequestRecord {
        correlation_id: "corr:full.1".parse().unwrap(),
        endpoint: "/sod".into(),
        method: "POST".into(),
        actor_key_id: Some(ActorKeyId::of("full")),
        session_id: Some(session_id()),
        agent: Some(AWKWARD.into()),
        venture: Some(AWKWARD.into()),
        repo: Some(String::new()),
        track: Some(0),
        issue_number: Some(i64::MIN),
        status_code: u16::MAX,
        duration_ms: i64::MAX,
        error_message: Some(AWKWARD.into()),
        idempotency_key: Some("é".repeat(255)),
        idempotency_hit: true,
        request_count: u32::MAX,
        ..request(later(3))
    };
    let own_id = RequestRecord {
        correlation_id: "corr_019a8f3e-0001-7abc-8def-00000000000f".parse().unwrap(),
        ..request(NOW)
    };
    let last = request(earlier(5));
    log(store, &[full.clone(), own_id.clone(), last.clone()]);
    let expected = [last, own_id, full];
    assert_eq!(read(store, |tx| tx.requests(10)), expected);
    assert_eq!(read(store, |tx| tx.requests(2)), expected[..2]);
}

/// Old records are deleted from the beginning of the log, a limited number at a time.
pub fn old_requests_are_deleted_in_batches(store: &TestStore) {
    let old: Vec<RequestRecord> = (1..=5).rev().map(|seconds| request(earlier(seconds))).collect();
    let kept = [request(NOW), request(later(1))];
    log(store, &old);
    log(store, &kept);
    let delete_old = |limit| write(store, move |tx| tx.delete_requests(NOW, limit));
    assert_eq!([delete_old(2), delete_old(2), delete_old(2), delete_old(2)], [2, 2, 1, 0]);
    let [first, second] = kept;
    assert_eq!(read(store, |tx| tx.requests(10)), [second, first]);
}

/// Surplus records are deleted from the beginning of the log, a limited number at a time.
pub fn surplus_requests_are_deleted_in_batches(store: &TestStore) {
    assert_eq!(write(store, |tx| tx.trim_requests(3, 2)), 0, "an empty log");
    let records: Vec<RequestRecord> = (1..=8).map(|seconds| request(later(seconds))).collect();
    log(store, &records);
    let trim = |limit| write(store, move |tx| tx.trim_requests(3, limit));
    assert_eq!([trim(2), trim(2), trim(2), trim(2)], [2, 2, 1, 0]);
    let newest: Vec<RequestRecord> = records[5..].iter().rev().cloned().collect();
    assert_eq!(read(store, |tx| tx.requests(10)), newest);
}

/// Every filter selects the records that match, alone and together with others.
pub fn requests_are_found_by_every_filter(store: &TestStore) {
    let (first, second) = (session_id(), session_id());
    let actor = |number: usize| ActorKeyId::of(["a", "b"][number % 2]);
    let venture = |number: usize| ["vc", "other"][number / 2 % 2];
    let status = |number: usize| [200, 404, 500, 409][number % 4];
    let records: Vec<RequestRecord> = (0..24)
        .map(|number| RequestRecord {
            actor_key_id: Some(actor(number)),
            session_id: [None, Some(first), Some(second)][number % 3],
            venture: (number % 5 != 0).then(|| venture(number).to_owned()),
            endpoint: ["/sod", "/heartbeat", "/sod/x"][number / 3 % 3].into(),
            status_code: status(number),
            duration_ms: number as i64,
            ..request(later(number as u64))
        })
        .collect();
    log(store, &records);
    let all = RequestFilter::default;
    let ventures = |names: &[&str]| Some(names.iter().map(|name| name.parse().unwrap()).collect());
    let matches = |filter: &RequestFilter, record: &RequestRecord| {
        filter.status.is_none_or(|status| status.codes().contains(&record.status_code))
            && (filter.actor_key_id.is_none() || filter.actor_key_id == record.actor_key_id)
            && (filter.session_id.is_none() || filter.session_id == record.session_id)
            && filter.endpoint.as_ref().is_none_or(|endpoint| *endpoint == record.endpoint)
            && filter.since.is_none_or(|since| record.timestamp >= since)
            && filter.ventures.as_ref().is_none_or(|ventures| {
                ventures.iter().any(|venture| record.venture.as_deref() == Some(venture.as_str()))
            })
    };
    let mut filters = vec![all()];
    for status in ["200", "2xx", "404", "4xx", "5xx", "error", "503"] {
        filters.push(RequestFilter { status: Some(status.parse().unwrap()), ..all() });
    }
    for id in [first, second, session_id()] {
        filters.push(RequestFilter { session_id: Some(id), ..all() });
        let status = Some("4xx".parse().unwrap());
        filters.push(RequestFilter { session_id: Some(id), status, ventures: ventures(&["vc"]), ..all() });
    }
    for names in [&[][..], &["vc"], &["vc", "other"], &["unknown"]] {
        filters.push(RequestFilter { ventures: ventures(names), ..all() });
    }
    filters.push(RequestFilter { actor_key_id: Some(actor(1)), ..all() });
    filters.push(RequestFilter { endpoint: Some("/sod".into()), ..all() });
    filters.push(RequestFilter { since: Some(later(20)), ..all() });
    filters.push(RequestFilter {
        actor_key_id: Some(actor(1)),
        endpoint: Some("/heartbeat".into()),
        since: Some(later(4)),
        status: Some("error".parse().unwrap()),
        ..all()
    });
    for filter in filters {
        let expected: Vec<i64> =
            records.iter().rev().filter(|record| matches(&filter, record)).map(|r| r.duration_ms).collect();
        let asked = filter.clone();
        let page = read(store, move |tx| tx.find_requests(&asked, 100));
        let found: Vec<i64> = page.requests.iter().map(|request| request.record.duration_ms).collect();
        assert_eq!((found, page.next_before), (expected, None), "{filter:?}");
    }
}

/// Names that a call did not give are the names of its session, also when the call was rejected.
pub fn requests_take_missing_names_from_their_session(store: &TestStore) {
    let stored = session(SessionTuple { track: Some(track(3)), ..tuple("claude") });
    let id = stored.id;
    write(store, move |tx| tx.insert_session(&stored));
    let named = RequestRecord { session_id: Some(id), ..request(NOW) };
    let (agent, repo) = (Some("codex".into()), Some("owner/other".into()));
    let own = RequestRecord { agent, repo, status_code: 409, ..named.clone() };
    let unknown = RequestRecord { session_id: Some(session_id()), status_code: 404, ..request(NOW) };
    log(store, &[named, own, unknown]);
    let page = read(store, |tx| tx.find_requests(&RequestFilter::default(), 10));
    let names = |index: usize| {
        let record = &page.requests[index].record;
        (record.agent.as_deref(), record.venture.as_deref(), record.repo.as_deref(), record.track)
    };
    assert_eq!(names(0), (None, None, None, None));
    assert_eq!(names(1), (Some("codex"), Some("vc"), Some("owner/other"), Some(3)));
    assert_eq!(names(2), (Some("claude"), Some("vc"), Some("owner/repo"), Some(3)));
    let ventures = Some(vec!["vc".parse().unwrap()]);
    let scoped = RequestFilter { ventures, ..RequestFilter::default() };
    assert_eq!(read(store, move |tx| tx.find_requests(&scoped, 10)).requests.len(), 2);
}

/// Pages continue where the last one ended; new records are found by the id of the last one seen.
pub fn pages_of_requests_continue_where_the_last_one_ended(store: &TestStore) {
    let empty = read(store, |tx| tx.find_requests(&RequestFilter::default(), 10));
    assert_eq!((empty.requests.len(), empty.next_before), (0, None));
    let records: Vec<RequestRecord> =
        (0..7).map(|number| RequestRecord { duration_ms: number, ..request(NOW) }).collect();
    log(store, &records);
    let (mut filter, mut found) = (RequestFilter::default(), Vec::new());
    loop {
        let asked = filter.clone();
        let page = read(store, move |tx| tx.find_requests(&asked, 3));
        assert!(page.requests.len() <= 3);
        found.extend(page.requests);
        filter.before = page.next_before;
        if filter.before.is_none() {
            break;
        }
    }
    let durations: Vec<i64> = found.iter().map(|request| request.record.duration_ms).collect();
    assert_eq!(durations, [6, 5, 4, 3, 2, 1, 0]);
    let after = RequestFilter { after: Some(found[2].id), ..RequestFilter::default() };
    let newer = read(store, move |tx| tx.find_requests(&after, 10));
    assert_eq!((newer.requests.as_slice(), newer.next_before), (&found[..2], None));
}
