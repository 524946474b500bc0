//! Tokens as they look on the wire: all but the secret.

use baton_core::{Access, Timestamp, Token, VentureScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// Its public part.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// What it may do.
    pub access: Access,
    /// The ventures it reaches; `null` is all of them.
    pub ventures: Option<Vec<String>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops working by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl From<Token> for TokenView {
    fn from(token: Token) -> Self {
        Self {
            id: token.id.to_string(),
            name: token.name,
            access: token.access,
            ventures: match token.ventures {
                VentureScope::All => None,
                VentureScope::Only(ventures) => Some(ventures.into_iter().map(Into::into).collect()),
            },
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
        }
    }
}
