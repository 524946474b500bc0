//! `baton context`: what a new chat should know about a repository.

use baton_app::bundle::ReadContext;
use baton_core::SessionId;
use clap::Args;
use serde::Serialize;

use crate::backend::Backend;
use crate::config::Config;
use crate::output::{Answer, Failure};
use crate::verbs::session::repository_or_here;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton context
  $ baton context --repo acme/webshop --prompt \"fix the login\" --max-tokens 1000";

#[derive(Debug, Default, Args, Serialize)]
pub(crate) struct ContextArgs {
    /// Repository [default: repository of the current checkout]
    #[arg(long, value_name = "OWNER/NAME")]
    pub(crate) repo: Option<String>,
    /// Venture [default: session.venture]
    #[arg(long)]
    pub(crate) venture: Option<String>,
    /// Track number, for example 2
    #[arg(long, value_name = "N")]
    pub(crate) track: Option<i64>,
    /// Request of the user; matching files and items come first
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Branch; work on the same branch comes first
    #[arg(long)]
    pub(crate) branch: Option<String>,
    /// Maximum number of tokens, 200 to 100000 [default: 2000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<i64>,
    /// Program that receives the context, for example claude-code or codex; its own limit applies as well
    #[arg(long, alias = "host", value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    #[arg(skip)]
    pub(crate) unrecorded_session: Option<SessionId>,
}

pub(crate) fn run(mut args: ContextArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    let (repo, _) = repository_or_here(args.repo.as_deref(), "show the context")?;
    args.venture = config.chosen_venture(args.venture.as_deref());
    args.repo = Some(repo.clone());
    backend.answer::<ReadContext>(&args, None, |output| match output.context.as_str() {
        "" => format!("nothing is recorded for {repo}"),
        text => text.to_owned(),
    })
}
