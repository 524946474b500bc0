//! Listening to what other processes tell through the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postgres::fallible_iterator::FallibleIterator;

use super::open::{connect, parse};
use super::sql::QUEUE_CHANNEL;
use crate::watch::{NOTICE, REST};

/// How long it waits before it asks a server again that went away.
const AGAIN: Duration = Duration::from_secs(1);

/// Calls `changed` whenever somebody tells that there is something in the queue, until `over`.
pub(crate) fn watch(url: &str, over: &AtomicBool, changed: &dyn Fn()) {
    while !over.load(Ordering::Relaxed) {
        if let Err(error) = listen(url, over, changed) {
            tracing::warn!(%error, "the server can no longer be listened to; trying again");
        }
        if over.load(Ordering::Relaxed) {
            return;
        }
        // What was told meanwhile was not heard.
        changed();
        std::thread::sleep(AGAIN);
    }
}

fn listen(url: &str, over: &AtomicBool, changed: &dyn Fn()) -> Result<(), crate::error::StoreError> {
    let mut client = connect(&parse(url)?)?;
    client.batch_execute(&format!("LISTEN {QUEUE_CHANNEL}")).map_err(super::sql::store_error)?;
    changed();
    while !over.load(Ordering::Relaxed) {
        let heard = {
            let mut notifications = client.notifications();
            let first = notifications.timeout_iter(NOTICE).next().map_err(super::sql::store_error)?;
            // Many may tell the same at once.
            while notifications.iter().next().map_err(super::sql::store_error)?.is_some() {}
            first.is_some()
        };
        if heard {
            changed();
            std::thread::sleep(REST);
        }
        if client.is_closed() {
            return Ok(());
        }
    }
    Ok(())
}
