//! `token.revoke`: revokes a token.

use baton_core::{ErrorCode, TokenId};

use crate::prelude::*;
use crate::token::TokenView;

/// The token to revoke.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RevokeToken {
    /// Public id of the token: the 16 hex digits after `bt_`.
    pub token_id: String,
}

/// The revoked token.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RevokeTokenOutput {
    /// The stored token without its secret.
    pub info: TokenView,
}

impl Operation<OnStore> for RevokeToken {
    const NAME: &'static str = "token.revoke";
    const SUMMARY: &'static str = "Revoke a token.";
    const EFFECT: Effect = Effect::Write;
    type Output = RevokeTokenOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let id: TokenId = params.token_id.parse().map_err(|problem| Fault::invalid("token_id", problem))?;
        tx.revoke_token(&id, context.now)?;
        let token = tx.token(&id)?.ok_or_else(|| {
            Fault::new(ErrorCode::NotFound, format!("there is no token {id}"))
                .hint("list tokens with baton token list")
        })?;
        Ok(RevokeTokenOutput { info: token.into() })
    }
}
