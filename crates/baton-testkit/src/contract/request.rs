//! The request log: what is written comes back, the old is dropped in portions.

use baton_core::{ActorKeyId, RequestRecord};
use baton_store::Store;

use super::fixture::{AWKWARD, NOW, earlier, later, request};
use super::store::{TestStore, read, write};

fn log(store: &Store, records: &[RequestRecord]) {
    let records = records.to_vec();
    write(store, move |tx| records.iter().try_for_each(|record| tx.log_request(record)));
}

/// Every field comes back as it was written, newest first, as many as asked for.
pub fn reads_back_every_field(store: &TestStore) {
    let full = RequestRecord {
        correlation_id: "corr:full.1".parse().unwrap(),
        endpoint: "/sod".into(),
        method: "POST".into(),
        actor_key_id: Some(ActorKeyId::of("full")),
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
        ..request(later(3))
    };
    let (first, last) = (request(NOW), request(earlier(5)));
    log(store, &[full.clone(), first.clone(), last.clone()]);
    let mut expected = vec![full, first, last];
    expected.sort_by_key(|record| std::cmp::Reverse(record.id));
    assert_eq!(read(store, |tx| tx.requests(10)), expected);
    assert_eq!(read(store, |tx| tx.requests(2)), expected[..2]);
}

/// Dropping takes what lies before a moment, and no more than it is told to.
pub fn old_requests_are_dropped_in_portions(store: &TestStore) {
    let kept = [request(NOW), request(later(1))];
    let old: Vec<RequestRecord> = (1..=5).map(|seconds| request(earlier(seconds))).collect();
    log(store, &kept);
    log(store, &old);
    let drop_old = |limit| write(store, move |tx| tx.delete_requests(NOW, limit));
    assert_eq!([drop_old(2), drop_old(2), drop_old(2), drop_old(2)], [2, 2, 1, 0]);
    let [first, second] = kept;
    assert_eq!(read(store, |tx| tx.requests(10)), [second, first]);
}
