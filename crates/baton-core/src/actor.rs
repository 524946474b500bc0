//! Actors: the credential of a call, its access level and its ventures.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canonical::Sha256Hash;
use crate::error::{ErrorCode, Fault};
use crate::name::{NameError, Venture, is_hex, name};
use crate::wire::wire_names;

name!(
    /// Public id of a credential: the first 16 hex digits of its SHA-256 hash.
    ActorKeyId,
    pattern "^[0-9a-f]{16}$",
    max 16,
    |text| is_hex(text, 16),
    "an actor key id is 16 lower-case hex digits"
);

impl ActorKeyId {
    /// Derives the id of a key.
    pub fn of(key: &str) -> Self {
        let mut hex = Sha256Hash::of(key.as_bytes()).to_string();
        hex.truncate(16);
        Self(hex)
    }

    /// Returns the id as bytes, half the size of the digits.
    pub fn to_bytes(&self) -> [u8; 8] {
        // The text is always 16 hex digits.
        u64::from_str_radix(&self.0, 16).unwrap_or_default().to_be_bytes()
    }

    /// Restores an id from its bytes.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(format!("{:016x}", u64::from_be_bytes(bytes)))
    }
}

/// What a credential may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[schemars(inline)]
pub enum Access {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write,
}

wire_names!(Access);

/// Ventures that a credential may access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VentureScope {
    /// Every venture.
    All,
    /// Only these ventures.
    Only(Vec<Venture>),
}

/// Caller of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Public id of the credential.
    pub key_id: ActorKeyId,
    /// Access level.
    pub access: Access,
    /// Accessible ventures.
    pub ventures: VentureScope,
}

impl Actor {
    /// Returns the local user. Access to the data folder is controlled by file permissions, so this actor is
    /// unrestricted.
    pub fn local() -> Self {
        Self { key_id: ActorKeyId::of("local"), access: Access::Write, ventures: VentureScope::All }
    }

    /// Returns the actor of the shared relay key.
    pub fn shared(key: &str) -> Self {
        Self { key_id: ActorKeyId::of(key), ..Self::local() }
    }

    /// Returns true if this actor may access a venture.
    pub fn may_access(&self, venture: &Venture) -> bool {
        match &self.ventures {
            VentureScope::All => true,
            VentureScope::Only(ventures) => ventures.contains(venture),
        }
    }

    /// Returns the venture of an actor that may access exactly one. It is the default of calls that name no venture.
    pub fn only_venture(&self) -> Option<&Venture> {
        match &self.ventures {
            VentureScope::Only(ventures) if ventures.len() == 1 => ventures.first(),
            VentureScope::All | VentureScope::Only(_) => None,
        }
    }

    /// Rejects an actor that may not access all ventures.
    pub fn require_every_venture(&self) -> Result<(), Fault> {
        match self.ventures {
            VentureScope::All => Ok(()),
            VentureScope::Only(_) => {
                Err(Fault::new(ErrorCode::Forbidden, "this operation requires access to all ventures")
                    .hint("use the relay key or a token with access to all ventures"))
            }
        }
    }

    /// Rejects a venture that this actor may not access.
    pub fn require_venture(&self, venture: &Venture) -> Result<(), Fault> {
        if self.may_access(venture) {
            Ok(())
        } else {
            Err(Fault::new(ErrorCode::Forbidden, format!("this token cannot access venture `{venture}`"))
                .hint("use a token for that venture: baton token create --venture NAME"))
        }
    }

    /// Rejects an actor with less than the given access.
    pub fn require_access(&self, access: Access) -> Result<(), Fault> {
        if self.access >= access {
            Ok(())
        } else {
            Err(Fault::new(ErrorCode::Forbidden, "this token has read access only")
                .hint("use a token with write access: baton token create --access write"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_id_is_a_prefix_of_the_hash() {
        assert_eq!(ActorKeyId::of("abc").as_str(), "ba7816bf8f01cfea");
        assert_eq!("ba7816bf8f01cfea".parse(), Ok(ActorKeyId::of("abc")));
        assert!("BA7816BF8F01CFEA".parse::<ActorKeyId>().is_err());
        assert!("ba78".parse::<ActorKeyId>().is_err());
    }

    #[test]
    fn actor_is_limited_to_its_ventures_and_access() {
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
