//! Finding and removing credentials in text, bytes and JSON.
//!
//! Owns which formats count as a credential, their location, and the marker that replaces them. The caller
//! decides whether a finding rejects a write, is accepted or is logged.
//!
//! All rules share one pass, and nothing is built at startup: a constant table of four-byte heads determines
//! where a rule could match, and the full format is checked only there. A finding contains a rule and a span;
//! no type in this module contains the secret.
//!
//! The scanner skips the marker `[redacted:<rule-id>]`. A rule that does not match a text does not match it
//! either if a marker truncates it. Redacted text therefore has no findings, and redaction is idempotent.

mod assignment;
mod context;
mod json;
mod redact;
mod rules;
mod scan;
mod shapes;
mod stream;

pub use json::{JsonFinding, redact_json, rename_entries, scan_json, scan_json_text};
pub use redact::{redact, redact_bytes};
pub use rules::Rule;
pub use scan::{Finding, contains_secret, scan, scan_bytes};
pub use stream::Redactor;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
