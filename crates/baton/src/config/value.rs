//! One value: parsed from text or TOML, checked against its kind, and displayed with secrets masked.

use std::ffi::OsStr;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use baton_core::{Agent, Venture, shorten};

use super::settings::Kind;

const MASK: &str = "***";

/// Maximum length of an invalid value in a message.
const SHOWN_CHARACTERS: usize = 60;

/// A secret text. It has no `Display`, and its `Debug` shows only the length.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretText(String);

impl SecretText {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the secret text.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    fn shown(&self) -> String {
        format!("set, {} characters", self.0.chars().count())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretText({})", self.shown())
    }
}

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// A name, word or address.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A file or folder.
    Path(PathBuf),
    /// A key or token.
    Secret(SecretText),
    /// An address that may have a password in it.
    DatabaseUrl(SecretText),
}

impl Value {
    /// Formats the value with secrets masked.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Path(path) => path.display().to_string(),
            Self::Secret(secret) => secret.shown(),
            Self::DatabaseUrl(url) => mask_url(url.expose()),
        }
    }
}

/// A value before parsing.
#[derive(Clone, Copy)]
pub(super) enum Raw<'a> {
    /// From the environment, a flag or a default.
    Os(&'a OsStr),
    /// From a file.
    Toml(&'a toml::Value),
}

impl<'a> Raw<'a> {
    fn os(self) -> Option<&'a OsStr> {
        match self {
            Self::Os(text) => Some(text),
            Self::Toml(value) => value.as_str().map(OsStr::new),
        }
    }

    fn integer(self) -> Option<i64> {
        match self {
            Self::Os(text) => text.to_str()?.trim().parse().ok(),
            Self::Toml(value) => value.as_integer(),
        }
    }

    fn shown(self) -> String {
        let text = match self {
            Self::Os(text) => text.to_string_lossy().into_owned(),
            Self::Toml(value) => value.to_string(),
        };
        without_controls(&shorten(&text, SHOWN_CHARACTERS))
    }
}

/// Base folders for relative paths.
#[derive(Clone, Copy, Default)]
pub(super) struct Folders<'a> {
    /// The folder of the file that names the path, or the working folder.
    pub(super) base: Option<&'a Path>,
    /// Home folder, which replaces `~`.
    pub(super) home: Option<&'a Path>,
}

impl Folders<'_> {
    pub(super) fn resolve(self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.home, self.base) {
            (Ok(rest), Some(home), _) => home.join(rest),
            (_, _, Some(base)) => base.join(path),
            (_, _, None) => path.to_owned(),
        }
    }
}

impl Kind {
    /// Parses a value. Returns `None` if it does not satisfy [`Kind::must`].
    pub(super) fn read(self, raw: Raw<'_>, folders: Folders<'_>) -> Option<Value> {
        if let Self::Integer { min, max } = self {
            return raw.integer().filter(|number| (min..=max).contains(number)).map(Value::Integer);
        }
        let os = raw.os().filter(|text| !text.is_empty())?;
        if let Self::Path = self {
            return Some(Value::Path(folders.resolve(Path::new(os))));
        }
        let text = os.to_str()?;
        match self {
            Self::Secret => is_visible(text).then(|| Value::Secret(SecretText::new(text))),
            Self::DatabaseUrl => is_database_url(text).then(|| Value::DatabaseUrl(SecretText::new(text))),
            _ => self.accepts(text).then(|| Value::Text(text.to_owned())),
        }
    }

    fn accepts(self, text: &str) -> bool {
        match self {
            Self::Text => !text.trim().is_empty() && !text.chars().any(char::is_control),
            Self::Venture => text.parse::<Venture>().is_ok(),
            Self::Agent => text.parse::<Agent>().is_ok(),
            Self::Choice(words) => words.contains(&text),
            Self::Address => is_address(text),
            Self::Url => is_http_url(text),
            Self::Integer { .. } | Self::Path | Self::DatabaseUrl | Self::Secret => false,
        }
    }

    /// Describes a valid value; completes the phrase "must be".
    pub(super) fn must(self) -> String {
        match self {
            Self::Text => "text on one line, not empty".into(),
            Self::Venture => name_rule("a venture", 64),
            Self::Agent => name_rule("an agent", 128),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Choice(words) => {
                format!(
                    "one of {}",
                    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
                )
            }
            Self::Path => "a path, not empty".into(),
            Self::Address => "a host and a port like 127.0.0.1:7333".into(),
            Self::Url => "an address like https://baton.example.com, without user and password".into(),
            Self::DatabaseUrl => "an address like postgres://user:password@host/database".into(),
            Self::Secret => "visible ASCII characters without spaces".into(),
        }
    }

    /// Formats an invalid value, unless it may contain a secret.
    pub(super) fn found(self, raw: Raw<'_>) -> Option<String> {
        match self {
            Self::Secret | Self::DatabaseUrl => None,
            Self::Url => Some(raw.shown()).filter(|text| !text.contains('@')),
            _ => Some(raw.shown()),
        }
    }
}

fn name_rule(what: &str, max: usize) -> String {
    format!(
        "the name of {what}: 1 to {max} letters, digits, `.`, `_` or `-`, starting with a letter or digit"
    )
}

/// Replaces control characters, because files may come from untrusted sources.
pub(super) fn without_controls(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_address(text: &str) -> bool {
    text.parse::<SocketAddr>().is_ok()
        || text.rsplit_once(':').is_some_and(|(host, port)| is_host(host) && is_port(port))
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn is_http_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let host_is_literal = authority.starts_with('[') && authority.ends_with(']');
    is_visible(rest)
        && !rest.contains(['@', '?', '#'])
        && (is_host(authority)
            || is_address(authority)
            || (host_is_literal && is_address(&format!("{authority}:0"))))
}

fn is_database_url(text: &str) -> bool {
    let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    rest.is_some_and(is_visible)
}

/// Masks the password of a URL. If the password cannot be located, everything but the scheme is masked.
fn mask_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return MASK.into();
    };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if tail.contains('@') {
        return format!("{scheme}://{MASK}");
    }
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:{MASK}@{host}"),
            None => format!("{user}@{host}"),
        },
        None => authority.to_owned(),
    };
    let (path, query) = tail.split_once('?').map_or((tail, None), |(path, query)| (path, Some(query)));
    let query =
        query.map(|query| format!("?{}", query.split('&').map(mask_pair).collect::<Vec<_>>().join("&")));
    format!("{scheme}://{authority}{path}{}", query.unwrap_or_default())
}

/// Masks `password=…`, with any spelling of the name.
fn mask_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) if name.contains('%') || name.to_ascii_lowercase().contains("password") => {
            format!("{name}={MASK}")
        }
        _ => pair.to_owned(),
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
