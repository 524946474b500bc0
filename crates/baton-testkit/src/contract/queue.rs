//! The queue: who may claim what and when, and who may finish it.

use baton_core::Timestamp;
use baton_core::observation::QueueStatus;
use baton_store::{NewQueueItem, QueueClaim, QueueItem, RawOutput, Store, StoreError};

use super::fixture::{NOW, later, queue_item};
use super::store::{TestStore, read, try_write, write};

fn enqueue(store: &Store, item: &NewQueueItem) -> i64 {
    let item = item.clone();
    write(store, move |tx| tx.enqueue(&item)).unwrap()
}

fn claim(store: &Store, now: Timestamp, limit: u32) -> Vec<QueueItem> {
    let lease_until = now.plus(std::time::Duration::from_secs(60));
    write(store, move |tx| tx.claim_queue(QueueClaim { now, lease_until, limit }))
}

fn ids(items: &[QueueItem]) -> Vec<i64> {
    items.iter().map(|item| item.id).collect()
}

fn finish(store: &Store, id: i64, fence: i64) -> bool {
    write(store, move |tx| tx.finish_queue_item(id, fence, NOW))
}

/// A claim gives the item as it was captured, and gives it to nobody else.
pub fn a_claim_gives_the_item_once(store: &TestStore) {
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
        assert_eq!(claim(store, NOW, 10), [], "it is taken");
    }
}

/// An item is left alone until its time comes.
pub fn nothing_runs_before_its_time(store: &TestStore) {
    let (postponed, due) = (enqueue(store, &queue_item(later(10))), enqueue(store, &queue_item(NOW)));
    assert_eq!(ids(&claim(store, NOW, 10)), [due]);
    assert_eq!(claim(store, Timestamp::from_millis(later(10).as_millis() - 1), 10), []);
    assert_eq!(ids(&claim(store, later(10), 10)), [postponed]);
}

/// Items come oldest first, as many as asked for, whether they are new or were left behind.
pub fn the_oldest_come_first_up_to_the_limit(store: &TestStore) {
    let all: Vec<i64> = (0..7).map(|_| enqueue(store, &queue_item(NOW))).collect();
    assert!(all.is_sorted(), "later items get higher numbers: {all:?}");
    assert_eq!(claim(store, NOW, 0), []);
    assert_eq!(ids(&claim(store, NOW, 3)), all[..3]);
    assert_eq!(ids(&claim(store, NOW, 2)), all[3..5]);
    let after_the_lease = later(60);
    assert_eq!(ids(&claim(store, after_the_lease, 6)), all[..6], "left behind and new ones alike");
    assert_eq!(ids(&claim(store, after_the_lease, 6)), all[6..]);
}

/// When a lease runs out the item is claimed anew, and whoever had it can no longer finish it.
pub fn an_expired_lease_fences_the_old_claim_off(store: &TestStore) {
    let id = enqueue(store, &queue_item(NOW));
    let first = claim(store, NOW, 1).remove(0);
    assert_eq!(claim(store, Timestamp::from_millis(later(60).as_millis() - 1), 1), [], "still leased");
    let second = claim(store, later(60), 1).remove(0);
    assert_eq!((second.id, second.attempts), (id, 2));
    assert!(second.fence > first.fence, "{} is not above {}", second.fence, first.fence);

    assert!(!finish(store, id, first.fence), "the old claim is void");
    assert_eq!(claim(store, later(61), 1), [], "and it changed nothing");
    assert!(finish(store, id, second.fence));
}

/// An item is finished once, by its claim alone, and then never comes back.
pub fn a_finished_item_stays_finished(store: &TestStore) {
    let (id, neighbour) = (enqueue(store, &queue_item(NOW)), enqueue(store, &queue_item(NOW)));
    assert!(!finish(store, id, 0), "nobody claimed it");
    let claimed = claim(store, NOW, 1).remove(0);
    assert!(!finish(store, id, claimed.fence + 1), "nobody has that fence");
    assert!(!finish(store, neighbour, claimed.fence), "the neighbour is not claimed");
    assert!(finish(store, id, claimed.fence));
    assert!(!finish(store, id, claimed.fence), "it is done");
    assert_eq!(ids(&claim(store, later(10_000), 10)), [neighbour]);
}

/// A claim whose transaction is undone leaves the item to others.
pub fn an_undone_claim_leaves_the_item(store: &TestStore) {
    let id = enqueue(store, &queue_item(NOW));
    let answer = try_write(store, move |tx| {
        let claimed = tx.claim_queue(QueueClaim { now: NOW, lease_until: later(60), limit: 1 })?;
        assert_eq!(claimed.len(), 1);
        Err::<(), _>(StoreError::Overloaded)
    });
    assert!(answer.is_err());
    let claimed = claim(store, NOW, 1);
    assert_eq!(ids(&claimed), [id]);
    assert_eq!(claimed[0].attempts, 1, "the undone attempt does not count");
}
