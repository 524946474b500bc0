//! Creates the application on the configured store.

use std::time::Duration;

use baton_app::{App, Clock, RequestLog, Settings, SystemClock, SystemEntropy};
use baton_core::{HeartbeatPolicy, Liveness};
use baton_store::{Store, Threads};

use crate::config::Config;
use crate::machine::ThisMachine;
use crate::output::{Failure, print_message, warn};
use crate::store::{store_config, store_failure};
use crate::{checkpoints, observations};

/// Opens the store and creates the application.
pub(crate) fn open_app(config: &Config, threads: Threads) -> Result<App, Failure> {
    let store = Store::open(&store_config(config, threads)).map_err(|error| store_failure(&error))?;
    app_on(store, config, threads)
}

/// Opens the store. If that fails, creates an application without a store: checkpoints and notes are saved to
/// the outbox, and all other operations fail.
pub(crate) fn open_app_or_degrade(config: &Config, threads: Threads) -> Result<App, Failure> {
    let location = store_config(config, threads);
    let store = Store::open(&location).unwrap_or_else(|error| {
        let failure = store_failure(&error);
        warn(&format!(
            "{}; checkpoints and notes are saved to the outbox (spill/) until the store is available",
            failure.message
        ));
        if let Some(hint) = &failure.hint {
            print_message(&format!("next: {hint}"));
        }
        Store::open_later(&location, &error)
    });
    app_on(store, config, threads)
}

pub(crate) fn app_on(store: Store, config: &Config, threads: Threads) -> Result<App, Failure> {
    let log = match threads {
        Threads::Caller => RequestLog::at_end(),
        Threads::Background => RequestLog::in_background(store.clone(), config.request_log_max_records)
            .map_err(|error| Failure::internal(format!("cannot start the request log: {error}")))?,
    };
    Ok(App::new(store, settings(config)?, SystemClock, SystemEntropy, log))
}

fn settings(config: &Config) -> Result<Settings, Failure> {
    Ok(Settings {
        liveness: Liveness {
            stale_after: Duration::from_secs(config.stale_minutes * 60),
            abandon_after: Duration::from_secs(config.abandon_hours * 3_600),
        },
        heartbeat: HeartbeatPolicy {
            interval_seconds: config.heartbeat_interval_seconds,
            jitter_seconds: config.heartbeat_jitter_seconds,
        },
        idempotency_ttl: Duration::from_secs(config.idempotency_ttl_seconds),
        request_retention: Duration::from_secs(config.request_log_retention_days * 86_400),
        request_log_max_records: config.request_log_max_records,
        default_venture: config.venture.clone(),
        outbox: Some(checkpoints::outbox(config)),
        checkpoints: checkpoints::settings(config)?,
        observations: observations::settings(config),
        machine: Some(ThisMachine::new(config)),
        started_at: SystemClock.now(),
    })
}
