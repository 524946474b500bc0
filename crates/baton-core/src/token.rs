//! Tokens: credentials of individual agents, in the form `bt_<id>_<secret>`.
//!
//! The id is public and identifies the token. The secret is 256 random bits; only its hash is stored.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::actor::{Access, Actor, ActorKeyId, VentureScope};
use crate::canonical::Sha256Hash;
use crate::error::{ErrorCode, Fault};
use crate::name::{NameError, is_hex, name};
use crate::time::Timestamp;

const PREFIX: &str = "bt_";
const SECRET_LENGTH: usize = 64;

name!(
    /// The public part of a token: 16 hex digits.
    TokenId,
    pattern "^[0-9a-f]{16}$",
    max 16,
    |text| is_hex(text, 16),
    "must be the 16 hex digits after `bt_` of a token"
);

impl TokenId {
    /// Creates an id from random bits.
    pub fn new(random: u64) -> Self {
        Self(format!("{random:016x}"))
    }
}

/// A token as stored, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Public part.
    pub id: TokenId,
    /// Name given by its creator.
    pub name: String,
    /// SHA-256 hash of the secret.
    pub secret_hash: Sha256Hash,
    /// Access level.
    pub access: Access,
    /// Accessible ventures.
    pub ventures: VentureScope,
    /// Time when the token was created.
    pub created_at: Timestamp,
    /// Time when the token expires.
    pub expires_at: Option<Timestamp>,
    /// Time when the token was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A token as sent by a client. `Debug` shows only its id.
#[derive(Clone, PartialEq, Eq)]
pub struct PresentedToken {
    /// The public part.
    pub id: TokenId,
    /// SHA-256 hash of the secret that was sent.
    pub secret_hash: Sha256Hash,
    key_id: ActorKeyId,
}

impl fmt::Debug for PresentedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PresentedToken({})", self.id)
    }
}

impl PresentedToken {
    /// Parses a credential; `None` if it does not have the form of a token.
    pub fn parse(credential: &str) -> Option<Self> {
        let (id, secret) = credential.strip_prefix(PREFIX)?.split_once('_')?;
        let id = id.parse().ok()?;
        is_hex(secret, SECRET_LENGTH).then(|| Self {
            id,
            secret_hash: Sha256Hash::of(secret.as_bytes()),
            key_id: ActorKeyId::of(credential),
        })
    }

    /// Formats the credential of an id and 256 random bits.
    pub fn write(id: &TokenId, random: (u128, u128)) -> String {
        format!("{PREFIX}{id}_{:032x}{:032x}", random.0, random.1)
    }
}

impl Token {
    /// Authenticates a presented token: the secret must match, and the token must be neither revoked nor expired.
    /// Callers with a wrong secret do not learn whether the token is revoked or expired.
    pub fn authenticate(&self, presented: &PresentedToken, now: Timestamp) -> Result<Actor, Fault> {
        let refused = |problem: &str| {
            Err(Fault::new(ErrorCode::Unauthorized, problem).hint("create a new token: baton token create"))
        };
        if !self.secret_hash.eq_constant_time(&presented.secret_hash) {
            return refused("the credential is unknown");
        }
        if self.revoked_at.is_some() {
            return refused("the token was revoked");
        }
        if self.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return refused("the token has expired");
        }
        Ok(Actor { key_id: presented.key_id.clone(), access: self.access, ventures: self.ventures.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(presented: &PresentedToken) -> Token {
        Token {
            id: presented.id.clone(),
            name: "ci".into(),
            secret_hash: presented.secret_hash,
            access: Access::Read,
            ventures: VentureScope::All,
            created_at: Timestamp::EPOCH,
            expires_at: None,
            revoked_at: None,
        }
    }

    #[test]
    fn token_round_trips() {
        let text = PresentedToken::write(&TokenId::new(7), (1, 2));
        let presented = PresentedToken::parse(&text).unwrap();
        assert_eq!(presented.id, TokenId::new(7));
        assert!(!format!("{presented:?}").contains("00000002"), "the secret is not shown");
        let actor = token(&presented).authenticate(&presented, Timestamp::EPOCH).unwrap();
        assert_eq!(actor.key_id, ActorKeyId::of(&text));
        assert_eq!(actor.access, Access::Read);
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        let good = PresentedToken::write(&TokenId::new(7), (1, 2));
        for bad in ["", "bt_", "bt_x_y", &good[1..], &good[..good.len() - 1], &good.to_uppercase()] {
            assert!(PresentedToken::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn revoked_expired_and_wrong_tokens_are_rejected() {
        let presented = PresentedToken::parse(&PresentedToken::write(&TokenId::new(7), (1, 2))).unwrap();
        let now = Timestamp::from_millis(1_000);
        let good = token(&presented);
        let revoked = Token { revoked_at: Some(Timestamp::EPOCH), ..good.clone() };
        let expired = Token { expires_at: Some(now), ..good.clone() };
        let wrong = Token { secret_hash: Sha256Hash::of(b"other"), ..good.clone() };
        for token in [&wrong, &revoked, &expired] {
            assert_eq!(token.authenticate(&presented, now).unwrap_err().code, ErrorCode::Unauthorized);
        }
        assert!(
            Token { expires_at: Some(Timestamp::from_millis(1_001)), ..good }
                .authenticate(&presented, now)
                .is_ok()
        );
    }
}
