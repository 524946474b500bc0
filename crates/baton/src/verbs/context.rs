//! `baton context`: what a new chat should know about a repository.

use baton_app::bundle::ReadContext;
use clap::Args;
use serde_json::json;

use crate::backend::Backend;
use crate::checkout::repository_here;
use crate::config::Config;
use crate::output::{Answer, Failure};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton context
  $ baton context --repo acme/webshop --prompt \"fix the login\" --max-tokens 1000";

#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    /// Repository [default: repository of the current checkout]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Venture [default: session.venture]
    #[arg(long)]
    venture: Option<String>,
    /// Track number, for example 2
    #[arg(long, value_name = "N")]
    track: Option<i64>,
    /// Request of the user; matching files and items come first
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Branch; work on the same branch comes first
    #[arg(long)]
    branch: Option<String>,
    /// Maximum number of tokens, 200 to 100000 [default: 2000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_tokens: Option<i64>,
    /// Program that receives the context, for example claude-code or codex; its own limit applies as well
    #[arg(long, value_name = "CLIENT")]
    host: Option<String>,
}

pub(crate) fn run(args: &ContextArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    let repo = match &args.repo {
        Some(repo) => repo.clone(),
        None => repository_here()?.map(String::from).ok_or_else(|| {
            let message =
                "cannot show the context: no repository given, and the working folder is not in a checkout";
            Failure::usage(message).hint("add --repo OWNER/NAME, or run the command in a checkout")
        })?,
    };
    let params = json!({
        "repo": repo, "venture": config.chosen_venture(args.venture.as_deref()), "track": args.track,
        "prompt": args.prompt, "branch": args.branch, "max_tokens": args.max_tokens, "client": args.host,
    });
    backend.answer::<ReadContext>(&params, None, |output| match output.context.as_str() {
        "" => format!("nothing is recorded for {repo}"),
        text => text.to_owned(),
    })
}
