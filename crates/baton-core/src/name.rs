//! Names and ids chosen by callers: agents, ventures, repositories, tracks, client session ids.
//!
//! Names are validated once, on input, and then compared exactly as sent.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::canonical::Sha256Hash;

/// Reason why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(pub(crate) &'static str);

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, pattern $pattern:literal, max $max:literal, $check:expr, $rule:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err(NameError($rule)) }
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        $crate::schema::inline_schema!($name, {
            "type": "string", "pattern": $pattern, "minLength": 1, "maxLength": $max,
        });
    };
}

pub(crate) use name;

fn word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

fn is_word(text: &str, max: usize) -> bool {
    text.len() <= max
        && text.bytes().all(word_byte)
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

fn is_repo(text: &str) -> bool {
    text.split_once('/').is_some_and(|(owner, name)| {
        is_word(owner, 128)
            && (1..=128).contains(&name.len())
            && name.bytes().all(word_byte)
            && name != "."
            && name != ".."
    })
}

/// Returns true for lower-case hex digits.
pub(crate) fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_visible(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

name!(
    /// Name of an agent, for example `claude-1`.
    Agent,
    pattern r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
    max 128,
    |text| is_word(text, 128),
    "must be 1 to 128 letters, digits, `.`, `_` or `-`, starting with a letter or digit"
);

name!(
    /// Venture that groups work and limits the access of a token, for example `local`.
    Venture,
    pattern r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    max 64,
    |text| is_word(text, 64),
    "must be 1 to 64 letters, digits, `.`, `_` or `-`, starting with a letter or digit"
);

name!(
    /// Repository as owner/name.
    Repo,
    pattern r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}/[A-Za-z0-9._-]{1,128}$",
    max 257,
    is_repo,
    "must be `owner/name`, each of letters, digits, `.`, `_` or `-`"
);

impl Repo {
    /// Returns `local/<folder name>`, with invalid characters replaced by `-`. The root of the file system becomes
    /// `local/filesystem-root`; a name without any valid character becomes `local/folder-<hash>`.
    pub fn of_folder(folder: &str) -> Option<Self> {
        if folder.is_empty() {
            return None;
        }
        let name = folder.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
        let kept: String = name
            .chars()
            .map(|c| if c.is_ascii() && word_byte(c as u8) { c } else { '-' })
            .take(128)
            .collect();
        let kept = kept.trim_start_matches(|character: char| !character.is_ascii_alphanumeric());
        let repo = match (name, kept) {
            ("", _) => "local/filesystem-root".to_owned(),
            (_, "") => format!("local/folder-{}", Sha256Hash::of(name.as_bytes()).to_string().get(..12)?),
            (_, kept) => format!("local/{kept}"),
        };
        repo.parse().ok()
    }
}

name!(
    /// Chat id assigned by the agent's client.
    ClientSessionId,
    pattern r"^[!-~]{1,128}$",
    max 128,
    |text| is_visible(text, 128),
    "must be 1 to 128 visible ASCII characters"
);

name!(
    /// Id that connects a request with its log lines and records.
    CorrelationId,
    pattern r"^[A-Za-z0-9_.:-]{1,128}$",
    max 128,
    |text| (1..=128).contains(&text.len()) && text.bytes().all(|byte| word_byte(byte) || byte == b':'),
    "must be 1 to 128 letters, digits, `_`, `.`, `:` or `-`"
);

name!(
    /// Short line of free text, for example a branch, host or version.
    Label,
    pattern r"^[^\x00-\x1f\x7f-\x9f]{1,255}$",
    max 255,
    |text| (1..=255).contains(&text.chars().count()) && !text.chars().any(char::is_control),
    "must be 1 to 255 characters without control characters"
);

/// Prefix of generated correlation ids; the rest is a UUID.
const OWN_CORRELATION: &str = "corr_";
/// Lengths of the digit groups of a UUID.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

impl CorrelationId {
    /// Returns the UUID of an id that Baton generated; `None` for other ids, which must be stored as text.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        let text = self.as_str().strip_prefix(OWN_CORRELATION)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let groups = text.split('-').map(str::len);
        if !groups.eq(UUID_GROUPS) || !text.bytes().all(|byte| byte == b'-' || is_digit(byte)) {
            return None;
        }
        u128::from_str_radix(&text.replace('-', ""), 16).ok().map(u128::to_be_bytes)
    }

    /// Restores an id that Baton generated from its UUID.
    pub fn from_uuid(uuid: [u8; 16]) -> Self {
        let digits = format!("{:032x}", u128::from_be_bytes(uuid));
        let mut text = OWN_CORRELATION.to_owned();
        let mut start = 0;
        for length in UUID_GROUPS {
            if start > 0 {
                text.push('-');
            }
            text.push_str(&digits[start..start + length]);
            start += length;
        }
        Self(text)
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "i64", try_from = "i64")]
        pub struct $name(i64);

        impl $name {
            /// Largest value: JSON numbers are exact up to here.
            pub const MAX: i64 = (1 << 53) - 1;

            /// Returns the number.
            pub const fn number(self) -> i64 {
                self.0
            }
        }

        impl TryFrom<i64> for $name {
            type Error = NameError;
            fn try_from(number: i64) -> Result<Self, NameError> {
                if (0..=Self::MAX).contains(&number) {
                    Ok(Self(number))
                } else {
                    Err(NameError("must be a whole number from 0 to 9007199254740991"))
                }
            }
        }

        impl From<$name> for i64 {
            fn from(number: $name) -> i64 {
                number.0
            }
        }

        $crate::schema::inline_schema!($name, { "type": "integer", "minimum": 0, "maximum": Self::MAX });
    };
}

number!(
    /// Number of a parallel line of work in a repository. Track 0 differs from no track.
    Track
);

number!(
    /// Number of an issue in the tracker of a repository.
    IssueNumber
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_as_sent() {
        for name in ["a", "cc-cli-host", "desktop.pm_1", "0x", &"a".repeat(128)] {
            assert_eq!(name.parse::<Agent>().unwrap().as_str(), name);
        }
        for repo in ["o/n", "venturecrane/crane-console", "me/.github", "a.b/c_d-e"] {
            assert_eq!(repo.parse::<Repo>().unwrap().as_str(), repo);
        }
    }

    #[test]
    fn names_with_invalid_characters_or_length_are_rejected() {
        for name in ["", ".a", "-a", "a b", "a/b", "é", "a\n", "a\0", &"a".repeat(129)] {
            assert!(name.parse::<Agent>().is_err(), "{name:?}");
        }
        assert!("a".repeat(65).parse::<Venture>().is_err());
        for repo in ["", "o", "o/", "/n", "o/n/m", "o/..", "o/.", "../n", "o//n", "o /n"] {
            assert!(repo.parse::<Repo>().is_err(), "{repo:?}");
        }
        assert!("corr_a b".parse::<CorrelationId>().is_err());
        assert!("".parse::<CorrelationId>().is_err());
    }

    #[test]
    fn generated_correlation_ids_are_restored_from_their_uuid() {
        let own: CorrelationId = "corr_019a8f3e-0001-7abc-8def-00000000000f".parse().unwrap();
        assert_eq!(CorrelationId::from_uuid(own.uuid().unwrap()), own);
        for other in [
            "corr_fixture",
            "019a8f3e-0001-7abc-8def-00000000000f",
            "corr_019A8f3e-0001-7abc-8def-00000000000f",
            "corr_019a8f3e0001-7abc-8def-0000-00000000f",
            "corr_019a8f3e-0001-7abc-8def-00000000000g",
        ] {
            assert_eq!(other.parse::<CorrelationId>().unwrap().uuid(), None, "{other}");
        }
    }

    #[test]
    fn zero_is_a_track_and_minus_one_is_not() {
        assert_eq!(Track::try_from(0).unwrap().number(), 0);
        assert!(Track::try_from(-1).is_err());
        assert!(Track::try_from(Track::MAX + 1).is_err());
    }

    #[test]
    fn derives_a_valid_repository_name_from_any_folder() {
        let name = |folder| Repo::of_folder(folder).unwrap().to_string();
        assert_eq!(name("/home/dev/shop/"), "local/shop");
        assert_eq!(name("C:\\work\\my shop"), "local/my-shop");
        assert_eq!((name("/"), name("//")), ("local/filesystem-root".into(), "local/filesystem-root".into()));
        assert_eq!(name("/home/dev/.config"), "local/config");
        assert_eq!(name("/srv/日本1"), "local/1");
        assert!(name("/srv/日本").starts_with("local/folder-"));
        assert_ne!(name("/srv/日本"), name("/srv/中国"));
        assert_eq!(Repo::of_folder(""), None);
    }
}
