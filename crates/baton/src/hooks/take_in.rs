//! Storing what hooks could not store, in processes that have the store open.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_app::observation::{Hook, Report};
use baton_app::{App, Call, operation};
use baton_core::IdempotencyKey;
use serde_json::Value;

use super::spill::{Addressee, HookSpill, Taken, TakenIn};
use crate::output::Failure;

/// How often somebody who stays looks whether reports wait.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long one look may take, so that hooks meanwhile do not wait too long.
const AT_A_TIME: Duration = Duration::from_secs(60);

/// How often what could not be stored, or waits for somebody else, is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// Stores the reports that wait for the store of this machine.
pub(crate) fn take_in_reports(app: &App, data_dir: &Path) -> TakenIn {
    let spill = HookSpill::of(data_dir);
    let taken = spill.take_in(&Addressee::Store, AT_A_TIME, &app.intake(), |report, key| {
        store(app, report, key).map_or_else(|failure| Taken::from(&failure), |()| Taken::Stored)
    });
    if taken.stored > 0 {
        tracing::info!(taken = taken.stored, "stored what hooks could not");
    }
    taken
}

fn store(app: &App, report: &Report, key: &str) -> Result<(), Failure> {
    let call = Call {
        idempotency_key: Some(IdempotencyKey::parse(key)?),
        attachment: report.output.clone(),
        ..app.own_call()?
    };
    let reply = app.call_blocking(operation::<Hook>(), call, Value::Object(report.fields.clone()));
    if reply.status == 200 { Ok(()) } else { Err(Failure::from_body(reply.error, &reply.body)) }
}

/// Stores reports that wait, within seconds, for as long as the process runs.
pub(crate) async fn take_in_now_and_then(app: App, data_dir: PathBuf) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stuck = 0;
    let mut looked = Instant::now();
    loop {
        looks.tick().await;
        let waiting = HookSpill::of(&data_dir).len();
        // What is for somebody else, or breaks whoever stores it, is not tried every time.
        if waiting == 0 || waiting <= stuck && looked.elapsed() < LOOK_AGAIN {
            stuck = stuck.min(waiting);
            continue;
        }
        let (app, folder) = (app.clone(), data_dir.clone());
        looked = Instant::now();
        stuck = match tokio::task::spawn_blocking(move || take_in_reports(&app, &folder)).await {
            Ok(taken) if taken.blocked => 0,
            Ok(taken) => taken.left,
            Err(_) => {
                tracing::error!("storing what hooks could not broke off");
                waiting
            }
        };
    }
}
