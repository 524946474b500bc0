//! `token.create`: creates a token for one agent.

use std::time::Duration;

use baton_core::{Access, Label, PresentedToken, Token, TokenId, Venture, VentureScope};

use crate::prelude::*;
use crate::token::TokenView;

const MAX_DAYS: u32 = 3_650;

/// Description and access of the token.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CreateToken {
    /// Purpose of the token, in your own words.
    pub name: Label,
    /// Allowed access.
    pub access: Access,
    /// Ventures the token can access. Defaults to all ventures.
    #[schemars(length(min = 1))]
    pub ventures: Option<Vec<Venture>>,
    /// Days until the token expires. Defaults to no expiry.
    #[schemars(range(min = 1, max = MAX_DAYS))]
    pub expires_in_days: Option<u32>,
}

/// The new token. The secret is returned only once.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CreateTokenOutput {
    /// Credential to send as `Authorization: Bearer`.
    pub token: String,
    /// The stored token without its secret.
    pub info: TokenView,
}

impl Operation<OnStore> for CreateToken {
    const NAME: &'static str = "token.create";
    const SUMMARY: &'static str = "Create a token for one agent.";
    const EFFECT: Effect = Effect::Create;
    type Output = CreateTokenOutput;
    params_as_input!(|params| {
        let no_venture = params.ventures.as_ref().is_some_and(Vec::is_empty);
        let wrong_days = params.expires_in_days.is_some_and(|days| days == 0 || days > MAX_DAYS);
        Fault::all([
            Fault::require(
                !no_venture,
                "ventures",
                "must contain at least one venture; omit it for all ventures",
            ),
            Fault::require(!wrong_days, "expires_in_days", format!("must be from 1 to {MAX_DAYS}")),
        ])
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let id = TokenId::new(context.random()?);
        let credential = PresentedToken::write(&id, (context.random_bits()?, context.random_bits()?));
        let presented = PresentedToken::parse(&credential)
            .ok_or_else(|| Fault::new(baton_core::ErrorCode::Internal, "cannot parse a new token"))?;
        let expiry = |days: u32| context.now.plus(Duration::from_secs(u64::from(days) * 86_400));
        let token = Token {
            id,
            name: params.name.clone().into(),
            secret_hash: presented.secret_hash,
            access: params.access,
            ventures: params.ventures.clone().map_or(VentureScope::All, VentureScope::Only),
            created_at: context.now,
            expires_at: params.expires_in_days.map(expiry),
            revoked_at: None,
        };
        tx.insert_token(&token)?;
        Ok(CreateTokenOutput { token: credential, info: token.into() })
    }
}
