//! `baton token …`: access tokens for agents. They are managed on the machine of the store, never over the network.

use baton_app::token::{CreateToken, ListTokens, RevokeToken, TokenView};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::json;

use crate::backend::Backend;
use crate::config::Config;
use crate::output::{Answer, Failure, note};

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print its secret once
    Create(CreateArgs),
    /// List tokens
    List,
    /// Revoke a token
    Revoke(RevokeArgs),
}

#[derive(Debug, Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum AccessArg {
    Read,
    Write,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct CreateArgs {
    /// Name that describes the purpose of the token
    #[arg(long)]
    name: String,
    /// Access level
    #[arg(long, value_enum, default_value = "write")]
    access: AccessArg,
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
    /// Token id: the 16 hexadecimal digits after bt_
    token_id: String,
}

pub(crate) fn run(command: &TokenCommand, config: &Config) -> Result<Answer, Failure> {
    let backend = Backend::local(config, "managing tokens")?;
    match command {
        TokenCommand::Create(args) => backend.answer::<CreateToken>(args, None, |output| {
            note(&format!("store the token now, it is not shown again: {}", describe(&output.info)));
            output.token.clone()
        }),
        TokenCommand::List => backend.answer::<ListTokens>(&json!({}), None, |output| {
            if output.tokens.is_empty() {
                return "no tokens; create one with baton token create --name NAME".into();
            }
            output.tokens.iter().map(describe).collect::<Vec<_>>().join("\n")
        }),
        TokenCommand::Revoke(args) => {
            backend.answer::<RevokeToken>(args, None, |output| format!("revoked {}", describe(&output.info)))
        }
    }
}

fn describe(token: &TokenView) -> String {
    let reach = token.ventures.as_ref().map_or_else(|| "all ventures".into(), |ventures| ventures.join(", "));
    let state = match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!(", revoked at {at}"),
        (None, Some(at)) => format!(", expires at {at}"),
        (None, None) => String::new(),
    };
    format!("{}  {}  {} in {reach}{state}", token.id, token.name, token.access.as_str())
}
