//! Finding and removing credentials in text, bytes and JSON.
//!
//! Owns which shapes count as a credential, where they lie, and the marker that stands in for one. Does not
//! decide what follows: whether a finding rejects a write, is bypassed or is logged is the caller's rule.
//!
//! One pass serves every rule and nothing is built at start-up: a constant table of four-byte heads says
//! where a rule could begin, and only there is its full shape checked. A finding names a rule and a span;
//! no type here ever holds the secret.
//!
//! The marker `[redacted:<rule-id>]` is opaque to the scanner. Since every rule also stays unmatched when
//! the text it looks at is cut short by a marker, redacted text scans clean and redacting it again is a
//! no-op.

mod assignment;
mod context;
mod json;
mod redact;
mod rules;
mod scan;
mod shapes;
mod stream;

pub use json::{JsonFinding, redact_json, scan_json, scan_json_text};
pub use redact::{redact, redact_bytes};
pub use rules::Rule;
pub use scan::{Finding, contains_secret, scan, scan_bytes};
pub(crate) use stream::Redactor;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
