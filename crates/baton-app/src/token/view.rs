//! Wire format of tokens, without the secret.

use baton_core::{Access, Timestamp, Token, VentureScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// Public id of the token.
    pub id: String,
    /// Purpose of the token.
    pub name: String,
    /// Allowed access.
    pub access: Access,
    /// Ventures the token can access; null for all.
    pub ventures: Option<Vec<String>>,
    /// Time when the token was created.
    pub created_at: Timestamp,
    /// Time when the token expires.
    pub expires_at: Option<Timestamp>,
    /// Time when the token was revoked.
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
