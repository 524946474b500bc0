//! Replaying hook reports in processes that have the store open.

use std::time::{Duration, Instant};

use baton_app::observation::{Hook, Report};
use baton_app::{App, Attachment, Call, operation};
use baton_core::IdempotencyKey;
use baton_store::{Replay, ReplayLimits, Threads};
use serde_json::Value;

use super::outbox::ReportOutbox;
use crate::config::Config;
use crate::output::Failure;
use crate::store::store_config;

const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Interval for reports that failed or are for another store.
const RETRY_INTERVAL: Duration = Duration::from_secs(300);
/// One round is limited so that later reports are seen.
const LIMITS: ReplayLimits = ReplayLimits { lock: Duration::from_secs(1), total: Duration::from_secs(60) };

fn outbox(config: &Config) -> ReportOutbox {
    ReportOutbox::of(&config.data_dir, Some(store_config(config, Threads::Caller).target()))
}

/// Replays the reports in the outbox for the configured store.
pub(crate) fn replay_reports(app: &App, config: &Config) -> Replay {
    let replay = outbox(config).replay(LIMITS, &app.intake(), |report, key| store(app, report, key));
    if replay.stored > 0 {
        tracing::info!(count = replay.stored, "replayed hook reports of the outbox");
    }
    replay
}

fn store(app: &App, report: &Report, key: Option<&str>) -> Result<(), Failure> {
    let call = Call {
        idempotency_key: key.map(IdempotencyKey::parse).transpose()?,
        attachment: report.output.clone().map(Attachment::Output),
        ..app.own_call()?
    };
    let reply = app.call_blocking(operation::<Hook>(), call, Value::Object(report.fields.clone()));
    Failure::unless_ok(reply.status, reply.error, reply.body).map(drop)
}

/// Replays reports, checkpoints and notes in the outbox every few seconds for as long as the process runs.
pub(crate) async fn replay_periodically(app: App, config: Config) {
    let mut ticks = tokio::time::interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Entries that the last replay could not store. They are tried again after `RETRY_INTERVAL`, or earlier if new ones
    // arrive.
    let mut left_by_last_replay = 0;
    let mut replayed_at = Instant::now();
    loop {
        ticks.tick().await;
        let spooled = outbox(&config).files().count() + app.spooled_writes();
        if spooled == 0 || spooled <= left_by_last_replay && replayed_at.elapsed() < RETRY_INTERVAL {
            left_by_last_replay = left_by_last_replay.min(spooled);
            continue;
        }
        let (app, config) = (app.clone(), config.clone());
        replayed_at = Instant::now();
        let replay = move || (app.replay_outbox(), replay_reports(&app, &config));
        left_by_last_replay = match tokio::task::spawn_blocking(replay).await {
            Ok((_, replay)) if replay.is_blocked => 0,
            Ok((left, replay)) => left + replay.left,
            Err(_) => {
                tracing::error!("replaying the outbox panicked");
                spooled
            }
        };
    }
}
