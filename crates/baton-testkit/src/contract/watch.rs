//! The queue watch: additions by any process are reported.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use baton_store::{QueueWatch, Store, Tx};

use super::fixture::{NOW, queue_item, session_id};
use super::queue::{claim, enqueue, fail_at};
use super::store::{TestStore, write};

/// Longer than any machine needs; a notification usually takes milliseconds.
const DEADLINE: Duration = Duration::from_secs(30);

/// Starts a watch and waits until it is active.
fn watch(store: &TestStore) -> (QueueWatch, Receiver<()>) {
    let (sender, heard) = channel();
    let changed = move || {
        // The receiver is dropped at the end of the check.
        let _ = sender.send(());
    };
    let watch = QueueWatch::start(store.place().config(), changed).unwrap();
    heard.recv_timeout(DEADLINE).unwrap();
    (watch, heard)
}

/// A watch reports when it is active, and whenever another store adds an item, requests a summary or retries items.
pub fn changes_of_other_stores_are_reported(store: &TestStore) {
    let other = store.another();
    let id = enqueue(&other, &queue_item(NOW));
    let fence = claim(&other, NOW, 1).remove(0).fence;
    assert!(fail_at(&other, id, fence, NOW));
    let changes: [fn(&Store); 3] = [
        |other| assert!(enqueue(other, &queue_item(NOW)) > 0),
        |other| write(other, |tx: &mut dyn Tx| tx.request_summary(session_id(), NOW, NOW)),
        |other| assert_eq!(write(other, |tx: &mut dyn Tx| tx.retry_queue(None, NOW)), 1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        // A new watch for each change, so that a late notification is not taken for the next one.
        let (_watch, heard) = watch(store);
        assert_eq!(heard.try_recv(), Err(TryRecvError::Empty), "nothing has happened yet");
        change(&other);
        assert_eq!(heard.recv_timeout(DEADLINE), Ok(()), "change {number} was not reported");
    }
}

/// A dropped watch makes no more calls.
pub fn dropped_watch_stops(store: &TestStore) {
    let (watch, heard) = watch(store);
    drop(watch);
    enqueue(store, &queue_item(NOW));
    let said: Vec<()> = heard.try_iter().collect();
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(heard.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected));
}
