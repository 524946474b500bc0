//! Queue management: counts, next due time, lists, retries and purges.

use baton_core::observation::{QueueStats, QueueStatus};
use baton_core::{SessionId, Timestamp};
use baton_store::{NewQueueItem, QueueItem, Store};

use super::fixture::{AWKWARD, NOW, earlier, later, queue_item, session_id};
use super::queue::{claim, enqueue, fail_at, find, finish_at, ids};
use super::store::{TestStore, read, write};

/// Adds an item of a session in the given status, settled at the given time if it is settled.
fn item(store: &Store, session_id: SessionId, status: QueueStatus, settled_at: Timestamp) -> i64 {
    // Due before all others, so that this item is claimed.
    let id = enqueue(store, &NewQueueItem { session_id, ..queue_item(earlier(1_000)) });
    if status == QueueStatus::Raw {
        return id;
    }
    let fence = claim_alone(store, id);
    match status {
        QueueStatus::Raw | QueueStatus::Processing => {}
        QueueStatus::Done => assert!(finish_at(store, id, fence, settled_at)),
        QueueStatus::Error => assert!(fail_at(store, id, fence, settled_at)),
    }
    id
}

/// Claims one item. Other due items are claimed too and released unchanged.
fn claim_alone(store: &Store, id: i64) -> i64 {
    let claimed = claim(store, earlier(1_000), 1_000);
    for other in claimed.iter().filter(|other| other.id != id) {
        let back =
            baton_store::QueueRelease { run_at: other.run_at, counts: false, failed_at: None, error: None };
        let (id, fence) = (other.id, other.fence);
        assert!(write(store, move |tx| tx.release_queue_item(id, fence, &back)));
    }
    claimed.iter().find(|item| item.id == id).unwrap().fence
}

fn stats(store: &Store) -> QueueStats {
    read(store, |tx| tx.queue_stats())
}

fn wakes_at(store: &Store) -> Option<Timestamp> {
    read(store, |tx| tx.next_queue_due_at())
}

fn page(store: &Store, status: QueueStatus, below: Option<i64>, limit: u32) -> Vec<QueueItem> {
    read(store, move |tx| tx.queue_items(status, below, limit))
}

/// Items are counted per status.
pub fn each_status_is_counted(store: &TestStore) {
    assert_eq!(stats(store), QueueStats::default());
    for (status, count) in
        [(QueueStatus::Processing, 3), (QueueStatus::Done, 2), (QueueStatus::Error, 1), (QueueStatus::Raw, 4)]
    {
        for _ in 0..count {
            item(store, session_id(), status, NOW);
        }
    }
    assert_eq!(stats(store), QueueStats { raw: 4, processing: 3, done: 2, error: 1 });
}

/// The queue wakes when the first item is due or the first lease expires, whichever is earlier.
pub fn queue_wakes_for_the_first_item_or_lease(store: &TestStore) {
    assert_eq!(wakes_at(store), None);
    let late = enqueue(store, &queue_item(later(100)));
    let early = enqueue(store, &queue_item(later(10)));
    assert_eq!(wakes_at(store), Some(later(10)));
    let first = claim(store, later(10), 1).remove(0);
    assert_eq!((first.id, wakes_at(store)), (early, Some(later(70))), "the lease expires first");
    let second = claim(store, later(100), 10);
    assert_eq!(ids(&second), [early, late], "the lease expired and the other is due");
    assert_eq!(wakes_at(store), Some(later(160)));
    for claimed in second {
        assert!(finish_at(store, claimed.id, claimed.fence, NOW));
    }
    assert_eq!(wakes_at(store), None);
}

/// A list contains the items of one status, newest first, and its pages neither skip nor repeat while others arrive.
pub fn lists_page_by_id(store: &TestStore) {
    for status in QueueStatus::ALL {
        let mut expected: Vec<i64> = (0..7).map(|_| item(store, session_id(), status, NOW)).collect();
        expected.reverse();
        let (mut seen, mut below) = (Vec::new(), None);
        loop {
            let found = page(store, status, below, 3);
            assert!(found.len() <= 3 && found.iter().all(|item| item.status == status), "{found:?}");
            let Some(last) = found.last() else { break };
            below = Some(last.id);
            seen.extend(ids(&found));
            // Other items arrive meanwhile.
            item(store, session_id(), status, NOW);
        }
        assert_eq!(seen, expected, "{status:?}");
        assert_eq!(page(store, status, None, 0), []);
    }
}

/// The unprocessed items of a session are listed oldest first; settled items and items of other sessions are not.
pub fn open_items_of_a_session_are_listed(store: &TestStore) {
    let (mine, other) = (session_id(), session_id());
    let mut open = Vec::new();
    for status in [
        QueueStatus::Processing,
        QueueStatus::Done,
        QueueStatus::Raw,
        QueueStatus::Error,
        QueueStatus::Processing,
        QueueStatus::Raw,
    ] {
        let id = item(store, mine, status, NOW);
        if matches!(status, QueueStatus::Raw | QueueStatus::Processing) {
            open.push(id);
        }
        item(store, other, status, NOW);
    }
    let open_of = |session, limit| ids(&read(store, move |tx| tx.open_queue_items(session, limit)));
    assert_eq!(open_of(mine, 10), open);
    assert_eq!(open_of(mine, 3), open[..3]);
    assert!(open_of(session_id(), 10).is_empty());
}

/// Failed items are retried as if they were new, one or all; no other items are.
pub fn failed_items_are_retried(store: &TestStore) {
    let retry = |id| write(store, move |tx| tx.retry_queue(id, later(9)));
    let failed: Vec<i64> = (0..3).map(|_| item(store, session_id(), QueueStatus::Error, NOW)).collect();
    let others = [QueueStatus::Done, QueueStatus::Processing, QueueStatus::Raw]
        .map(|status| item(store, session_id(), status, NOW));
    let untouched = others.map(|id| find(store, id));
    let void = find(store, failed[1]).unwrap().fence;

    assert_eq!(retry(Some(failed[1])), 1);
    let waiting = find(store, failed[1]).unwrap();
    assert_eq!((waiting.status, waiting.attempts, waiting.run_at), (QueueStatus::Raw, 0, later(9)));
    assert_eq!(waiting.settled_at, None);
    assert_eq!(waiting.last_error.as_deref(), Some(AWKWARD), "the error is still stored");
    assert!(!finish_at(store, failed[1], void, NOW), "the old claim is invalid");
    for id in [failed[1], others[0], others[1], others[2], i64::MAX] {
        assert_eq!(retry(Some(id)), 0, "{id} has not failed");
    }
    assert_eq!(retry(None), 2);
    assert_eq!(retry(None), 0);
    assert_eq!(others.map(|id| find(store, id)), untouched);
    let again: Vec<QueueItem> = claim(store, later(9), 100);
    let again: Vec<&QueueItem> = again.iter().filter(|item| failed.contains(&item.id)).collect();
    assert!(
        again.len() == 3 && again.iter().all(|item| item.attempts == 1 && item.fence > void),
        "{again:?}"
    );
}

/// Settled items of one status are purged with their raw output, longest settled first, up to the limit.
pub fn settled_items_are_purged_in_batches(store: &TestStore) {
    let purge = |status, before, limit| write(store, move |tx| tx.purge_queue(status, before, limit)).count;
    let done: Vec<i64> = [4, 1, 3, 0, 2]
        .into_iter()
        .map(|second| item(store, session_id(), QueueStatus::Done, later(second)))
        .collect();
    let failed = item(store, session_id(), QueueStatus::Error, earlier(9));
    let open =
        [QueueStatus::Processing, QueueStatus::Raw].map(|status| item(store, session_id(), status, NOW));
    let left = || -> Vec<i64> { done.iter().copied().filter(|id| find(store, *id).is_some()).collect() };

    assert_eq!(purge(QueueStatus::Done, NOW, 100), 0, "none was settled before that");
    assert_eq!(purge(QueueStatus::Done, later(4), 1), 1);
    assert_eq!(left(), [done[0], done[1], done[2], done[4]]);
    assert_eq!(purge(QueueStatus::Done, later(3), 100), 2);
    assert_eq!(left(), [done[0], done[2]]);
    let gone = done[1];
    assert_eq!(read(store, move |tx| tx.queue_raw(gone)), None);
    assert_eq!(purge(QueueStatus::Done, later(1_000), 100), 2);
    assert!(find(store, failed).is_some() && open.iter().all(|id| find(store, *id).is_some()));
    assert_eq!(purge(QueueStatus::Error, NOW, 100), 1);
    assert_eq!(stats(store), QueueStats { raw: 1, processing: 1, done: 0, error: 0 });
}
