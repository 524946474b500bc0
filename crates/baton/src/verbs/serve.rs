//! `baton serve`

use std::time::Duration;

use baton_server::{Listener, Server, ServerConfig};
use baton_store::Threads;
use clap::Args;
use serde_json::json;

use crate::VERSION;
use crate::app::open_app;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::hooks::replay_periodically;
use crate::maintenance::clean_up_every_minute;
use crate::open_files::{max_connections, raise_open_file_limit};
use crate::output::{Answer, Failure, print_message, warn};
use crate::stop_signal::StopSignal;
use crate::verbs::worker::{announce_server, spawn_in_process};

/// Minimum length of a relay key.
const MIN_RELAY_KEY_CHARS: usize = 16;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton serve
  $ baton serve --listen 127.0.0.1:8080 --no-worker";

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on, as host:port [default: server.listen]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Do not process the capture queue in this process
    #[arg(long)]
    pub(crate) no_worker: bool,
}

/// Rejects a relay key that is easy to guess, and one of the form of a token: such a credential is looked up as a token
/// and never compared with the relay key, so no client could use it.
fn check_relay_key(key: &str) -> Result<(), Failure> {
    let problem = if key.starts_with("bt_") {
        "it is a token"
    } else if key.chars().count() < MIN_RELAY_KEY_CHARS {
        "it has fewer than 16 characters"
    } else {
        return Ok(());
    };
    Err(Failure::new(Exit::Usage, "invalid_config", format!("cannot use server.relay_key: {problem}"))
        .hint("set a random key, for example from openssl rand -hex 32, or remove it to have one created"))
}

pub(crate) fn run(args: &ServeArgs, config: &Config) -> Result<Answer, Failure> {
    if let Some(url) = &config.server {
        warn(&format!("baton serve works on the local store; the server {url} is not used"));
    }
    let folder = DataDir::open(&config.data_dir)?;
    let existing_key = match &config.relay_key {
        Some(key) => Some(key.expose().to_owned()),
        None => folder.stored_relay_key()?,
    };
    existing_key.as_deref().map_or(Ok(()), check_relay_key)?;
    let app = open_app(config, Threads::Background)?;
    let no_runtime =
        |error: std::io::Error| Failure::internal(format!("cannot start the async runtime: {error}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(no_runtime)?;
    let stop = StopSignal::listen(&runtime).map_err(no_runtime)?;
    let listener = runtime.block_on(Listener::bind(&config.listen)).map_err(|error| {
        let baton_server::ServeError::Listen { source, .. } = &error;
        let hint = match source.kind() {
            std::io::ErrorKind::AddrInUse => {
                "choose another address with --listen, or stop the process that uses it"
            }
            _ => "choose another address with --listen",
        };
        Failure::new(Exit::Failure, "serve_failed", error.to_string()).hint(hint)
    })?;
    // A server that cannot listen leaves no new key.
    let key = match existing_key {
        Some(key) => key,
        None => {
            let (key, new) = folder.relay_key_or_new()?;
            if new {
                print_message(&format!("created a relay key in {}", folder.relay_key().display()));
            }
            key
        }
    };
    let server = ServerConfig {
        allowed_hosts: config.allowed_hosts.clone(),
        relay_key: key,
        requests_per_minute: config.rate_limit_per_minute,
        failed_per_minute: config.rate_limit_failed_per_minute,
        max_connections: max_connections(config.max_connections, raise_open_file_limit()),
        body_memory_bytes: config.body_memory_mb * 1024 * 1024,
        version: VERSION.to_owned(),
    };
    let worker = if args.no_worker { None } else { Some(spawn_in_process(&app, config)?) };
    // While this lock is held, hooks do not start a worker.
    let _announced = worker.as_ref().and_then(|_| announce_server(&folder));
    let served = runtime.block_on(async {
        let server = Server::new(listener, app.clone(), server);
        let address = server.address();
        if !address.ip().is_loopback() {
            warn(
                "the server accepts connections from other machines without TLS, so keys are sent unencrypted: use a TLS \
                 proxy, and set the host names of the server in server.allowed_hosts (BATON_ALLOWED_HOSTS)",
            );
        }
        print_message(&format!("baton listens on http://{address}"));
        print_message(&format!("dashboard: {} (valid once, for 15 minutes)", server.sign_in_link()?));
        let cleaner = tokio::spawn(clean_up_every_minute(app.clone(), Duration::ZERO));
        let replayer = tokio::spawn(replay_periodically(app.clone(), config.clone()));
        server.run(Box::pin(stop.wait())).await;
        cleaner.abort();
        replayer.abort();
        Ok::<(), Failure>(())
    });
    if let Some(worker) = worker {
        worker.stop();
    }
    drop(runtime);
    app.close_request_log();
    served?;
    Answer::new(&json!({ "stopped": true }), "stopped".into())
}
