//! Workflow ids, their derivation, and references to checkpoints in requests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::canonical::Sha256Hash;
use crate::id::CheckpointId;
use crate::name::{NameError, name};

/// Number of hexadecimal digits of a derived id.
const DERIVED_DIGITS: usize = 32;

/// Returns true for letters, digits, dashes and underscores, which are safe in file names.
fn is_name(text: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=128).contains(&text.len()) && text.bytes().all(is_name_byte)
}

name!(
    /// Reference to a checkpoint in a request. Any text in the form of a workflow id is accepted; text that is not a
    /// checkpoint id of this store refers to a checkpoint that does not exist.
    CheckpointRef,
    pattern r"^[A-Za-z0-9_-]{1,128}$",
    max 128,
    is_name,
    "must be 1 to 128 letters, digits, `_` or `-`"
);

impl CheckpointRef {
    /// Returns the checkpoint id, or `None` if the text is not one.
    pub fn id(&self) -> Option<CheckpointId> {
        self.0.parse().ok()
    }
}

name!(
    /// Id of a series of checkpoints; called `sessionId` by the checkpoint tools.
    WorkflowId,
    pattern r"^[A-Za-z0-9_-]{1,128}$",
    max 128,
    is_name,
    "must be 1 to 128 letters, digits, `_` or `-`"
);

impl WorkflowId {
    /// Derives the id of a new workflow from its name and the hash of its first context.
    pub fn derive(workflow_name: &str, initial_context_hash: Sha256Hash) -> Self {
        let hash = Sha256Hash::of(format!("{workflow_name}\n{initial_context_hash}").as_bytes()).to_string();
        Self(format!("wf-{}", hash.get(..DERIVED_DIGITS).unwrap_or(&hash)))
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
            assert!(id.parse::<WorkflowId>().is_err(), "{id:?}");
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
