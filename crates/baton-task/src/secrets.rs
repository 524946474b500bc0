//! Nothing with a credential in it is written unless somebody insists, and then that is on record.

use baton_core::secrets::{scan_bytes, scan_json};
use baton_core::task::{ForcedSecret, TaskContext};
use baton_core::{ErrorCode, Fault, Timestamp};
use serde_json::{Value, json};

/// How many findings a message names.
const NAMED: usize = 10;

/// What is about to be written, looked through piece by piece.
#[derive(Debug, Default)]
pub(crate) struct SecretScan {
    findings: Vec<String>,
}

impl SecretScan {
    /// Looks through bytes that will be kept as `place`.
    pub(crate) fn bytes(&mut self, place: &str, bytes: &[u8]) {
        for finding in scan_bytes(bytes) {
            let before = bytes.get(..finding.start).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            self.findings.push(format!("{} at {place}:{line}", finding.rule.id()));
        }
    }

    /// Looks through every text of a value that will be kept as `place`.
    pub(crate) fn value(&mut self, place: &str, value: &Value) {
        for finding in scan_json(value) {
            let path =
                if finding.path == "$" { place.to_owned() } else { format!("{place}.{}", finding.path) };
            self.findings.push(format!("{} at {path}:{}", finding.rule.id(), finding.line));
        }
    }

    /// Refuses what was found, or returns it when somebody insists.
    pub(crate) fn verdict(self, force: bool) -> Result<Vec<String>, Fault> {
        if self.findings.is_empty() || force {
            return Ok(self.findings);
        }
        let count = self.findings.len();
        let named: Vec<&String> = self.findings.iter().take(NAMED).collect();
        let list = named.iter().map(|text| text.as_str()).collect::<Vec<_>>().join(", ");
        let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
        let message = format!("potential secret detected ({list}{more}); nothing was written");
        Err(Fault::new(ErrorCode::SecretFound, message)
            .hint("take it out, or use --force-secrets if it is none; that is recorded")
            .details(json!({ "findings": named, "count": count })))
    }
}

/// Puts overruled findings on record, and says so.
pub(crate) fn record(
    context: &mut TaskContext,
    findings: Vec<String>,
    verb: &str,
    now: Timestamp,
    by: &str,
) -> Option<String> {
    if findings.is_empty() {
        return None;
    }
    tracing::warn!(task = %context.task_id, verb, count = findings.len(), "secret findings were overruled");
    let warning =
        format!("{} secret findings were overruled and recorded: {}", findings.len(), findings.join(", "));
    context.audit.forced_secrets.push(ForcedSecret {
        forced_at: now,
        forced_by: by.to_owned(),
        verb: verb.to_owned(),
        findings,
    });
    Some(warning)
}
