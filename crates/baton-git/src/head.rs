//! The `HEAD` of a checkout.

use serde::{Deserialize, Serialize};

use crate::object::ObjectId;

/// State of `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Head {
    Branch {
        /// The branch, without `refs/heads/`.
        name: String,
        /// Commit of the branch.
        commit: ObjectId,
    },
    /// On a commit without a branch.
    Detached { commit: ObjectId },
    /// On a branch without commits.
    Unborn {
        /// The branch, without `refs/heads/`.
        name: String,
    },
}

impl Head {
    /// Returns the commit, if there is one.
    pub const fn commit(&self) -> Option<ObjectId> {
        match self {
            Self::Branch { commit, .. } | Self::Detached { commit } => Some(*commit),
            Self::Unborn { .. } => None,
        }
    }

    /// Returns the branch, if the checkout is on one.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::Branch { name, .. } | Self::Unborn { name } => Some(name),
            Self::Detached { .. } => None,
        }
    }
}
