//! Live updates of dashboards: one task watches the store while any dashboard is open and wakes all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_app::session::SessionOverview;
use baton_app::{App, operation};
use baton_core::Sha256Hash;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// Interval between two reads of the store.
const INTERVAL: Duration = Duration::from_millis(500);
/// Pages are also loaded again once in this time, because they show relative times.
const REFRESH_MILLIS: i64 = 60_000;

/// Source of the change events of a server.
pub(super) struct LiveUpdates {
    changes: watch::Sender<u64>,
    is_running: AtomicBool,
}

impl LiveUpdates {
    pub(super) fn new() -> Self {
        Self { changes: watch::Sender::new(0), is_running: AtomicBool::new(false) }
    }

    /// Returns a receiver that is notified of each change. The first receiver starts the task.
    pub(super) fn subscribe(self: &Arc<Self>, app: &App) -> watch::Receiver<u64> {
        let receiver = self.changes.subscribe();
        if !self.is_running.swap(true, Ordering::SeqCst) {
            let (updates, app) = (self.clone(), app.clone());
            tokio::spawn(async move { updates.run(&app).await });
        }
        receiver
    }

    /// Notifies receivers whenever the overview of all sessions changes, until there is no receiver.
    async fn run(&self, app: &App) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = None;
        loop {
            ticks.tick().await;
            if self.changes.receiver_count() == 0 {
                self.is_running.store(false, Ordering::SeqCst);
                // A receiver that came after the check needs this task.
                if self.changes.receiver_count() == 0 || self.is_running.swap(true, Ordering::SeqCst) {
                    return;
                }
            }
            let Ok(call) = app.own_call() else { continue };
            let reply = app.call(operation::<SessionOverview>(), call, json!({})).await;
            let minute = app.now().as_millis() / REFRESH_MILLIS;
            // The text of an error contains the id of the call.
            let content = if reply.error.is_some() { "" } else { &reply.body };
            let state = (minute, reply.error, Sha256Hash::of(content.as_bytes()));
            let is_changed = seen.as_ref().is_some_and(|before| *before != state);
            seen = Some(state);
            if is_changed {
                self.changes.send_modify(|version| *version += 1);
            }
        }
    }
}
