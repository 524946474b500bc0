//! The queue: rules for claiming, finishing and releasing items.

use baton_core::Timestamp;
use baton_core::observation::QueueStatus;
use baton_store::{NewQueueItem, QueueClaim, QueueItem, QueueRelease, RawOutput, Store, StoreError};

use super::fixture::{AWKWARD, NOW, later, queue_item, session_id};
use super::store::{TestStore, read, try_write, write};

/// Adds an item; `None` if it was already queued.
fn report(store: &Store, item: &NewQueueItem) -> Option<i64> {
    let item = item.clone();
    write(store, move |tx| tx.enqueue(&item))
}

pub(super) fn enqueue(store: &Store, item: &NewQueueItem) -> i64 {
    report(store, item).unwrap()
}

/// Claims items for a minute.
pub(super) fn claim(store: &Store, now: Timestamp, limit: u32) -> Vec<QueueItem> {
    let lease_until = now.plus(std::time::Duration::from_secs(60));
    write(store, move |tx| tx.claim_queue(QueueClaim { now, lease_until, limit }))
}

pub(super) fn ids(items: &[QueueItem]) -> Vec<i64> {
    items.iter().map(|item| item.id).collect()
}

fn finish(store: &Store, id: i64, fence: i64) -> bool {
    finish_at(store, id, fence, NOW)
}

pub(super) fn finish_at(store: &Store, id: i64, fence: i64, at: Timestamp) -> bool {
    write(store, move |tx| Ok(tx.finish_queue_items(&[(id, fence)], at)? == [id]))
}

pub(super) fn fail_at(store: &Store, id: i64, fence: i64, at: Timestamp) -> bool {
    write(store, move |tx| tx.fail_queue_item(id, fence, AWKWARD, at))
}

fn release(store: &Store, id: i64, fence: i64, release: &QueueRelease) -> bool {
    let release = release.clone();
    write(store, move |tx| tx.release_queue_item(id, fence, &release))
}

pub(super) fn find(store: &Store, id: i64) -> Option<QueueItem> {
    read(store, move |tx| tx.queue_item(id))
}

/// A claim returns the item as captured, and no other claim gets it.
pub fn claim_returns_each_item_once(store: &TestStore) {
    let every_byte: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for raw in [
        RawOutput::Row(Vec::new()),
        RawOutput::Row(b"plain".to_vec()),
        RawOutput::Row(every_byte),
        RawOutput::Blob("raw-1".into()),
    ] {
        let captured = NewQueueItem {
            raw,
            raw_bytes: 1 << 40,
            tool_name: "naïve ☕".into(),
            files_touched: vec!["src/a.rs".into(), "naïve ☕".into()],
            ..queue_item(NOW)
        };
        let id = enqueue(store, &captured);
        let claimed = claim(store, NOW, 10);
        let [item] = &claimed[..] else { panic!("one item was due, got {claimed:?}") };
        assert_eq!((item.id, item.attempts), (id, 1));
        assert_eq!((item.session_id, &item.tool_name), (captured.session_id, &captured.tool_name));
        assert_eq!((&item.venture, &item.repo), (&captured.venture, &captured.repo));
        assert_eq!((&item.files_touched, item.raw_bytes), (&captured.files_touched, captured.raw_bytes));
        assert_eq!((item.status, item.created_at), (QueueStatus::Processing, captured.created_at));
        assert_eq!(read(store, move |tx| tx.queue_raw(id)), Some(captured.raw));
        assert_eq!(claim(store, NOW, 10), [], "the item is claimed");
    }
}

/// An item is not claimed before its time.
pub fn items_are_not_claimed_before_their_time(store: &TestStore) {
    let (postponed, due) = (enqueue(store, &queue_item(later(10))), enqueue(store, &queue_item(NOW)));
    assert_eq!(ids(&claim(store, NOW, 10)), [due]);
    assert_eq!(claim(store, Timestamp::from_millis(later(10).as_millis() - 1), 10), []);
    assert_eq!(ids(&claim(store, later(10), 10)), [postponed]);
}

/// Items are claimed oldest first up to the limit, both new ones and ones with an expired lease.
pub fn claims_return_the_oldest_items_up_to_the_limit(store: &TestStore) {
    let all: Vec<i64> = (0..7).map(|_| enqueue(store, &queue_item(NOW))).collect();
    assert!(all.is_sorted(), "later items get higher numbers: {all:?}");
    assert_eq!(claim(store, NOW, 0), []);
    assert_eq!(ids(&claim(store, NOW, 3)), all[..3]);
    assert_eq!(ids(&claim(store, NOW, 2)), all[3..5]);
    let after_the_lease = later(60);
    assert_eq!(ids(&claim(store, after_the_lease, 6)), all[..6], "expired leases and new items");
    assert_eq!(ids(&claim(store, after_the_lease, 6)), all[6..]);
}

/// After its lease expired, an item can be claimed again, and the old claim can no longer finish it.
pub fn expired_lease_invalidates_the_old_claim(store: &TestStore) {
    let id = enqueue(store, &queue_item(NOW));
    let first = claim(store, NOW, 1).remove(0);
    assert_eq!(claim(store, Timestamp::from_millis(later(60).as_millis() - 1), 1), [], "still leased");
    let second = claim(store, later(60), 1).remove(0);
    assert_eq!((second.id, second.attempts), (id, 2));
    assert!(second.fence > first.fence, "{} is not above {}", second.fence, first.fence);

    assert!(!finish(store, id, first.fence), "the old claim is invalid");
    assert_eq!(claim(store, later(61), 1), [], "the old claim changed nothing");
    assert!(finish(store, id, second.fence));
}

/// An item is finished once, only by its claim, and never becomes due again.
pub fn finished_items_stay_finished(store: &TestStore) {
    let (id, neighbour) = (enqueue(store, &queue_item(NOW)), enqueue(store, &queue_item(NOW)));
    assert!(!finish(store, id, 0), "the item is not claimed");
    let claimed = claim(store, NOW, 1).remove(0);
    assert!(!finish(store, id, claimed.fence + 1), "the fence does not exist");
    assert!(!finish(store, neighbour, claimed.fence), "the neighbour is not claimed");
    assert!(finish(store, id, claimed.fence));
    assert!(!finish(store, id, claimed.fence), "the item is already done");
    assert_eq!(ids(&claim(store, later(10_000), 10)), [neighbour]);
}

/// A claim whose transaction is rolled back leaves the item available.
pub fn rolled_back_claim_releases_the_item(store: &TestStore) {
    let id = enqueue(store, &queue_item(NOW));
    let answer = try_write(store, move |tx| {
        let claimed = tx.claim_queue(QueueClaim { now: NOW, lease_until: later(60), limit: 1 })?;
        assert_eq!(claimed.len(), 1);
        Err::<(), _>(StoreError::Overloaded)
    });
    assert!(answer.is_err());
    let claimed = claim(store, NOW, 1);
    assert_eq!(ids(&claimed), [id]);
    assert_eq!(claimed[0].attempts, 1, "the rolled back attempt does not count");
}

/// A tool use that is reported twice is queued once, even if it is done. Tool uses without an id are not deduplicated.
pub fn tool_use_reported_twice_is_queued_once(store: &TestStore) {
    let session_id = session_id();
    let used =
        |id: Option<&str>| NewQueueItem { session_id, tool_use_id: id.map(str::to_owned), ..queue_item(NOW) };
    let first = report(store, &used(Some("toolu_1"))).unwrap();
    let raw = read(store, move |tx| tx.queue_raw(first));
    assert_eq!(report(store, &used(Some("toolu_1"))), None);
    assert_eq!(read(store, move |tx| tx.queue_raw(first)), raw, "the first report is kept");
    let fence = claim(store, NOW, 1).remove(0).fence;
    assert!(finish(store, first, fence));
    assert_eq!(report(store, &used(Some("toolu_1"))), None, "also when it is done");

    let others = [
        used(Some("toolu_2")),
        used(Some("TOOLU_1")),
        used(None),
        used(None),
        NewQueueItem { tool_use_id: Some("toolu_1".into()), ..queue_item(NOW) },
    ];
    let others: Vec<i64> = others.iter().map(|other| enqueue(store, other)).collect();
    assert_eq!(ids(&claim(store, NOW, 10)), others);
    assert_eq!(find(store, others[0]).unwrap().tool_use_id.as_deref(), Some("toolu_2"));
}

/// A released item is due at the given time, and the attempt counts as given. An earlier error is kept until another
/// one replaces it.
pub fn released_items_become_due_again(store: &TestStore) {
    let id = enqueue(store, &queue_item(NOW));
    let first = claim(store, NOW, 1).remove(0);
    let failed = QueueRelease {
        run_at: later(5),
        counts: true,
        failed_at: Some(later(1)),
        error: Some(AWKWARD.into()),
    };
    assert!(release(store, id, first.fence, &failed));
    let waiting = find(store, id).unwrap();
    assert_eq!((waiting.status, waiting.attempts, waiting.run_at), (QueueStatus::Raw, 1, later(5)));
    assert_eq!((waiting.failed_at, waiting.last_error.as_deref()), (Some(later(1)), Some(AWKWARD)));
    assert_eq!((waiting.lease_until, waiting.settled_at), (None, None));
    assert_eq!(claim(store, later(4), 1), []);

    let second = claim(store, later(5), 1).remove(0);
    assert_eq!((second.attempts, second.lease_until), (2, Some(later(65))));
    let stopped = QueueRelease { run_at: later(6), counts: false, failed_at: None, error: None };
    assert!(release(store, id, second.fence, &stopped));
    let waiting = find(store, id).unwrap();
    assert_eq!((waiting.attempts, waiting.run_at), (1, later(6)), "the attempt does not count");
    assert_eq!((waiting.failed_at, waiting.last_error.as_deref()), (Some(later(1)), Some(AWKWARD)));
    assert_eq!(claim(store, later(6), 1).remove(0).attempts, 2);
}

/// An outdated or unknown claim can neither release nor fail an item.
pub fn only_the_latest_claim_releases_or_fails_an_item(store: &TestStore) {
    let id = enqueue(store, &queue_item(NOW));
    let back = QueueRelease { run_at: NOW, counts: true, failed_at: Some(NOW), error: Some("no".into()) };
    let untouched = find(store, id);
    assert!(!release(store, id, 0, &back) && !fail_at(store, id, 0, NOW), "the item is not claimed");
    assert_eq!(find(store, id), untouched);

    let lost = claim(store, NOW, 1).remove(0);
    let held = claim(store, later(60), 1).remove(0);
    for fence in [lost.fence, held.fence + 1] {
        assert!(!release(store, id, fence, &back) && !fail_at(store, id, fence, NOW), "fence {fence}");
    }
    assert!(held.raw_output.is_some(), "a claim returns short output, a lookup does not");
    assert_eq!(find(store, id), Some(QueueItem { raw_output: None, ..held.clone() }));
    assert!(release(store, id, held.fence, &back));
    assert!(!release(store, id, held.fence, &back), "it was released");
    assert!(!fail_at(store, id, held.fence, NOW), "it was released");
}

/// A failed item keeps its raw output and never becomes due by itself.
pub fn failed_items_keep_their_raw_output(store: &TestStore) {
    let captured = queue_item(NOW);
    let id = enqueue(store, &captured);
    let fence = claim(store, NOW, 1).remove(0).fence;
    assert!(fail_at(store, id, fence, later(1)));
    let failed = find(store, id).unwrap();
    assert_eq!((failed.status, failed.attempts), (QueueStatus::Error, 1));
    assert_eq!((failed.failed_at, failed.settled_at), (Some(later(1)), Some(later(1))));
    assert_eq!((failed.last_error.as_deref(), failed.lease_until), (Some(AWKWARD), None));
    assert_eq!(read(store, move |tx| tx.queue_raw(id)), Some(captured.raw));
    assert!(!fail_at(store, id, fence, later(2)) && !finish(store, id, fence), "it is settled");
    assert_eq!(claim(store, later(10_000), 10), []);
    assert_eq!(find(store, id), Some(failed));
}

/// A finished item keeps its raw output, and no error of an earlier attempt.
pub fn finished_items_keep_their_raw_output(store: &TestStore) {
    let captured = queue_item(NOW);
    let id = enqueue(store, &captured);
    let first = claim(store, NOW, 1).remove(0);
    let failed = QueueRelease { run_at: NOW, counts: true, failed_at: Some(NOW), error: Some("no".into()) };
    assert!(release(store, id, first.fence, &failed));
    let second = claim(store, NOW, 1).remove(0);
    assert!(finish_at(store, id, second.fence, later(3)));
    let done = find(store, id).unwrap();
    assert_eq!((done.status, done.settled_at, done.lease_until), (QueueStatus::Done, Some(later(3)), None));
    assert_eq!(done.last_error, None);
    assert_eq!(read(store, move |tx| tx.queue_raw(id)), Some(captured.raw));
}
