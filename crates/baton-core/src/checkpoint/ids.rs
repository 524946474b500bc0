//! The ids of workflows, how a workflow without one gets one, and the names of checkpoints in requests.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::canonical::Sha256Hash;
use crate::id::CheckpointId;

/// How many hexadecimal digits of a hash a derived id has.
const DERIVED_DIGITS: usize = 32;

/// Why a text is not the id of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 128 letters, digits, `_` or `-`")]
pub struct WorkflowIdError;

/// Names a checkpoint in a request. What could be the name of one in another store is one that is not there; anything else
/// is no name at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CheckpointRef(String);

impl CheckpointRef {
    /// Gives the id, if this store could have given it.
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

/// Letters, digits, dash and underscore alone: nothing that could lead out of a folder.
fn is_name(text: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=WorkflowId::MAX_BYTES).contains(&text.len()) && text.bytes().all(is_name_byte)
}

/// Names a series of checkpoints; on the wire of the checkpoint tools it is called `sessionId`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct WorkflowId(String);

impl WorkflowId {
    /// The longest id, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Derives the id of a new workflow from what it calls itself and the hash of its first context.
    pub fn derive(workflow_name: &str, initial_context_hash: Sha256Hash) -> Self {
        let hash = Sha256Hash::of(format!("{workflow_name}\n{initial_context_hash}").as_bytes()).to_string();
        Self(format!("wf-{}", hash.get(..DERIVED_DIGITS).unwrap_or(&hash)))
    }

    /// Gives the id as text.
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
    fn ids_with_anything_but_letters_digits_dash_and_underscore_are_refused() {
        for id in ["a", "auth-migration_2", &"a".repeat(128)] {
            assert_eq!(id.parse::<WorkflowId>().unwrap().as_str(), id);
        }
        for id in ["", "../x", "a/b", "a.b", "a b", "é", "a\n", "a\0", &"a".repeat(129)] {
            assert_eq!(id.parse::<WorkflowId>(), Err(WorkflowIdError), "{id:?}");
        }
        assert!(serde_json::from_value::<WorkflowId>(json!("a/b")).is_err());
    }

    #[test]
    fn a_derived_id_depends_on_name_and_context_alone() {
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
