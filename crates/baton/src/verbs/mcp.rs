//! `baton mcp`

use baton_store::Threads;

use crate::backend::open_app_or_degrade;
use crate::cli::VERSION;
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure, warn};
use crate::verbs::task::local_tools;

pub(crate) fn run(config: &Config) -> Result<Answer, Failure> {
    if let Some(url) = &config.server {
        warn(&format!("baton mcp works on the local store; the server {url} is not used"));
    }
    let app = open_app_or_degrade(config, Threads::Background)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failure, "internal", format!("the async runtime: {error}")))?;
    runtime
        .block_on(baton_server::serve_stdio(app, VERSION, local_tools(config)))
        .map_err(|error| Failure::new(Exit::Failure, "mcp_failed", error.to_string()))?;
    // Standard output was the wire; nothing more may go there.
    Ok(Answer::silent())
}
