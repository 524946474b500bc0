//! `token.list`: lists tokens.

use crate::prelude::*;
use crate::token::TokenView;

/// No parameters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListTokens {}

/// All tokens, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListTokensOutput {
    /// All tokens, revoked ones included, newest first.
    pub tokens: Vec<TokenView>,
}

impl Operation<OnStore> for ListTokens {
    const NAME: &'static str = "token.list";
    const SUMMARY: &'static str = "List tokens.";
    const EFFECT: Effect = Effect::Read;
    type Output = ListTokensOutput;
    params_as_input!();

    fn run(_context: &Context<'_>, tx: &mut dyn Tx, _params: &Self::Input) -> Result<Self::Output, Fault> {
        let tokens = tx.tokens()?;
        Ok(ListTokensOutput { tokens: tokens.into_iter().map(Into::into).collect() })
    }
}
