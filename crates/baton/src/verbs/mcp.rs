//! `baton mcp`

use baton_store::Threads;
use serde_json::json;

use crate::backend::open_app;
use crate::cli::VERSION;
use crate::config::Config;
use crate::exit::Exit;
use crate::output::{Answer, Failure};

pub(crate) fn run(config: &Config) -> Result<Answer, Failure> {
    let app = open_app(config, Threads::Background)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failure, "internal", format!("the async runtime: {error}")))?;
    runtime
        .block_on(baton_server::serve_stdio(app, VERSION))
        .map_err(|error| Failure::new(Exit::Failure, "mcp_failed", error.to_string()))?;
    // Standard output was the wire; nothing more may go there.
    Ok(Answer { data: json!(null), text: String::new(), exit: Exit::Ok })
}
