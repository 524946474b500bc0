//! Limits of the `meta` object of a session.

use serde_json::{Map, Value, json};

use crate::canonical::Canonical;
use crate::error::{ErrorCode, Fault};
use crate::text::require_plain_text;

/// Maximum size of `meta` as canonical JSON.
pub const MAX_META_BYTES: usize = 256 * 1024;

/// Rejects `meta` that is too large or contains control characters or integers that would be rounded.
pub fn require_valid_meta(meta: &Map<String, Value>) -> Result<(), Fault> {
    require_plain_text("meta", meta)?;
    let canonical = Canonical::of(&Value::Object(meta.clone()))
        .map_err(|rounded| Fault::invalid(&format!("meta.{}", rounded.path), &rounded))?;
    let actual = canonical.size_bytes();
    if actual <= MAX_META_BYTES {
        return Ok(());
    }
    let message = format!("meta has {actual} bytes of canonical JSON; the limit is {MAX_META_BYTES}");
    Err(Fault::new(ErrorCode::PayloadTooLarge, message)
        .hint("put information for the next agent into a handoff, and remove keys of meta with null")
        .details(json!({ "actual_bytes": actual, "allowed_bytes": MAX_META_BYTES })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(meta: Value) -> Result<(), ErrorCode> {
        require_valid_meta(meta.as_object().unwrap()).map_err(|fault| fault.code)
    }

    #[test]
    fn meta_over_the_size_limit_is_rejected() {
        let overhead = r#"{"a":""}"#.len();
        assert_eq!(check(json!({ "a": "x".repeat(MAX_META_BYTES - overhead) })), Ok(()));
        assert_eq!(
            check(json!({ "a": "x".repeat(MAX_META_BYTES - overhead + 1) })),
            Err(ErrorCode::PayloadTooLarge)
        );
    }

    #[test]
    fn rounded_integers_and_control_characters_are_rejected() {
        assert_eq!(check(json!({ "a": { "b": 9_007_199_254_740_993_u64 } })), Err(ErrorCode::InvalidRequest));
        assert_eq!(check(json!({ "a": "\u{0}" })), Err(ErrorCode::InvalidRequest));
    }
}
