//! `baton token …`: credentials of single agents. They are managed where the store is, never over the network.

use baton_app::token::{CreateToken, ListTokens, RevokeToken, TokenView};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::backend::Backend;
use crate::config::Config;
use crate::output::{Answer, Failure, note};

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token; its secret is shown this once
    Create(CreateArgs),
    /// List tokens
    List,
    /// Make a token stop working
    Revoke(RevokeArgs),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AccessArg {
    Read,
    Write,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What it is for, in your words
    #[arg(long)]
    name: String,
    /// What it may do
    #[arg(long, value_enum, default_value = "write")]
    access: AccessArg,
    /// A venture it reaches; give it as often as needed, or not at all for every venture
    #[arg(long = "venture", value_name = "NAME")]
    ventures: Vec<String>,
    /// In how many days it stops working by itself
    #[arg(long, value_name = "DAYS")]
    expires_in_days: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The token's id: the 16 hex digits after `bt_`
    token_id: String,
}

pub(crate) fn run(command: &TokenCommand, config: &Config) -> Result<Answer, Failure> {
    let backend = Backend::local(config, "managing tokens")?;
    match command {
        TokenCommand::Create(args) => {
            let params = json!({
                "name": args.name,
                "access": match args.access { AccessArg::Read => "read", AccessArg::Write => "write" },
                "ventures": (!args.ventures.is_empty()).then_some(&args.ventures),
                "expires_in_days": args.expires_in_days,
            });
            backend.answer::<CreateToken>(&params, None, |output| {
                note(&format!("keep it safe, it is not shown again: {}", describe(&output.info)));
                output.token.clone()
            })
        }
        TokenCommand::List => backend.answer::<ListTokens>(&json!({}), None, |output| {
            if output.tokens.is_empty() {
                return "there are no tokens; make one with baton token create --name NAME".into();
            }
            output.tokens.iter().map(describe).collect::<Vec<_>>().join("\n")
        }),
        TokenCommand::Revoke(args) => {
            let params = json!({ "token_id": args.token_id });
            backend
                .answer::<RevokeToken>(&params, None, |output| format!("revoked {}", describe(&output.info)))
        }
    }
}

fn describe(token: &TokenView) -> String {
    let reach =
        token.ventures.as_ref().map_or_else(|| "every venture".into(), |ventures| ventures.join(", "));
    let state = match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!(", revoked at {at}"),
        (None, Some(at)) => format!(", until {at}"),
        (None, None) => String::new(),
    };
    format!("{}  {}  {} in {reach}{state}", token.id, token.name, token.access.as_str())
}
