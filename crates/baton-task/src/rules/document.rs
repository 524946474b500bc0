//! The text of a context: canonical JSON with a checksum.
//!
//! A context with a large scope has megabytes of text, and every command reads it. An unmodified document is therefore
//! verified by hashing its text. Any other document is parsed completely to report the problem.

use baton_core::{Canonical, ErrorCode, Fault, Sha256Hash, canonicalize, read_strict};
use serde_json::Value;

use super::context::{CONTEXT_VERSION, TaskContext, unwritable};

/// Field with the hash of all other fields.
const CHECKSUM: &str = "checksum";

impl TaskContext {
    /// Formats the document: canonical JSON with a checksum, and a line end.
    ///
    /// # Errors
    ///
    /// `internal` if a value has no canonical text, which does not happen for this type.
    pub fn to_document(&self) -> Result<String, Fault> {
        let Value::Object(members) = serde_json::to_value(self).map_err(unwritable)? else {
            return Err(unwritable("a context is an object"));
        };
        let text = |(name, value): (String, Value)| canonicalize(&value).map(|text| (name, text));
        let mut members = members.into_iter().map(text).collect::<Result<Vec<_>, _>>().map_err(unwritable)?;
        members.sort();
        let checksum = Sha256Hash::of(object(&members).as_bytes());
        let at = members.partition_point(|(name, _)| name.as_str() < CHECKSUM);
        members.insert(at, (CHECKSUM.into(), format!("\"{checksum}\"")));
        Ok(object(&members) + "\n")
    }

    /// Parses a document and verifies its checksum and the hash of its frozen part.
    ///
    /// # Errors
    ///
    /// `unsupported_schema_version` for a version other than 1, `task_corrupt` for any other problem.
    pub fn from_document(bytes: &[u8], path: &str) -> Result<Self, Fault> {
        let text =
            std::str::from_utf8(bytes).map_err(|error| damaged(path, format!("cannot be read: {error}")))?;
        as_written(text).map_or_else(|| read_in_full(text, path), Ok)
    }
}

/// Formats an object from members that are sorted by name.
fn object(members: &[(String, String)]) -> String {
    let length: usize = members.iter().map(|(name, text)| name.len() + text.len() + 4).sum();
    let mut all = String::with_capacity(length + 2);
    for (name, text) in members {
        all.push(if all.is_empty() { '{' } else { ',' });
        all.push('"');
        all.push_str(name);
        all.push_str("\":");
        all.push_str(text);
    }
    all.push('}');
    all
}

/// Parses a document whose hashes match its text; `None` otherwise. Matching hashes prove that the text is canonical,
/// so the fields may be located by text search.
fn as_written(text: &str) -> Option<TaskContext> {
    let document = text.strip_suffix('\n')?;
    let (before, rest) = document.split_once(&format!(",\"{CHECKSUM}\":\""))?;
    let (recorded, after) = rest.split_once('"')?;
    if Sha256Hash::of_parts([before.as_bytes(), after.as_bytes()]).to_string() != recorded {
        return None;
    }
    let (_, frozen) = document.split_once(",\"immutable\":")?;
    let (frozen, _) = frozen.split_once(",\"immutable_revision\":")?;
    let context: TaskContext = serde_json::from_str(document).ok()?;
    let known = context.version == CONTEXT_VERSION
        && Sha256Hash::of(frozen.as_bytes()) == context.immutable_revision.sha256;
    known.then_some(context)
}

/// Parses and verifies a document completely and reports the first problem.
fn read_in_full(text: &str, path: &str) -> Result<TaskContext, Fault> {
    let damaged = |problem| damaged(path, problem);
    let mut value =
        read_strict(text.as_bytes()).map_err(|error| damaged(format!("cannot be read: {error}")))?;
    if !value.is_object() {
        return Err(damaged("is not a context: it is not a JSON object".into()));
    }
    let version = value["version"].as_u64();
    let version = version.ok_or_else(|| damaged("is not a context: its version is not a number".into()))?;
    if version != u64::from(CONTEXT_VERSION) {
        let message = format!("{path} has version {version}; this binary supports version {CONTEXT_VERSION}");
        return Err(Fault::new(ErrorCode::UnsupportedSchemaVersion, message)
            .hint("use the version of baton that wrote it"));
    }
    let recorded = value.as_object_mut().and_then(|members| members.remove(CHECKSUM));
    let actual = Canonical::of(&value).map_err(unwritable)?.hash().to_string();
    if recorded.as_ref().and_then(Value::as_str) != Some(actual.as_str()) {
        let recorded = recorded.as_ref().and_then(Value::as_str).unwrap_or("none");
        return Err(damaged(format!(
            "is corrupt: its checksum is {}, its content has {}",
            recorded.get(..12).unwrap_or(recorded),
            actual.get(..12).unwrap_or(&actual)
        )));
    }
    let context: TaskContext =
        serde_json::from_str(text).map_err(|error| damaged(format!("is invalid: {error}")))?;
    if context.immutable.hash()? != context.immutable_revision.sha256 {
        return Err(damaged("is corrupt: the immutable block was changed".into()));
    }
    Ok(context)
}

fn damaged(path: &str, problem: String) -> Fault {
    Fault::new(ErrorCode::TaskCorrupt, format!("{path} {problem}"))
        .hint("restore the file, or copy the diffs and logs next to it elsewhere and run baton task purge-context and init-context")
}
