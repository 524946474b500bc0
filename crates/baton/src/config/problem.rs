//! Origins of values, and the errors and warnings about them.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::settings::{Preset, Setting};
use super::value::without_controls;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Built-in default.
    Default,
    UserFile(PathBuf),
    /// Project file, `.baton.toml`.
    ProjectFile(PathBuf),
    /// Environment variable.
    Environment(&'static str),
    /// Flag, with its dashes.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::UserFile(path) => write!(f, "user file {}", path.display()),
            Self::ProjectFile(path) => write!(f, "project file {}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Error that prevents loading the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A file exists and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// A file is not TOML.
    #[error("{}, line {line}, column {column}: {message}", path.display())]
    Syntax {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// Message of the parser.
        message: String,
    },
    #[error("`{key}` ({origin}) must be {must}{}", but_is(found.as_deref()))]
    Invalid {
        key: &'static str,
        origin: Origin,
        /// Description of a valid value.
        must: String,
        /// The value, unless it may contain a secret.
        found: Option<String>,
        /// Default of the setting, if it is known.
        default: Option<&'static str>,
    },
    /// The jitter is not less than the heartbeat interval.
    #[error(
        "`heartbeat.jitter_seconds` is {jitter} ({jitter_origin}) and must be less than \
         `heartbeat.interval_seconds`, which is {interval} ({interval_origin})"
    )]
    Jitter { jitter: u32, jitter_origin: Origin, interval: u32, interval_origin: Origin },
    /// An endpoint is configured without a model.
    #[error("`{key}` is {value} ({origin}), which requires `{section}.model`, but that is not set")]
    NoModel {
        /// Setting that requires a model.
        key: &'static str,
        /// Value of that setting, as far as it matters.
        value: &'static str,
        /// Section of the settings of the endpoint.
        section: &'static str,
        origin: Origin,
    },
    /// A required setting has no value.
    #[error("`{key}` has no value, and its default cannot be determined without a home folder")]
    Unset { key: &'static str, env: &'static str },
    /// A flag refers to an unknown setting. This is a bug.
    #[error("{flag} sets `{key}`, which is not a setting")]
    UnknownKey { flag: &'static str, key: &'static str },
}

fn but_is(found: Option<&str>) -> String {
    found.map(|found| format!(", but is `{found}`")).unwrap_or_default()
}

impl ConfigError {
    pub(super) fn invalid(setting: &Setting, origin: Origin, found: Option<String>) -> Self {
        let default = match setting.default {
            Preset::Text(text) => Some(text),
            Preset::Nothing | Preset::DataFolder => None,
        };
        Self::Invalid { key: setting.key, origin, must: setting.kind.must(), found, default }
    }

    /// Returns a hint for the user.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Unreadable { path, .. } => {
                format!("make {} a file that you can read, or remove it", path.display())
            }
            Self::Syntax { path, .. } => format!("correct {}, then run baton config show", path.display()),
            Self::Invalid { origin, default, .. } => {
                let place = match origin {
                    Origin::Default => "the default".into(),
                    Origin::UserFile(path) | Origin::ProjectFile(path) => format!("it in {}", path.display()),
                    Origin::Environment(name) => format!("the environment variable {name}"),
                    Origin::Flag(name) => name.to_string(),
                };
                match default {
                    Some(text) => format!("correct {place}, or remove it to use `{text}`"),
                    None => format!("correct {place}, or remove it"),
                }
            }
            Self::Jitter { .. } => {
                "lower BATON_HEARTBEAT_JITTER_SECONDS or raise BATON_HEARTBEAT_INTERVAL_SECONDS, \
                 or the same keys in the file that sets them"
                    .into()
            }
            Self::NoModel { section, .. } => format!(
                "set BATON_{}_MODEL, or {section}.model in the user file, to a model that the endpoint has",
                section.to_uppercase()
            ),
            Self::Unset { env, .. } => format!("set {env}, or HOME"),
            Self::UnknownKey { .. } => "report this bug in baton".into(),
        }
    }
}

/// A warning about the configuration. `Display` is the whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Warning {
    /// A file contains an unknown setting.
    UnknownKey { key: String, path: PathBuf, nearest: Option<&'static str> },
    /// An environment variable with Baton's prefix is unknown.
    UnknownVariable { name: String, nearest: Option<&'static str> },
    /// A project file contains a setting that it must not set; the value is ignored.
    NotForProjects {
        key: &'static str,
        path: PathBuf,
        reason: &'static str,
        /// Environment variable to use instead.
        env: &'static str,
    },
    /// The user file named by the environment does not exist.
    NoUserFile { env: &'static str, path: PathBuf },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did_you_mean = |f: &mut fmt::Formatter<'_>, nearest: &Option<&str>| match nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => f.write_str("; run baton config show for the list"),
        };
        match self {
            Self::UnknownKey { key, path, nearest } => {
                write!(f, "unknown setting `{}` in {}", without_controls(key), path.display())?;
                did_you_mean(f, nearest)
            }
            Self::UnknownVariable { name, nearest } => {
                write!(f, "unknown environment variable {}", without_controls(name))?;
                did_you_mean(f, nearest)
            }
            Self::NotForProjects { key, path, reason, env } => write!(
                f,
                "`{key}` in {} is ignored: a project file may not set it, because {reason}; \
                 set it in your user file or with {env}",
                path.display()
            ),
            Self::NoUserFile { env, path } => {
                write!(f, "{env} names {}, which does not exist; it is ignored", path.display())
            }
        }
    }
}
