//! `baton token …`: access tokens for agents. They are managed on the machine of the store, never over the network.

use baton_app::token::{CreateToken, ListTokens, RevokeToken, TokenView};
use baton_app::{Clock, SystemClock};
use baton_core::Timestamp;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::backend::Backend;
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure, print_message};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, at, list_items};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton token create --name ci --access read --venture acme
  $ baton token list";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TokenCommand {
    /// Create a token and print its secret once
    #[command(
        after_help = "Example:\n  $ baton token create --name ci --access write --venture acme --expires-in-days 90"
    )]
    Create(CreateArgs),
    /// List tokens
    #[command(after_help = "Example:\n  $ baton token list")]
    List,
    /// Revoke a token
    #[command(after_help = "Example:\n  $ baton token revoke 9bc6aff44eaeaa51")]
    Revoke(RevokeArgs),
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct CreateArgs {
    /// Name that describes the purpose of the token
    #[arg(long)]
    name: String,
    /// Access level
    #[arg(long, value_parser = PossibleValuesParser::new(["read", "write"]), default_value = "write")]
    access: String,
    /// Venture that the token can access (repeatable) [default: all ventures]
    #[arg(long = "venture", value_name = "VENTURE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ventures: Vec<String>,
    /// Days until the token expires, 1 to 3650 [default: never expires]
    #[arg(long, value_name = "DAYS")]
    expires_in_days: Option<u32>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct RevokeArgs {
    /// Token id: the 16 hexadecimal digits after bt_, or the first of them
    token_id: String,
}

pub(crate) fn run(command: TokenCommand, config: &Config) -> Result<Answer, Failure> {
    let backend = Backend::local(config, "managing tokens")?;
    match command {
        TokenCommand::Create(args) => backend.answer::<CreateToken>(&args, None, |output| {
            let token = describe(&output.info);
            print_message(&format!("created token {token}; store its secret now, it is not shown again"));
            output.token.clone()
        }),
        TokenCommand::List => backend.answer::<ListTokens>(&ListTokens {}, None, |output| {
            let columns: [Column<TokenView>; _] = [
                (Whole("TOKEN"), |token| token.id.to_string()),
                (Text("NAME"), |token| token.name.clone()),
                (Whole("ACCESS"), |token| token.access.as_str().to_owned()),
                (Text("VENTURES"), ventures),
                (Whole("STATE"), |token| state(token, SystemClock.now()).unwrap_or_else(|| "active".into())),
            ];
            let empty = "no tokens; create one with baton token create --name NAME";
            list_items(&output.tokens, empty, describe, columns).join("\n")
        }),
        TokenCommand::Revoke(mut args) => {
            args.token_id = whole_id(&args.token_id, &backend)?;
            backend.answer::<RevokeToken>(&args, None, |output| format!("revoked {}", describe(&output.info)))
        }
    }
}

/// Returns the id of the only token that starts with `given`.
fn whole_id(given: &str, backend: &Backend) -> Result<String, Failure> {
    let found = backend.call::<ListTokens>(&ListTokens {}, None)?;
    let ids: Vec<String> = found.tokens.iter().map(|token| token.id.to_string()).collect();
    let matching: Vec<&String> = ids.iter().filter(|id| id.starts_with(given)).collect();
    match matching.as_slice() {
        [id] if !given.is_empty() => Ok((*id).clone()),
        _ if given.is_empty() || matching.is_empty() => {
            Err(Failure::new(Exit::NotFound, "not_found", format!("there is no token {given}"))
                .hint("list tokens with baton token list"))
        }
        several => {
            let candidates = several.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
            let message = format!("the id {given} is ambiguous: {candidates}");
            Err(Failure::new(Exit::Validation, "ambiguous_id", message)
                .hint("type more characters of the token id"))
        }
    }
}

fn describe(token: &TokenView) -> String {
    let state = state(token, SystemClock.now()).map(|state| format!(", {state}")).unwrap_or_default();
    format!("{}  {}  {} in {}{state}", token.id, token.name, token.access.as_str(), ventures(token))
}

fn ventures(token: &TokenView) -> String {
    token.ventures.as_ref().map_or_else(|| "all ventures".into(), |ventures| ventures.join(", "))
}

/// Returns when the token was revoked, has expired or will expire.
fn state(token: &TokenView, now: Timestamp) -> Option<String> {
    match (token.revoked_at, token.expires_at) {
        (Some(revoked_at), _) => Some(format!("revoked {}", at(revoked_at))),
        (None, Some(expires_at)) if expires_at <= now => Some(format!("expired {}", at(expires_at))),
        (None, Some(expires_at)) => Some(format!("expires {}", at(expires_at))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use baton_core::Access;

    use super::*;

    #[test]
    fn an_expiry_in_the_past_is_described_as_past() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let token = |expires_at: i64| TokenView {
            id: "9bc6aff44eaeaa51".into(),
            name: "ci".into(),
            access: Access::Read,
            ventures: None,
            created_at: Timestamp::from_millis(0),
            expires_at: Some(Timestamp::from_millis(expires_at)),
            revoked_at: None,
        };
        let described = |offset: i64| state(&token(now.as_millis() + offset), now).unwrap();
        assert!(described(-1).starts_with("expired "), "{}", described(-1));
        assert!(described(0).starts_with("expired "), "{}", described(0));
        assert!(described(1).starts_with("expires "), "{}", described(1));
    }
}
