//! Rows of tokens.

use baton_core::{Access, Timestamp, Token, TokenId, Venture, VentureScope};

use crate::error::StoreError;
use crate::sql::{Columns, RowReader};
use crate::tx::Tx;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, secret_hash, access, ventures, created_at, expires_at, revoked_at FROM tokens ",
            $rest
        )
    };
}

fn read(columns: &dyn Columns) -> Result<Token, StoreError> {
    let row = RowReader { table: "tokens", columns };
    let ventures = match row.opt_text(4)? {
        None => VentureScope::All,
        Some(text) => VentureScope::Only(
            text.split_ascii_whitespace()
                .map(|name| name.parse::<Venture>().map_err(|problem| row.wrong(4, problem)))
                .collect::<Result<_, _>>()?,
        ),
    };
    Ok(Token {
        id: row.parsed(0)?,
        name: row.text(1)?,
        secret_hash: row.hash(2)?,
        access: Access::from_wire(&row.text(3)?).ok_or_else(|| row.wrong(3, "unknown access"))?,
        ventures,
        created_at: row.time(5)?,
        expires_at: row.opt_time(6)?,
        revoked_at: row.opt_time(7)?,
    })
}

impl dyn Tx + '_ {
    /// Adds a token.
    pub fn insert_token(&mut self, token: &Token) -> Result<(), StoreError> {
        let ventures = match &token.ventures {
            VentureScope::All => None,
            VentureScope::Only(ventures) => {
                Some(ventures.iter().map(Venture::as_str).collect::<Vec<_>>().join(" "))
            }
        };
        self.run(
            "INSERT INTO tokens (id, name, secret_hash, access, ventures, created_at, expires_at, revoked_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            &[
                token.id.as_str().into(),
                (&token.name).into(),
                (&token.secret_hash.to_string()).into(),
                token.access.as_str().into(),
                ventures.as_ref().into(),
                token.created_at.into(),
                token.expires_at.into(),
                token.revoked_at.into(),
            ],
        )
    }

    /// Finds a token, revoked and expired ones included.
    pub fn token(&mut self, id: &TokenId) -> Result<Option<Token>, StoreError> {
        self.query_one(select!("WHERE id = $1"), &[id.as_str().into()], &mut read)
    }

    /// Lists every token, newest first.
    pub fn tokens(&mut self) -> Result<Vec<Token>, StoreError> {
        self.query(select!("ORDER BY created_at DESC, id"), &[], &mut read)
    }

    /// Revokes a token. Returns false if it is unknown or already revoked.
    pub fn revoke_token(&mut self, id: &TokenId, at: Timestamp) -> Result<bool, StoreError> {
        let changed = self.execute(
            "UPDATE tokens SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL",
            &[at.into(), id.as_str().into()],
        )?;
        Ok(changed == 1)
    }
}
