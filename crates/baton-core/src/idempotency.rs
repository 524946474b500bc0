//! Idempotency keys: a repeated request with the same key is executed once.

use std::fmt;

use crate::actor::ActorKeyId;
use crate::canonical::Sha256Hash;
use crate::error::{ErrorCode, Fault};
use crate::name::CorrelationId;
use crate::time::Timestamp;

/// Key chosen by the client for one request: 1 to 255 visible characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses a key.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let length = text.chars().count();
        if (1..=255).contains(&length) && !text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Fault::invalid("Idempotency-Key", "must be 1 to 255 visible characters"))
        }
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Scope of a key: the same key may be used with another credential or operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyScope {
    /// Id of the credential.
    pub actor_key_id: ActorKeyId,
    /// Wire name of the operation.
    pub operation: &'static str,
    /// Key sent by the client.
    pub key: IdempotencyKey,
}

/// Stored response of a request with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// SHA-256 hash of the canonical parameters.
    pub request_hash: Sha256Hash,
    /// 200, or the status of the error code.
    pub response_status: u16,
    /// Error code, if the request failed.
    pub response_code: Option<String>,
    /// SHA-256 hash of the full response.
    pub response_hash: Sha256Hash,
    /// Full response, or a compact one if the full response exceeds [`MAX_BODY_BYTES`](Self::MAX_BODY_BYTES).
    pub response_body: String,
    /// Size of the full response.
    pub response_size_bytes: u64,
    /// True if the body is the compact response.
    pub response_truncated: bool,
    /// Time of the first use.
    pub created_at: Timestamp,
    /// Time when the key expires.
    pub expires_at: Timestamp,
    /// Correlation id of the first request.
    pub correlation_id: CorrelationId,
}

impl KeyRecord {
    /// Maximum size of a response that is stored in full.
    pub const MAX_BODY_BYTES: usize = 64 * 1024;
}

/// Rejects a request whose key was already used for a request with another hash.
pub fn require_same_request(recorded: Sha256Hash, request: Sha256Hash) -> Result<(), Fault> {
    if recorded == request {
        return Ok(());
    }
    let message = "this idempotency key was already used with other parameters";
    Err(Fault::new(ErrorCode::IdempotencyMismatch, message)
        .hint("use a new key for a new request; to retry a request, send the same body again"))
}

/// Result of claiming a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyClaim {
    /// The key is new; the caller must execute the request.
    Claimed,
    /// The key was used before; this is the stored response.
    Answered(KeyRecord),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_1_to_255_visible_characters() {
        assert!(IdempotencyKey::parse("550e8400-e29b-41d4-a716-446655440000").is_ok());
        assert!(IdempotencyKey::parse(&"é".repeat(255)).is_ok());
        for bad in ["", " ", "a b", "a\n", "\u{7f}", &"a".repeat(256)] {
            assert_eq!(IdempotencyKey::parse(bad).unwrap_err().code, ErrorCode::InvalidRequest, "{bad:?}");
        }
    }
}
