//! The typed configuration that the rest of the binary uses.

use std::path::PathBuf;
use std::time::Duration;

use baton_core::observation::Price;
use baton_core::{Agent, Venture};
use baton_store::{Effort, PostgresTimeouts};
use serde::Serialize;

use super::layers::Layers;
use super::problem::{ConfigError, Origin, Warning};
use super::settings::{SETTINGS, find};
use super::sources::Sources;
use super::value::{SecretText, Value};
use crate::keys::Mode as EncryptionMode;

/// All settings, checked. The table in `settings.rs` describes each.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `data_dir`
    pub(crate) data_dir: PathBuf,
    /// `store.database_url`
    pub(crate) database_url: Option<SecretText>,
    /// `store.postgres_connections`
    pub(crate) postgres_connections: usize,
    /// `store.connect_timeout_seconds` and `store.statement_timeout_seconds`
    pub(crate) postgres_timeouts: PostgresTimeouts,
    /// `server.listen`
    pub(crate) listen: String,
    /// `server.allowed_hosts`
    pub(crate) allowed_hosts: Vec<String>,
    /// `server.max_connections`
    pub(crate) max_connections: usize,
    /// `server.body_memory_mb`
    pub(crate) body_memory_mb: usize,
    /// `server.relay_key`
    pub(crate) relay_key: Option<SecretText>,
    /// `client.server`
    pub(crate) server: Option<String>,
    /// `session.venture`
    pub(crate) venture: Venture,
    /// `session.agent`
    pub(crate) agent: Option<Agent>,
    /// `session.stale_minutes`
    pub(crate) stale_minutes: u64,
    /// `session.abandon_hours`
    pub(crate) abandon_hours: u64,
    /// `heartbeat.interval_seconds`
    pub(crate) heartbeat_interval_seconds: u32,
    /// `heartbeat.jitter_seconds`, less than the interval.
    pub(crate) heartbeat_jitter_seconds: u32,
    /// `idempotency.ttl_seconds`
    pub(crate) idempotency_ttl_seconds: u64,
    /// `request_log.retention_days`
    pub(crate) request_log_retention_days: u64,
    /// `request_log.max_records`
    pub(crate) request_log_max_records: u64,
    /// `rate_limit.per_minute`; `None` is no limit.
    pub(crate) rate_limit_per_minute: Option<u32>,
    /// `rate_limit.failed_per_minute`; `None` is no limit.
    pub(crate) rate_limit_failed_per_minute: Option<u32>,
    /// `checkpoint.max_per_workflow`
    pub(crate) checkpoint_max_per_workflow: u64,
    /// `checkpoint.max_total_bytes`
    pub(crate) checkpoint_max_total_bytes: u64,
    /// `checkpoint.retention_days`
    pub(crate) checkpoint_retention_days: u64,
    /// `checkpoint.compression`
    pub(crate) checkpoint_compression: Effort,
    /// `checkpoint.min_size_for_compression`
    pub(crate) checkpoint_min_size_for_compression: usize,
    /// `checkpoint.rules_file`
    pub(crate) checkpoint_rules_file: Option<PathBuf>,
    /// `checkpoint.heuristics`
    pub(crate) checkpoint_heuristics: bool,
    /// `encryption.mode`
    pub(crate) encryption: EncryptionMode,
    /// `encryption.key_file`
    pub(crate) encryption_key_file: Option<PathBuf>,
    /// Lock file for changes to the keychain, shared by all processes of a user regardless of the data folder.
    pub(crate) keychain_lock: PathBuf,
    /// `compressor.kind`
    pub(crate) compressor: CompressorKind,
    /// `compressor.model`
    pub(crate) compressor_model: Option<String>,
    /// `compressor.anthropic_api_key`
    pub(crate) anthropic_api_key: Option<SecretText>,
    /// `compressor.anthropic_base_url`
    pub(crate) anthropic_base_url: String,
    /// `compressor.openai_api_key`
    pub(crate) openai_api_key: Option<SecretText>,
    /// `compressor.openai_base_url`
    pub(crate) openai_base_url: String,
    /// `compressor.timeout_seconds`
    pub(crate) compressor_timeout_seconds: u64,
    /// `compressor.ca_file`
    pub(crate) compressor_ca_file: Option<PathBuf>,
    /// `compressor.input_cents` and `compressor.output_cents`; none when neither is set.
    pub(crate) price: Option<Price>,
    /// `worker.concurrency`
    pub(crate) worker_concurrency: usize,
    /// `worker.daily_token_budget`; `None` is no limit.
    pub(crate) daily_token_budget: Option<u64>,
    /// `worker.idle_minutes`
    pub(crate) worker_idle_minutes: u64,
    /// `worker.autostart`
    pub(crate) worker_autostart: bool,
    /// `recall.on_prompt`
    pub(crate) recall_on_prompt: bool,
    /// `recall.before_edit`
    pub(crate) recall_before_edit: bool,
    /// `capture.enabled`
    pub(crate) is_capture_enabled: bool,
    /// `worker.lease_seconds`
    pub(crate) worker_lease_seconds: u64,
    /// `worker.max_attempts`
    pub(crate) worker_max_attempts: u32,
    /// `observation.raw_retention_days`
    pub(crate) raw_retention_days: u64,
    /// `log.level`, a filter directive. The logger validates it.
    pub(crate) log_level: String,
    /// `log.file`
    pub(crate) log_file: Option<PathBuf>,
    /// `log.format`
    pub(crate) log_format: LogFormat,
    layers: Layers,
}

/// Kind of compressor, which creates observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompressorKind {
    /// The Anthropic API if there is a key, otherwise offline.
    Auto,
    /// The Anthropic API.
    Anthropic,
    /// An OpenAI-compatible endpoint.
    OpenAi,
    /// Offline rules, without a model.
    Offline,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text for people.
    Text,
    /// JSON.
    Json,
}

/// A setting as `baton config show` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    /// The dotted key.
    pub(crate) key: &'static str,
    /// The value with secrets masked, if there is one.
    pub(crate) value: Option<String>,
    /// Where the value came from.
    pub(crate) origin: Origin,
    /// The environment variable that sets it.
    pub(crate) env: &'static str,
    /// Description.
    pub(crate) help: &'static str,
}

const COMPRESSOR: &str = "compressor.kind";

impl Config {
    /// Reads every layer and checks the effective values. Values that a warning is about are not used.
    pub(crate) fn load(sources: &Sources) -> Result<(Self, Vec<Warning>), ConfigError> {
        let mut layers = Layers::read(sources)?;
        let warnings = layers.take_warnings();
        let config = Self {
            data_dir: required(&layers, "data_dir", path)?,
            database_url: optional(&layers, "store.database_url", secret)?,
            postgres_connections: required(&layers, "store.postgres_connections", integer)?,
            postgres_timeouts: PostgresTimeouts {
                connect: Duration::from_secs(required(&layers, "store.connect_timeout_seconds", integer)?),
                statement: Duration::from_secs(required(
                    &layers,
                    "store.statement_timeout_seconds",
                    integer,
                )?),
            },
            listen: required(&layers, "server.listen", text)?,
            allowed_hosts: optional(&layers, "server.allowed_hosts", text)?.map_or_else(Vec::new, |names| {
                names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
            }),
            max_connections: required(&layers, "server.max_connections", integer)?,
            body_memory_mb: required(&layers, "server.body_memory_mb", integer)?,
            relay_key: optional(&layers, "server.relay_key", secret)?,
            server: optional(&layers, "client.server", text)?,
            venture: required(&layers, "session.venture", |value| text(value)?.parse().ok())?,
            agent: optional(&layers, "session.agent", |value| text(value)?.parse().ok())?,
            stale_minutes: required(&layers, "session.stale_minutes", integer)?,
            abandon_hours: required(&layers, "session.abandon_hours", integer)?,
            heartbeat_interval_seconds: required(&layers, "heartbeat.interval_seconds", integer)?,
            heartbeat_jitter_seconds: required(&layers, "heartbeat.jitter_seconds", integer)?,
            idempotency_ttl_seconds: required(&layers, "idempotency.ttl_seconds", integer)?,
            request_log_retention_days: required(&layers, "request_log.retention_days", integer)?,
            request_log_max_records: required(&layers, "request_log.max_records", integer)?,
            rate_limit_per_minute: Some(required(&layers, "rate_limit.per_minute", integer)?)
                .filter(|limit| *limit > 0),
            rate_limit_failed_per_minute: Some(required(&layers, "rate_limit.failed_per_minute", integer)?)
                .filter(|limit| *limit > 0),
            checkpoint_max_per_workflow: required(&layers, "checkpoint.max_per_workflow", integer)?,
            checkpoint_max_total_bytes: required(&layers, "checkpoint.max_total_bytes", integer)?,
            checkpoint_retention_days: required(&layers, "checkpoint.retention_days", integer)?,
            checkpoint_compression: required(&layers, "checkpoint.compression", effort)?,
            checkpoint_min_size_for_compression: required(
                &layers,
                "checkpoint.min_size_for_compression",
                integer,
            )?,
            checkpoint_rules_file: optional(&layers, "checkpoint.rules_file", path)?,
            checkpoint_heuristics: required(&layers, "checkpoint.heuristics", on_or_off)?,
            keychain_lock: sources
                .places
                .as_ref()
                .map_or_else(std::env::temp_dir, |places| places.data.clone())
                .join("keychain.lock"),
            encryption: required(&layers, "encryption.mode", encryption)?,
            encryption_key_file: optional(&layers, "encryption.key_file", path)?,
            compressor: required(&layers, "compressor.kind", compressor)?,
            compressor_model: optional(&layers, "compressor.model", text)?,
            anthropic_api_key: optional(&layers, "compressor.anthropic_api_key", secret)?,
            anthropic_base_url: required(&layers, "compressor.anthropic_base_url", text)?,
            openai_api_key: optional(&layers, "compressor.openai_api_key", secret)?,
            openai_base_url: required(&layers, "compressor.openai_base_url", text)?,
            compressor_timeout_seconds: required(&layers, "compressor.timeout_seconds", integer)?,
            compressor_ca_file: optional(&layers, "compressor.ca_file", path)?,
            price: price(&layers)?,
            worker_concurrency: required(&layers, "worker.concurrency", integer)?,
            daily_token_budget: Some(required(&layers, "worker.daily_token_budget", integer)?)
                .filter(|budget| *budget > 0),
            worker_idle_minutes: required(&layers, "worker.idle_minutes", integer)?,
            worker_autostart: required(&layers, "worker.autostart", on_or_off)?,
            recall_on_prompt: required(&layers, "recall.on_prompt", on_or_off)?,
            recall_before_edit: required(&layers, "recall.before_edit", on_or_off)?,
            is_capture_enabled: required(&layers, "capture.enabled", on_or_off)?,
            worker_lease_seconds: required(&layers, "worker.lease_seconds", integer)?,
            worker_max_attempts: required(&layers, "worker.max_attempts", integer)?,
            raw_retention_days: required(&layers, "observation.raw_retention_days", integer)?,
            log_level: required(&layers, "log.level", text)?,
            log_file: optional(&layers, "log.file", path)?,
            log_format: required(&layers, "log.format", log_format)?,
            layers,
        };
        config.check_jitter()?;
        config.check_model()?;
        Ok((config, warnings))
    }

    /// Reads every layer for a hook. Invalid settings and an unreadable project file are ignored and returned as errors,
    /// except for settings that decide where reports are stored: those must be valid.
    pub(crate) fn load_for_capture(sources: &Sources) -> Result<(Self, Vec<ConfigError>), ConfigError> {
        let mut wrong = Vec::new();
        let mut without: Option<Sources> = None;
        loop {
            let current = without.as_ref().unwrap_or(sources);
            let error = match Self::load(current) {
                Ok((config, _)) => return Ok((config, wrong)),
                Err(error) => error,
            };
            let mut next = current.clone();
            if !next.leave_out(&error) {
                return Err(error);
            }
            wrong.push(error);
            without = Some(next);
        }
    }

    /// Returns true if a layer sets this key; false if it has its default.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.layers.get(key).is_some_and(|(_, origin)| *origin != Origin::Default)
    }

    /// Returns all settings in the order of the table.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        SETTINGS
            .iter()
            .map(|setting| {
                let (value, origin) = match self.layers.get(setting.key) {
                    Some((value, origin)) => (Some(value.shown()), origin.clone()),
                    None => (None, Origin::Default),
                };
                Entry { key: setting.key, value, origin, env: setting.env_name(), help: setting.help }
            })
            .collect()
    }

    /// Rejects the openai compressor without a model, because every request would fail.
    fn check_model(&self) -> Result<(), ConfigError> {
        let is_set = self.compressor_model.as_ref().is_some_and(|model| !model.trim().is_empty());
        if self.compressor != CompressorKind::OpenAi || is_set {
            return Ok(());
        }
        let origin = self.layers.get(COMPRESSOR).map_or(Origin::Default, |(_, origin)| origin.clone());
        Err(ConfigError::NoModel { origin })
    }

    /// Rejects a jitter that is not less than the interval, because the next heartbeat must be in the future.
    fn check_jitter(&self) -> Result<(), ConfigError> {
        let (interval, jitter) = (self.heartbeat_interval_seconds, self.heartbeat_jitter_seconds);
        if jitter < interval {
            return Ok(());
        }
        let origin = |key| self.layers.get(key).map_or(Origin::Default, |(_, origin)| origin.clone());
        Err(ConfigError::Jitter {
            jitter,
            jitter_origin: origin("heartbeat.jitter_seconds"),
            interval,
            interval_origin: origin("heartbeat.interval_seconds"),
        })
    }
}

/// Converts the value of a setting to its target type.
fn optional<T>(
    layers: &Layers,
    key: &'static str,
    convert: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, ConfigError> {
    let (Some((value, origin)), Some(setting)) = (layers.get(key), find(key)) else {
        return Ok(None);
    };
    match convert(value) {
        Some(converted) => Ok(Some(converted)),
        None => Err(ConfigError::invalid(setting, origin.clone(), Some(value.shown()))),
    }
}

fn required<T>(
    layers: &Layers,
    key: &'static str,
    convert: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, ConfigError> {
    let env = find(key).map_or("", |setting| setting.env_name());
    optional(layers, key, convert)?.ok_or(ConfigError::Unset { key, env })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn integer<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    match value {
        Value::Integer(number) => T::try_from(*number).ok(),
        _ => None,
    }
}

fn path(value: &Value) -> Option<PathBuf> {
    match value {
        Value::Path(path) => Some(path.clone()),
        _ => None,
    }
}

fn secret(value: &Value) -> Option<SecretText> {
    match value {
        Value::Secret(secret) | Value::DatabaseUrl(secret) => Some(secret.clone()),
        _ => None,
    }
}

fn effort(value: &Value) -> Option<Effort> {
    match text(value)?.as_str() {
        "off" => Some(Effort::Off),
        "basic" => Some(Effort::Basic),
        "standard" => Some(Effort::Standard),
        "aggressive" => Some(Effort::Aggressive),
        _ => None,
    }
}

fn encryption(value: &Value) -> Option<EncryptionMode> {
    match text(value)?.as_str() {
        "off" | "disabled" => Some(EncryptionMode::Off),
        "preferred" | "enabled" => Some(EncryptionMode::Preferred),
        "required" => Some(EncryptionMode::Required),
        _ => None,
    }
}

fn on_or_off(value: &Value) -> Option<bool> {
    match text(value)?.as_str() {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn price(layers: &Layers) -> Result<Option<Price>, ConfigError> {
    let input = optional(layers, "compressor.input_cents", integer)?;
    let output = optional(layers, "compressor.output_cents", integer)?;
    Ok((input.is_some() || output.is_some())
        .then(|| Price { input_cents: input.unwrap_or_default(), output_cents: output.unwrap_or_default() }))
}

fn compressor(value: &Value) -> Option<CompressorKind> {
    match text(value)?.as_str() {
        "auto" => Some(CompressorKind::Auto),
        "anthropic" => Some(CompressorKind::Anthropic),
        "openai" => Some(CompressorKind::OpenAi),
        "offline" => Some(CompressorKind::Offline),
        _ => None,
    }
}

fn log_format(value: &Value) -> Option<LogFormat> {
    match text(value)?.as_str() {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    }
}

#[cfg(test)]
#[path = "loaded_tests.rs"]
mod tests;
