//! Storing what hooks could not store, in processes that have the store open.

use std::time::{Duration, Instant};

use baton_app::observation::{Hook, Report};
use baton_app::{App, Attachment, Call, operation};
use baton_core::IdempotencyKey;
use baton_store::Threads;
use serde_json::Value;

use super::spill::{HookSpill, ReplayLimits, Taken, TakenIn};
use crate::backend::store_config;
use crate::config::Config;
use crate::output::Failure;

/// How often somebody who stays looks whether reports wait.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long one round may take, so that later reports are seen.
const LIMITS: ReplayLimits = ReplayLimits { lock: Duration::from_secs(1), total: Duration::from_secs(60) };

/// How often what could not be stored, or waits for somebody else, is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// Replays the spooled reports for the configured store.
pub(crate) fn take_in_reports(app: &App, config: &Config) -> TakenIn {
    let spill = HookSpill::of(&config.data_dir);
    let target = store_config(config, Threads::Caller).target();
    let taken = spill.take_in(&target, LIMITS, &app.intake(), |report, key| {
        store(app, report, key).map_or_else(|failure| Taken::from(&failure), |()| Taken::Stored)
    });
    if taken.stored > 0 {
        tracing::info!(count = taken.stored, "replayed spooled hook reports");
    }
    taken
}

fn store(app: &App, report: &Report, key: &str) -> Result<(), Failure> {
    let call = Call {
        idempotency_key: Some(IdempotencyKey::parse(key)?),
        attachment: report.output.clone().map(Attachment::Output),
        ..app.own_call()?
    };
    let reply = app.call_blocking(operation::<Hook>(), call, Value::Object(report.fields.clone()));
    if reply.status == 200 { Ok(()) } else { Err(Failure::from_body(reply.error, &reply.body)) }
}

/// Stores reports that wait, within seconds, for as long as the process runs.
pub(crate) async fn take_in_now_and_then(app: App, config: Config) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stuck = 0;
    let mut looked = Instant::now();
    loop {
        looks.tick().await;
        let waiting = HookSpill::of(&config.data_dir).len();
        // What is for somebody else, or breaks whoever stores it, is not tried every time.
        if waiting == 0 || waiting <= stuck && looked.elapsed() < LOOK_AGAIN {
            stuck = stuck.min(waiting);
            continue;
        }
        let (app, config) = (app.clone(), config.clone());
        looked = Instant::now();
        stuck = match tokio::task::spawn_blocking(move || take_in_reports(&app, &config)).await {
            Ok(taken) if taken.blocked => 0,
            Ok(taken) => taken.left,
            Err(_) => {
                tracing::error!("replaying spooled hook reports panicked");
                waiting
            }
        };
    }
}
