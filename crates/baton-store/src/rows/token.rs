//! Rows of tokens.

use baton_core::{Timestamp, Token, TokenId, Venture, VentureScope};

use crate::column::{Column, Param, Row};
use crate::error::StoreError;
use crate::record::{Record, record};
use crate::tx::Tx;

record! {
    "tokens", Token { id, name, secret_hash, access, ventures, created_at, expires_at, revoked_at }
}

/// The names of the ventures with spaces between them; null for all ventures.
impl Column for VentureScope {
    fn param(&self) -> Result<Param<'_>, StoreError> {
        Ok(match self {
            Self::All => Param::Null,
            Self::Only(ventures) => ventures.iter().map(Venture::as_str).collect::<Vec<_>>().join(" ").into(),
        })
    }

    fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
        let ventures =
            row.text(|text| text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>())?;
        Ok(Some(ventures.map_or(Self::All, Self::Only)))
    }
}

impl dyn Tx + '_ {
    /// Adds a token.
    pub fn insert_token(&mut self, token: &Token) -> Result<(), StoreError> {
        self.insert("tokens", token.values()?, "")
    }

    /// Finds a token, revoked and expired ones included.
    pub fn token(&mut self, id: &TokenId) -> Result<Option<Token>, StoreError> {
        self.record("WHERE id = $1", &[id.into()])
    }

    /// Lists every token, newest first.
    pub fn tokens(&mut self) -> Result<Vec<Token>, StoreError> {
        self.records("ORDER BY created_at DESC, id", &[])
    }

    /// Revokes a token. Returns false if it is unknown or already revoked.
    pub fn revoke_token(&mut self, id: &TokenId, at: Timestamp) -> Result<bool, StoreError> {
        let changed = self.execute(
            "UPDATE tokens SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL",
            &[at.into(), id.into()],
        )?;
        Ok(changed == 1)
    }
}
