//! Replaces secrets with a marker that names the rule.
//!
//! Owns the marker and the replacement. Bytes outside a finding are not changed.

use std::borrow::Cow;

use super::rules::{MARKER_OPEN, Rule};
use super::scan::{Finding, scan, scan_bytes};

/// Replaces each secret in `text` with `[redacted:<rule-id>]`. Borrows the text if there is no secret.
///
/// The result has no findings, so redaction is idempotent.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    redact_findings(text, &scan(text))
}

/// Replaces each secret in bytes that need not be UTF-8, as [`redact`] does in text.
#[must_use]
pub fn redact_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let findings = scan_bytes(bytes);
    if findings.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut clean = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for finding in findings {
        clean.extend_from_slice(bytes.get(from..finding.start).unwrap_or_default());
        clean.extend_from_slice(marker(finding.rule).as_bytes());
        from = finding.end;
    }
    clean.extend_from_slice(bytes.get(from..).unwrap_or_default());
    Cow::Owned(clean)
}

/// Replaces the `findings` of `text`, which must be in order. Borrows the text if there are none.
pub(super) fn redact_findings<'a>(text: &'a str, findings: &[Finding]) -> Cow<'a, str> {
    if findings.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    for finding in findings {
        clean.push_str(text.get(from..finding.start).unwrap_or_default());
        clean.push_str(&marker(finding.rule));
        from = finding.end;
    }
    clean.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(clean)
}

pub(super) fn marker(rule: Rule) -> String {
    format!("{MARKER_OPEN}{}]", rule.id())
}
