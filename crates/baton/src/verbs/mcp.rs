//! `baton mcp`

use std::sync::Arc;
use std::time::Duration;

use baton_core::Repo;
use baton_mcp::{FindRepo, LocalCheckout, ToolSelection};
use baton_store::Threads;
use clap::Args;

use crate::VERSION;
use crate::app::open_app_or_degrade;
use crate::checkout::{find_root, repository_at};
use crate::config::Config;
use crate::exit::Exit;
use crate::maintenance::clean_up_every_minute;
use crate::open_files::raise_open_file_limit;
use crate::output::{Answer, Failure, warn};
use crate::verbs::task::local_tools;

/// Delay of the first cleanup, so that a starting client is served first.
const FIRST_CLEANUP_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Tools to list: default, all, or a list of sessions, checkpoints, tasks and memory
    #[arg(long, value_name = "SETS", default_value = "default")]
    tools: ToolSelection,
}

pub(crate) fn run(args: &McpArgs, config: &Config) -> Result<Answer, Failure> {
    raise_open_file_limit();
    if let Some(url) = &config.server {
        warn(&format!("baton mcp works on the local store; the server {url} is not used"));
    }
    let app = open_app_or_degrade(config, Threads::Background)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("cannot start the async runtime: {error}")))?;
    let served = runtime.block_on(async {
        tokio::spawn(clean_up_every_minute(app.clone(), FIRST_CLEANUP_AFTER));
        baton_mcp::serve_stdio(app.clone(), VERSION, local_checkout(config), &args.tools).await
    });
    app.close_request_log();
    served.map_err(|error| Failure::new(Exit::Failure, "mcp_failed", error.to_string()))?;
    // Standard output carries the protocol, so nothing else may be printed there.
    Ok(Answer::silent())
}

/// Returns the current checkout: task files are stored in it, and sessions and checkpoints are recorded for its
/// repository. A folder outside of a checkout counts as a repository named after the folder.
fn local_checkout(config: &Config) -> LocalCheckout {
    let find_repo = std::env::current_dir().ok().map(|folder| -> FindRepo {
        // Git is asked on each call, because a remote can be added while the server runs.
        Arc::new(move || {
            let Some(root) = find_root(&folder) else { return Repo::of_folder(&folder.to_string_lossy()) };
            repository_at(&root).unwrap_or_else(|fault| {
                tracing::warn!(error = %fault.message, "cannot name the repository of the checkout");
                None
            })
        })
    });
    LocalCheckout { tools: local_tools(config), find_repo, agent: config.agent.clone() }
}
