//! Actors: the credential behind a call, what it may do and where.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canonical::Sha256Hash;
use crate::error::{ErrorCode, Fault};
use crate::name::Venture;

/// The public name of a credential: the first 16 hex digits of its SHA-256.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ActorKeyId(String);

impl ActorKeyId {
    /// Derives the id of a key.
    pub fn of(key: &str) -> Self {
        let mut hex = Sha256Hash::of(key.as_bytes()).to_string();
        hex.truncate(16);
        Self(hex)
    }

    /// Gives the id as bytes, which take half the space of the digits.
    pub fn to_bytes(&self) -> [u8; 8] {
        // Always 16 hex digits.
        u64::from_str_radix(&self.0, 16).unwrap_or_default().to_be_bytes()
    }

    /// Restores an id from its bytes.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(format!("{:016x}", u64::from_be_bytes(bytes)))
    }

    /// Gives the 16 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ActorKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ActorKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ActorKeyId {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 16 && text.bytes().all(hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err("an actor key id is 16 lower-case hex digits")
        }
    }
}

impl TryFrom<String> for ActorKeyId {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ActorKeyId> for String {
    fn from(id: ActorKeyId) -> String {
        id.0
    }
}

/// What a credential may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Access {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write,
}

impl Access {
    /// Gives the stored and wire spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// Finds the access of a spelling.
    pub fn from_wire(text: &str) -> Option<Self> {
        [Self::Read, Self::Write].into_iter().find(|access| access.as_str() == text)
    }
}

/// The ventures that a credential reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VentureScope {
    /// Every venture.
    All,
    /// These alone.
    Only(Vec<Venture>),
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The public name of the credential.
    pub key_id: ActorKeyId,
    /// What it may do.
    pub access: Access,
    /// Where it may do it.
    pub ventures: VentureScope,
}

impl Actor {
    /// The person at this machine: whoever can read the data folder may do all that it holds.
    pub fn local() -> Self {
        Self { key_id: ActorKeyId::of("local"), access: Access::Write, ventures: VentureScope::All }
    }

    /// The holder of the shared relay key.
    pub fn shared(key: &str) -> Self {
        Self { key_id: ActorKeyId::of(key), ..Self::local() }
    }

    /// Tells whether this actor reaches a venture.
    pub fn reaches(&self, venture: &Venture) -> bool {
        match &self.ventures {
            VentureScope::All => true,
            VentureScope::Only(ventures) => ventures.contains(venture),
        }
    }

    /// Returns the venture of an actor that reaches only one: what a call means that names none.
    pub fn only_venture(&self) -> Option<&Venture> {
        match &self.ventures {
            VentureScope::Only(ventures) if ventures.len() == 1 => ventures.first(),
            VentureScope::All | VentureScope::Only(_) => None,
        }
    }

    /// Refuses an actor that does not reach every venture.
    pub fn require_every_venture(&self) -> Result<(), Fault> {
        match self.ventures {
            VentureScope::All => Ok(()),
            VentureScope::Only(_) => Err(Fault::new(
                ErrorCode::Forbidden,
                "this concerns every venture, and this token does not reach them all",
            )
            .hint("use the relay key or a token with access to all ventures")),
        }
    }

    /// Refuses a venture that this actor does not reach.
    pub fn require_venture(&self, venture: &Venture) -> Result<(), Fault> {
        if self.reaches(venture) {
            Ok(())
        } else {
            Err(Fault::new(ErrorCode::Forbidden, format!("this token does not reach venture `{venture}`"))
                .hint("ask for a token of that venture: baton token create --venture NAME"))
        }
    }

    /// Refuses an actor that may only read.
    pub fn require_access(&self, access: Access) -> Result<(), Fault> {
        if self.access >= access {
            Ok(())
        } else {
            Err(Fault::new(ErrorCode::Forbidden, "this token may only read")
                .hint("ask for a token that may write: baton token create --access write"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_id_is_the_start_of_the_hash() {
        assert_eq!(ActorKeyId::of("abc").as_str(), "ba7816bf8f01cfea");
        assert_eq!("ba7816bf8f01cfea".parse(), Ok(ActorKeyId::of("abc")));
        assert!("BA7816BF8F01CFEA".parse::<ActorKeyId>().is_err());
        assert!("ba78".parse::<ActorKeyId>().is_err());
    }

    #[test]
    fn scope_and_access_are_held() {
        let mine: Venture = "mine".parse().unwrap();
        let actor = Actor {
            access: Access::Read,
            ventures: VentureScope::Only(vec![mine.clone()]),
            ..Actor::shared("key")
        };
        assert!(actor.require_venture(&mine).is_ok());
        assert_eq!(actor.require_venture(&"other".parse().unwrap()).unwrap_err().code, ErrorCode::Forbidden);
        assert!(actor.require_access(Access::Read).is_ok());
        assert_eq!(actor.require_access(Access::Write).unwrap_err().code, ErrorCode::Forbidden);
    }
}
