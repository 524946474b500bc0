//! The watch on the queue: whoever puts something there is heard, whichever process it is.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use baton_store::{QueueWatch, Store, Tx};

use super::fixture::{NOW, queue_item, session_id};
use super::queue::{claim, enqueue, fail_at};
use super::store::{TestStore, write};

/// Longer than any machine takes; what works comes in milliseconds.
const DEADLINE: Duration = Duration::from_secs(30);

/// Watches, and has heard that it does.
fn watch(store: &TestStore) -> (QueueWatch, Receiver<()>) {
    let (sender, heard) = channel();
    let changed = move || {
        // Nobody listens any more once the check is over.
        let _ = sender.send(());
    };
    let watch = QueueWatch::start(store.place().config(), changed).unwrap();
    heard.recv_timeout(DEADLINE).unwrap();
    (watch, heard)
}

/// A watch says so once it listens, and then whatever another store puts into the queue, asks to be summed up or tries
/// again.
pub fn changes_of_others_are_heard(store: &TestStore) {
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
        // One for each, so that what is heard late of one is not taken for the next.
        let (_watch, heard) = watch(store);
        assert_eq!(heard.try_recv(), Err(TryRecvError::Empty), "nothing has happened yet");
        change(&other);
        assert_eq!(heard.recv_timeout(DEADLINE), Ok(()), "change {number} was not heard");
    }
}

/// A watch that is let go of is over: it calls nobody any more.
pub fn a_watch_ends(store: &TestStore) {
    let (watch, heard) = watch(store);
    drop(watch);
    enqueue(store, &queue_item(NOW));
    let said: Vec<()> = heard.try_iter().collect();
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(heard.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected));
}
