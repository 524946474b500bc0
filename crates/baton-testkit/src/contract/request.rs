//! The request log: what is written is read back; old and surplus records are deleted in portions.

use baton_core::{ActorKeyId, RequestRecord};
use baton_store::Store;

use super::fixture::{AWKWARD, NOW, earlier, later, request};
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
pub fn old_requests_are_deleted_in_portions(store: &TestStore) {
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
pub fn surplus_requests_are_deleted_in_portions(store: &TestStore) {
    assert_eq!(write(store, |tx| tx.trim_requests(3, 2)), 0, "an empty log");
    let records: Vec<RequestRecord> = (1..=8).map(|seconds| request(later(seconds))).collect();
    log(store, &records);
    let trim = |limit| write(store, move |tx| tx.trim_requests(3, limit));
    assert_eq!([trim(2), trim(2), trim(2), trim(2)], [2, 2, 1, 0]);
    let newest: Vec<RequestRecord> = records[5..].iter().rev().cloned().collect();
    assert_eq!(read(store, |tx| tx.requests(10)), newest);
}
