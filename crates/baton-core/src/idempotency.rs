//! Idempotency: a key that makes a repeated request one request.

use std::fmt;

use crate::actor::ActorKeyId;
use crate::canonical::Sha256Hash;
use crate::error::{ErrorCode, Fault};
use crate::name::CorrelationId;
use crate::time::Timestamp;

/// A client's own name for one request: 1 to 255 visible characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Takes a key as the client sent it.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let length = text.chars().count();
        if (1..=255).contains(&length) && !text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Fault::invalid("Idempotency-Key", "must be 1 to 255 visible characters"))
        }
    }

    /// Gives the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Within which a key means one request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyScope {
    /// The credential that used it.
    pub actor_key_id: ActorKeyId,
    /// The operation it was used on, by its wire name.
    pub operation: &'static str,
    /// The key.
    pub key: IdempotencyKey,
}

/// The stored answer of a keyed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// The SHA-256 of the request's canonical parameters.
    pub request_hash: Sha256Hash,
    /// 200, or the status of the error code that was answered.
    pub response_status: u16,
    /// The error code that was answered, if one was.
    pub response_code: Option<String>,
    /// The SHA-256 of the whole answer.
    pub response_hash: Sha256Hash,
    /// The answer: whole, or compact when the whole one was too large to keep.
    pub response_body: String,
    /// The size of the whole answer.
    pub response_size_bytes: u64,
    /// Whether the body is the compact one.
    pub response_truncated: bool,
    /// When the key was used first.
    pub created_at: Timestamp,
    /// When the key is forgotten.
    pub expires_at: Timestamp,
    /// The request that used it first.
    pub correlation_id: CorrelationId,
}

impl KeyRecord {
    /// The largest answer that is kept whole.
    pub const MAX_BODY_BYTES: usize = 64 * 1024;

    /// Refuses another request under the same key.
    pub fn require_same_request(&self, request_hash: Sha256Hash) -> Result<(), Fault> {
        if self.request_hash == request_hash {
            Ok(())
        } else {
            Err(Fault::new(
                ErrorCode::IdempotencyMismatch,
                "this idempotency key was used before with other parameters",
            )
            .hint(
                "use a new key for a new request; repeat a request only with the body it was first sent with",
            ))
        }
    }
}

/// What claiming a key found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyClaim {
    /// The key is new: the effect is ours to make.
    Claimed,
    /// The key was used: here is what was answered.
    Answered(KeyRecord),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_visible_and_bounded() {
        assert!(IdempotencyKey::parse("550e8400-e29b-41d4-a716-446655440000").is_ok());
        assert!(IdempotencyKey::parse(&"é".repeat(255)).is_ok());
        for bad in ["", " ", "a b", "a\n", "\u{7f}", &"a".repeat(256)] {
            assert_eq!(IdempotencyKey::parse(bad).unwrap_err().code, ErrorCode::InvalidRequest, "{bad:?}");
        }
    }
}
