//! The store that the configuration names: its location, and failures to use it.

use baton_core::ErrorCode;
use baton_store::{StoreConfig, StoreError, Target, Threads};

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::Failure;

/// Returns the location and options of the configured store.
pub(crate) fn store_config(config: &Config, threads: Threads) -> StoreConfig {
    match &config.database_url {
        Some(url) => StoreConfig::Postgres {
            url: url.expose().to_owned(),
            threads,
            connections: config.postgres_connections,
            timeouts: config.postgres_timeouts(),
        },
        None => StoreConfig::Sqlite { path: DataDir::at(&config.data_dir).database(), threads },
    }
}

/// Returns the store that hook reports are for: the configured server, or else the local store.
pub(crate) fn target(config: &Config) -> Target {
    match &config.server {
        Some(url) => Target::server(url),
        None => store_config(config, Threads::Caller).target(),
    }
}

/// Returns an error if a server is configured, for verbs that work on the store directly.
pub(crate) fn require_local(config: &Config, what: &str) -> Result<(), Failure> {
    let Some(url) = &config.server else { return Ok(()) };
    let message = format!("cannot use the server {url}: {what} requires direct access to the store");
    Err(Failure::usage(message)
        .hint("run it on the machine with the store, without --server (client.server, BATON_SERVER)"))
}

/// Converts a store error to a failure with a hint. All causes are included, because local users may see them.
pub(crate) fn store_failure(error: &StoreError) -> Failure {
    let mut message = error.to_string();
    let mut last = message.clone();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let text = inner.to_string();
        // Some errors contain the text of their cause, or the reverse.
        if !message.contains(&text) && !text.contains(&last) {
            message = format!("{message}: {text}");
            last = text;
        }
        cause = inner.source();
    }
    let hint = match error {
        StoreError::NewerSchema { .. } => {
            "use the version of baton that wrote it, or another database (BATON_DATA_DIR, BATON_DATABASE_URL)"
        }
        StoreError::OlderSchema { .. } => {
            "run baton worker start or any other baton command; it upgrades the database"
        }
        StoreError::ForeignDatabase { .. } => {
            "move the file away, or use another database (BATON_DATA_DIR, BATON_DATABASE_URL)"
        }
        StoreError::Folder { .. } => "make it writable for you, or point BATON_DATA_DIR at a folder that is",
        StoreError::Full => "free some space, then repeat the command",
        StoreError::ReadOnly => {
            "make the data folder and the files in it writable, or set BATON_DATA_DIR to another folder"
        }
        StoreError::Busy | StoreError::Overloaded => {
            "try again in a moment; another process holds the database"
        }
        _ => "check BATON_DATABASE_URL and BATON_DATA_DIR with baton config show, then run baton doctor",
    };
    Failure::new(Exit::StoreUnavailable, ErrorCode::StoreUnavailable.as_str(), message).hint(hint)
}
