//! Workflow ids, their derivation, and references to checkpoints in requests.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::canonical::Sha256Hash;
use crate::id::CheckpointId;

/// Number of hexadecimal digits of a derived id.
const DERIVED_DIGITS: usize = 32;

/// Reason why a text is not a workflow id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 128 letters, digits, `_` or `-`")]
pub struct WorkflowIdError;

/// Reference to a checkpoint in a request. Any text in the form of a workflow id is accepted; text that is not a
/// checkpoint id of this store refers to a checkpoint that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CheckpointRef(String);

impl CheckpointRef {
    /// Returns the checkpoint id, or `None` if the text is not one.
    pub fn id(&self) -> Option<CheckpointId> {
        self.0.parse().ok()
    }
}

impl TryFrom<String> for CheckpointRef {
    type Error = WorkflowIdError;

    fn try_from(text: String) -> Result<Self, WorkflowIdError> {
        if is_name(&text) { Ok(Self(text)) } else { Err(WorkflowIdError) }
    }
}

impl From<CheckpointRef> for String {
    fn from(name: CheckpointRef) -> Self {
        name.0
    }
}

impl fmt::Display for CheckpointRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for CheckpointRef {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CheckpointRef".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WorkflowId::json_schema(generator)
    }
}

/// Returns true for letters, digits, dashes and underscores, which are safe in file names.
fn is_name(text: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=WorkflowId::MAX_BYTES).contains(&text.len()) && text.bytes().all(is_name_byte)
}

/// Id of a series of checkpoints; called `sessionId` by the checkpoint tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct WorkflowId(String);

impl WorkflowId {
    /// Maximum length in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Derives the id of a new workflow from its name and the hash of its first context.
    pub fn derive(workflow_name: &str, initial_context_hash: Sha256Hash) -> Self {
        let hash = Sha256Hash::of(format!("{workflow_name}\n{initial_context_hash}").as_bytes()).to_string();
        Self(format!("wf-{}", hash.get(..DERIVED_DIGITS).unwrap_or(&hash)))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkflowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for WorkflowId {
    type Error = WorkflowIdError;

    fn try_from(text: String) -> Result<Self, WorkflowIdError> {
        if is_name(&text) { Ok(Self(text)) } else { Err(WorkflowIdError) }
    }
}

impl FromStr for WorkflowId {
    type Err = WorkflowIdError;

    fn from_str(text: &str) -> Result<Self, WorkflowIdError> {
        Self::try_from(text.to_owned())
    }
}

impl From<WorkflowId> for String {
    fn from(id: WorkflowId) -> Self {
        id.0
    }
}

impl JsonSchema for WorkflowId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WorkflowId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$", "minLength": 1, "maxLength": Self::MAX_BYTES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_contain_only_letters_digits_dashes_and_underscores() {
        for id in ["a", "auth-migration_2", &"a".repeat(128)] {
            assert_eq!(id.parse::<WorkflowId>().unwrap().as_str(), id);
        }
        for id in ["", "../x", "a/b", "a.b", "a b", "é", "a\n", "a\0", &"a".repeat(129)] {
            assert_eq!(id.parse::<WorkflowId>(), Err(WorkflowIdError), "{id:?}");
        }
        assert!(serde_json::from_value::<WorkflowId>(json!("a/b")).is_err());
    }

    #[test]
    fn derived_id_depends_only_on_name_and_context() {
        let (one, other) = (Sha256Hash::of(b"1"), Sha256Hash::of(b"2"));
        let id = WorkflowId::derive("auth", one);
        assert_eq!(id, WorkflowId::derive("auth", one));
        assert_eq!(id.as_str().len(), "wf-".len() + 32);
        assert_eq!(id.as_str().parse::<WorkflowId>().as_ref(), Ok(&id));
        assert_ne!(id, WorkflowId::derive("auth", other));
        assert_ne!(id, WorkflowId::derive("billing", one));
        let expected = Sha256Hash::of(format!("auth\n{one}").as_bytes()).to_string();
        assert_eq!(id.as_str()["wf-".len()..], expected[..32]);
    }
}
