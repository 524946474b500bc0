//! Items that were added to chats.

use baton_core::{SessionId, Ulid};

use super::fixture::{AWKWARD, session_id};
use super::store::{TestStore, write};

/// An item is added once to a chat, and again to another one.
pub fn items_are_shown_once_per_session(store: &TestStore) {
    let (one, other) = (session_id(), SessionId::new(Ulid(7)));
    let show = |session, item: &'static str| write(store, move |tx| tx.record_shown_item(session, item));
    assert_eq!(
        [show(one, AWKWARD), show(one, AWKWARD), show(one, "turn_1"), show(other, AWKWARD)],
        [true, false, true, true]
    );
}
