//! Marks: corrections of single items by people and agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::ActorKeyId;
use crate::name::{Repo, Venture};
use crate::time::Timestamp;
use crate::wire::wire_names;

/// Mark of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum MarkKind {
    /// The item is wrong.
    Rejected,
    /// Another item replaces it.
    Superseded,
    /// The item is important.
    Pinned,
}

wire_names!(MarkKind);

impl MarkKind {
    /// Returns true if marked items are not returned by search, timeline, lists and the context bundle.
    pub const fn hides(self) -> bool {
        !matches!(self, Self::Pinned)
    }
}

/// A mark of an item. An item has at most one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Id of the item.
    pub item: String,
    /// Venture of the item.
    pub venture: Venture,
    /// Repository of the item.
    pub repo: Option<Repo>,
    /// What the mark says.
    pub kind: MarkKind,
    /// Id of the item that replaces a superseded one.
    pub replaced_by: Option<String>,
    /// Time of the mark.
    pub created_at: Timestamp,
    /// Credential that set the mark.
    pub actor_key_id: ActorKeyId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip() {
        for kind in [MarkKind::Rejected, MarkKind::Superseded, MarkKind::Pinned] {
            assert_eq!(MarkKind::from_wire(kind.as_str()), Some(kind));
        }
        assert_eq!(MarkKind::from_wire("forgotten"), None);
    }
}
