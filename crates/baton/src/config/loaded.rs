//! The typed configuration that the rest of the binary uses.

use std::path::PathBuf;
use std::time::Duration;

use baton_core::{Agent, Venture};
use baton_llm::Price;
use baton_store::{Effort, PostgresTimeouts};
use serde::Serialize;
use serde_json::{Value, json};

use super::convert::{
    self, CompressorKind, LogFormat, choice, integer, list, on_or_off, parsed, path, seconds, secret, text,
};
use super::layers::{Effective, Layers};
use super::problem::{ConfigError, Origin, Warning};
use super::settings::with_settings;
use super::sources::Sources;
use super::value::SecretText;
use crate::keys::Mode as EncryptionMode;

macro_rules! config {
    ($($field:ident: $type:ty = $read:ident($convert:path), $key:literal, $env:expr,
        $default:expr, $kind:expr, $project_file:expr, $help:literal;)+) => {
        /// All settings, checked.
        #[derive(Debug, Clone)]
        pub(crate) struct Config {
            $(#[doc = $help] pub(crate) $field: $type,)+
            /// Lock file for changes to the keychain, shared by all processes of a user regardless of the data folder.
            pub(crate) keychain_lock: PathBuf,
            layers: Layers,
        }

        impl Config {
            /// Converts the values of all settings to their types.
            fn read(layers: Layers, keychain_lock: PathBuf) -> Result<Self, ConfigError> {
                let [$($field),+] = layers.settings.as_ref();
                Ok(Self { $($field: convert::$read($field, $convert)?,)+ keychain_lock, layers })
            }
        }
    };
}
with_settings!(config);

/// A setting as `baton config show` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    /// The dotted key.
    pub(crate) key: &'static str,
    /// The value with secrets masked, if there is one.
    pub(crate) value: Option<String>,
    /// Layer that sets the value.
    pub(crate) origin: Origin,
    /// The environment variable that sets it.
    pub(crate) env: &'static str,
    pub(crate) help: &'static str,
}

impl Config {
    /// Reads every layer and checks the effective values. Values that a warning is about are not used.
    pub(crate) fn load(sources: &Sources) -> Result<(Self, Vec<Warning>), ConfigError> {
        let mut layers = Layers::read(sources)?;
        let warnings = layers.take_warnings();
        let user_data = sources.places.as_ref().map_or_else(std::env::temp_dir, |places| places.data.clone());
        let config = Self::read(layers, user_data.join("keychain.lock"))?;
        config.check_jitter()?;
        config.check_model()?;
        Ok((config, warnings))
    }

    /// Reads every layer for a hook. Invalid settings and an unreadable project file are ignored and returned as errors,
    /// except for settings that decide where reports are stored: those must be valid.
    pub(crate) fn load_for_capture(sources: &Sources) -> Result<(Self, Vec<ConfigError>), ConfigError> {
        let mut wrong = Vec::new();
        let mut reduced: Option<Sources> = None;
        loop {
            let current = reduced.as_ref().unwrap_or(sources);
            let error = match Self::load(current) {
                Ok((config, _)) => return Ok((config, wrong)),
                Err(error) => error,
            };
            let mut next = current.clone();
            if !next.ignore_source_of(&error) {
                return Err(error);
            }
            wrong.push(error);
            reduced = Some(next);
        }
    }

    /// Returns true if a layer sets this key; false if it has its default.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.layers.get(key).is_some_and(|(_, origin)| *origin != Origin::Default)
    }

    /// Returns the venture that the user chose: the value of a flag, or `session.venture` if it is set.
    pub(crate) fn chosen_venture(&self, given: Option<&str>) -> Option<String> {
        given.or_else(|| self.configured_venture().map(Venture::as_str)).map(str::to_owned)
    }

    /// Returns the venture, unless it is the default.
    pub(crate) fn configured_venture(&self) -> Option<&Venture> {
        self.is_set("session.venture").then_some(&self.venture)
    }

    /// Adds the venture that the user chose to the parameters of an operation that has no default for it. Otherwise the
    /// operation uses the default venture of the credential.
    pub(crate) fn with_venture(&self, given: Option<&str>, params: &impl Serialize) -> Value {
        let mut params = json!(params);
        match self.chosen_venture(given) {
            Some(chosen) => params["venture"] = chosen.into(),
            None => params["default_venture"] = true.into(),
        }
        params
    }

    /// Returns all settings in the order of the table.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let settings = self.layers.settings.iter();
        settings
            .map(|Effective { setting, value, .. }| {
                let (value, origin) = match value {
                    Some((value, origin)) => (Some(value.shown()), origin.clone()),
                    None => (None, Origin::Default),
                };
                Entry { key: setting.key, value, origin, env: setting.env_name(), help: setting.help }
            })
            .collect()
    }

    /// Returns the timeouts of PostgreSQL.
    pub(crate) const fn postgres_timeouts(&self) -> PostgresTimeouts {
        PostgresTimeouts { connect: self.connect_timeout, statement: self.statement_timeout }
    }

    /// Returns the price of the model, if one of its two settings is set.
    pub(crate) fn price(&self) -> Option<Price> {
        let (input, output) = (self.input_cents, self.output_cents);
        (input.is_some() || output.is_some()).then(|| Price {
            input_cents: input.unwrap_or_default(),
            output_cents: output.unwrap_or_default(),
        })
    }

    /// Rejects an endpoint without a model, because every request would fail.
    fn check_model(&self) -> Result<(), ConfigError> {
        let is_set = |model: &Option<String>| model.as_ref().is_some_and(|model| !model.trim().is_empty());
        let (key, value, section) = if self.embedding_url.is_some() && !is_set(&self.embedding_model) {
            ("embedding.url", "set", "embedding")
        } else if self.compressor == CompressorKind::OpenAi && !is_set(&self.compressor_model) {
            ("compressor.kind", "openai", "compressor")
        } else {
            return Ok(());
        };
        Err(ConfigError::NoModel { key, value, section, origin: self.origin_of(key) })
    }

    fn origin_of(&self, key: &str) -> Origin {
        self.layers.get(key).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Rejects a jitter that is not less than the interval, because the next heartbeat must be in the future.
    fn check_jitter(&self) -> Result<(), ConfigError> {
        let (interval, jitter) = (self.heartbeat_interval_seconds, self.heartbeat_jitter_seconds);
        if jitter < interval {
            return Ok(());
        }
        Err(ConfigError::Jitter {
            jitter,
            jitter_origin: self.origin_of("heartbeat.jitter_seconds"),
            interval,
            interval_origin: self.origin_of("heartbeat.interval_seconds"),
        })
    }
}

#[cfg(test)]
#[path = "loaded_tests.rs"]
mod tests;
