//! Secret scan of everything that is written. A secret is rejected unless the caller forces it, which is recorded in
//! the audit. A forced secret is accepted from then on, because it stays in the diff of every later snapshot.

use baton_core::{ErrorCode, Fault, Sha256Hash, Timestamp};
use baton_secrets::{Finding, redact, scan_bytes};
use serde_json::{Value, json};

use crate::rules::{AcceptedSecret, ForcedSecret, TaskContext};

/// Maximum number of findings in a message.
const MAX_LISTED: usize = 10;

/// Findings in the content that is about to be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretScan {
    found: Vec<Found>,
}

/// A finding: rule and location, without the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    accepted: AcceptedSecret,
    location: String,
}

impl Found {
    fn new(finding: &Finding, bytes: &[u8], path: &str, location: String) -> Self {
        let rule = finding.rule.id();
        let secret = bytes.get(finding.start..finding.end).unwrap_or_default();
        let identity = [rule.as_bytes(), path.as_bytes(), secret].join(&0);
        let mut fingerprint = Sha256Hash::of(&identity).to_string();
        fingerprint.truncate(16);
        // Paths may contain secrets, and findings are shown and stored.
        let (path, location) = (without_secrets(path), without_secrets(&location));
        Self { accepted: AcceptedSecret { rule: rule.into(), path, fingerprint }, location }
    }

    /// Formats rule and location, for example `aws-access-key at src/a.rs:3`.
    fn describe(&self) -> String {
        let at = if self.location.starts_with("in the name ") { "" } else { "at " };
        format!("{} {at}{}", self.accepted.rule, self.location)
    }
}

/// Redacts secrets in a name.
pub(crate) fn without_secrets(name: &str) -> String {
    redact(name).into_owned()
}

impl SecretScan {
    /// Scans bytes; `path` names them in findings.
    pub(crate) fn bytes(&mut self, path: &str, bytes: &[u8]) {
        for finding in scan_bytes(bytes) {
            let line = lines_before(bytes, finding.start) + 1;
            self.add(Found::new(&finding, bytes, path, format!("{path}:{line}")));
        }
    }

    /// Scans the content of a file, or a window that begins in `line`. Findings that begin at `upto` or later are
    /// skipped, because the next window contains them.
    pub(crate) fn content(&mut self, path: &str, bytes: &[u8], line: usize, upto: usize) {
        let is_text = !bytes.contains(&0);
        for finding in scan_bytes(bytes).into_iter().filter(|finding| finding.start < upto) {
            let location = if is_text {
                format!("{path}:{}", line + lines_before(bytes, finding.start) + 1)
            } else {
                path.to_owned()
            };
            self.add(Found::new(&finding, bytes, path, location));
        }
        if !is_text {
            // UTF-16 and UTF-32 have zero bytes between ASCII characters; they are removed for the scan.
            let squeezed: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
            for finding in scan_bytes(&squeezed) {
                self.add(Found::new(&finding, &squeezed, path, path.to_owned()));
            }
        }
    }

    /// Scans the name of a file.
    pub(crate) fn name(&mut self, path: &str) {
        for finding in scan_bytes(path.as_bytes()) {
            self.add(Found::new(&finding, path.as_bytes(), path, format!("in the name {path}")));
        }
    }

    /// Adds the findings of another scan.
    pub(crate) fn merge(&mut self, other: Self) {
        other.found.into_iter().for_each(|found| self.add(found));
    }

    /// Returns an error if there are findings that were not accepted before.
    pub(crate) fn require_accepted(&self, accepted: &[AcceptedSecret]) -> Result<(), Fault> {
        let new = self.found.iter().filter(|found| !accepted.contains(&found.accepted));
        let findings: Vec<String> = new.map(Found::describe).collect();
        if findings.is_empty() { Ok(()) } else { Err(secret_fault(&findings)) }
    }

    /// Scans a patch. Findings are reported with the file and line that the patch changes.
    pub(crate) fn patch(&mut self, patch: &[u8]) {
        let findings = scan_bytes(patch);
        if findings.is_empty() {
            return;
        }
        let mut at = PatchPosition::default();
        let mut rest = findings.as_slice();
        let mut start = 0;
        for line in patch.split_inclusive(|byte| *byte == b'\n') {
            at.advance(line);
            while let [finding, later @ ..] = rest
                && finding.start < start + line.len()
            {
                self.add(Found::new(finding, patch, &at.path, at.to_string()));
                rest = later;
            }
            start += line.len();
        }
    }

    /// Scans all strings of a JSON value; `path` names the value in findings.
    pub(crate) fn value(&mut self, path: &str, value: &Value) {
        match value {
            Value::String(text) => self.bytes(path, text.as_bytes()),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, item)| self.value(&format!("{path}[{at}]"), item));
            }
            Value::Object(members) => {
                members.iter().for_each(|(name, item)| self.value(&format!("{path}.{name}"), item));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add(&mut self, found: Found) {
        if !self.found.contains(&found) {
            self.found.push(found);
        }
    }

    /// Returns an error if there are findings that were not accepted before. With `force` they are accepted and
    /// recorded in the audit, and a warning is returned.
    pub(crate) fn check(self, context: &mut TaskContext, force: bool, stamp: &AuditStamp<'_>) -> ScanOutcome {
        let known = &context.audit.accepted_secrets;
        let (accepted, new): (Vec<Found>, Vec<Found>) =
            self.found.into_iter().partition(|found| known.contains(&found.accepted));
        if !accepted.is_empty() {
            tracing::info!(task = %context.task_id, verb = stamp.verb, count = accepted.len(), "secret findings were accepted before");
        }
        if new.is_empty() {
            return Ok(None);
        }
        let findings: Vec<String> = new.iter().map(Found::describe).collect();
        if !force {
            return Err(secret_fault(&findings));
        }
        tracing::warn!(task = %context.task_id, verb = stamp.verb, count = findings.len(), "secret findings were accepted with force_secrets");
        let warning = format!(
            "{} accepted and recorded: {}",
            if findings.len() == 1 {
                "1 secret finding was".into()
            } else {
                format!("{} secret findings were", findings.len())
            },
            findings.join(", ")
        );
        for found in new {
            if !context.audit.accepted_secrets.contains(&found.accepted) {
                context.audit.accepted_secrets.push(found.accepted);
            }
        }
        context.audit.forced_secrets.push(ForcedSecret {
            forced_at: stamp.now,
            forced_by: stamp.actor.to_owned(),
            verb: stamp.verb.to_owned(),
            findings,
        });
        Ok(Some(warning))
    }
}

/// A warning about forced findings, or the error of rejected ones.
pub(crate) type ScanOutcome = Result<Option<String>, Fault>;

/// Verb, actor and time to record in the audit.
pub(crate) struct AuditStamp<'a> {
    pub(crate) verb: &'a str,
    pub(crate) actor: &'a str,
    pub(crate) now: Timestamp,
}

fn secret_fault(findings: &[String]) -> Fault {
    let count = findings.len();
    let named: Vec<&str> = findings.iter().take(MAX_LISTED).map(String::as_str).collect();
    let more = if count > MAX_LISTED { format!(" and {} more", count - MAX_LISTED) } else { String::new() };
    let message = format!("potential secret detected ({}{more}); nothing was written", named.join(", "));
    Fault::new(ErrorCode::SecretFound, message)
        .hint("remove it, or use --force-secrets if it is not a secret; this is recorded, and the finding is not reported again")
        .details(json!({ "findings": named, "count": count }))
}

fn lines_before(bytes: &[u8], end: usize) -> usize {
    bytes.iter().take(end).filter(|byte| **byte == b'\n').count()
}

/// Position in the changed file of the current line of a patch.
#[derive(Debug, Default)]
struct PatchPosition {
    path: String,
    /// Number of the next line in the new file; `None` before the first hunk.
    next: Option<u64>,
    removed: bool,
    line: Option<u64>,
}

impl PatchPosition {
    /// Advances to the next line of the patch. Lines of a hunk never begin with a letter, so `diff ` is always a
    /// header.
    fn advance(&mut self, line: &[u8]) {
        if let Some(header) = line.strip_prefix(b"diff ") {
            let header = String::from_utf8_lossy(header.trim_ascii_end()).into_owned();
            let path = header.rsplit_once(" b/").or_else(|| header.rsplit_once(" \"b/"));
            let path = path.map_or(header.as_str(), |(_, path)| path.trim_end_matches('"'));
            *self = Self { path: path.to_owned(), ..Self::default() };
            return;
        }
        if line.starts_with(b"@@ ") {
            self.next = first_line(line);
        }
        self.removed = line.starts_with(b"-");
        self.line = self.next;
        if line.starts_with(b"+") || line.starts_with(b" ") {
            self.next = self.next.map(|next| next + 1);
        }
    }
}

impl std::fmt::Display for PatchPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.removed) {
            (Some(line), false) => write!(f, "{}:{line}", self.path),
            (Some(line), true) => write!(f, "{}:{line} (a removed line)", self.path),
            (None, _) => f.write_str(&self.path),
        }
    }
}

/// Returns the first line number of the new file, for example 3 for `@@ -1,2 +3,4 @@`.
fn first_line(hunk: &[u8]) -> Option<u64> {
    let text =
        std::str::from_utf8(hunk).ok().or_else(|| hunk.utf8_chunks().next().map(|chunk| chunk.valid()))?;
    let after = text.split(" +").nth(1)?;
    after.split([',', ' ']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a key at run time, so that this file does not contain one.
    fn key(last: char) -> String {
        format!("AKIA{}{last}", "IOSFODNN7EXAMPL")
    }

    fn locations(scan: &SecretScan) -> Vec<&str> {
        scan.found.iter().map(|found| found.location.as_str()).collect()
    }

    #[test]
    fn findings_in_a_patch_have_file_and_line() {
        let (one, two, three) = (key('Q'), key('R'), key('S'));
        let patch = format!(
            "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
             @@ -3,3 +7,3 @@ fn x() {{\n same\n-let k = \"{one}\";\n+let k = \"{two}\";\n same\n\
             diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\303\\244\"\n\
             @@ -0,0 +1 @@\n+{three}\n"
        );
        let mut scan = SecretScan::default();
        scan.patch(patch.as_bytes());
        assert_eq!(locations(&scan), ["src/a.rs:8 (a removed line)", "src/a.rs:8", "\\303\\244:1"]);
        assert!(scan.found.iter().all(|found| !format!("{found:?}").contains("IOSFODNN")));
    }

    #[test]
    fn fingerprint_does_not_depend_on_the_position_in_the_file() {
        let (one, two) = (key('Q'), key('R'));
        let print = |path: &str, text: &str| {
            let mut scan = SecretScan::default();
            scan.bytes(path, text.as_bytes());
            scan.found.into_iter().map(|found| found.accepted.fingerprint).collect::<Vec<_>>()
        };
        assert_eq!(print("a", &one), print("a", &format!("moved\n\n{one}")));
        assert_ne!(print("a", &one), print("b", &one));
        assert_ne!(print("a", &one), print("a", &two));
        assert_eq!(print("a", &one)[0].len(), 16);
    }

    #[test]
    fn findings_in_a_json_value_have_its_path() {
        let mut scan = SecretScan::default();
        scan.value("immutable", &json!({ "a": ["x", { "b": format!("one\n{}", key('Q')) }], "c": 1 }));
        assert_eq!(locations(&scan), ["immutable.a[1].b:2"]);
    }
}
