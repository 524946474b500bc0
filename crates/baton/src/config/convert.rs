//! Conversion of checked values to the types of the configuration.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::layers::Effective;
use super::problem::ConfigError;
use super::settings::Setting;
use super::value::{SecretText, Value};

/// Kind of compressor, which creates observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text for people.
    Text,
    Json,
}

/// Converts the value of a setting to its target type.
pub(super) fn optional<T>(
    effective: &Effective,
    convert: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, ConfigError> {
    let Some((value, origin)) = &effective.value else {
        return Ok(None);
    };
    match convert(value) {
        Some(converted) => Ok(Some(converted)),
        None => Err(ConfigError::invalid(effective.setting, origin.clone(), Some(value.shown()))),
    }
}

pub(super) fn required<T>(
    effective: &Effective,
    convert: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, ConfigError> {
    let Setting { key, .. } = *effective.setting;
    let unset = || ConfigError::Unset { key, env: effective.setting.env_name() };
    optional(effective, convert)?.ok_or_else(unset)
}

/// Returns the default of the type for a setting without a value.
pub(super) fn or_default<T: Default>(
    effective: &Effective,
    convert: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, ConfigError> {
    Ok(optional(effective, convert)?.unwrap_or_default())
}

/// Converts a limit, where 0 means no limit.
pub(super) fn limit<T: Default + PartialEq>(
    effective: &Effective,
    convert: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, ConfigError> {
    Ok(Some(required(effective, convert)?).filter(|limit| *limit != T::default()))
}

pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

pub(super) fn parsed<T: FromStr>(value: &Value) -> Option<T> {
    text(value)?.parse().ok()
}

/// Splits at commas.
pub(super) fn list(value: &Value) -> Option<Vec<String>> {
    let names = text(value)?;
    Some(names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

pub(super) fn seconds(value: &Value) -> Option<Duration> {
    integer(value).map(Duration::from_secs)
}

pub(super) fn integer<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    match value {
        Value::Integer(number) => T::try_from(*number).ok(),
        _ => None,
    }
}

pub(super) fn path(value: &Value) -> Option<PathBuf> {
    match value {
        Value::Path(path) => Some(path.clone()),
        _ => None,
    }
}

pub(super) fn secret(value: &Value) -> Option<SecretText> {
    match value {
        Value::Secret(secret) | Value::DatabaseUrl(secret) => Some(secret.clone()),
        _ => None,
    }
}

/// Converts a word to the variant of an enum.
pub(super) fn choice<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(text(value)?.into()).ok()
}

pub(super) fn on_or_off(value: &Value) -> Option<bool> {
    match text(value)?.as_str() {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}
