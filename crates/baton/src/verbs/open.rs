//! `baton open`: opens the dashboard in the browser and starts the server if necessary.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use crate::config::Config;
use crate::data_dir::{DataDir, open_log};
use crate::exit::Exit;
use crate::output::{Answer, Failure};
use crate::remote::http_agent;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton open
  $ baton open --print   # for a browser on another machine, or in a terminal without one";

/// Time limit for the server to start.
const START_TIMEOUT: Duration = Duration::from_secs(15);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Print the link without opening a browser
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(args: &OpenArgs, config: &Config) -> Result<Answer, Failure> {
    let base = match &config.server {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("http://{}", config.listen),
    };
    let mut started = false;
    let link = match sign_in_link(&base, config) {
        Err(LinkError::NoServer(_)) if config.server.is_none() => {
            start_server(&base, config)?;
            started = true;
            sign_in_link(&base, config)
        }
        link => link,
    };
    let link = link.map_err(|error| error.describe(&base))?;
    let is_opened = !args.print && open_browser(&link);
    let mut lines = Vec::new();
    if started {
        lines.push(format!("started the server on {base}; it keeps running in the background"));
    }
    lines.push(if is_opened { format!("opened {base}") } else { format!("open {link}") });
    if !is_opened {
        lines.push("the link is valid once, for 15 minutes".to_owned());
    }
    Answer::new(&json!({ "url": link, "started": started, "opened": is_opened }), lines.join("\n"))
}

/// Why there is no link.
enum LinkError {
    NoServer(String),
    Refused(String),
}

impl LinkError {
    fn describe(self, base: &str) -> Failure {
        match self {
            Self::NoServer(why) => Failure::new(
                Exit::Failure,
                "serve_failed",
                format!("cannot open the dashboard: {base} does not answer: {why}"),
            )
            .hint("check client.server, or start the server with baton serve"),
            Self::Refused(why) => {
                Failure::new(Exit::Failure, "serve_failed", format!("cannot open the dashboard: {base}: {why}"))
                    .hint("set server.relay_key (BATON_RELAY_KEY) to the key of that server, or choose another server.listen")
            }
        }
    }
}

/// Asks the server for a sign-in link.
fn sign_in_link(base: &str, config: &Config) -> Result<String, LinkError> {
    let key = match &config.relay_key {
        Some(key) => key.expose().to_owned(),
        None => DataDir::at(&config.data_dir).read_relay_key().unwrap_or_default(),
    };
    let sent = http_agent(REQUEST_TIMEOUT)
        .post(format!("{base}/ui/signin/link"))
        .header("x-relay-key", key)
        .send_empty();
    let mut answer = sent.map_err(|error| LinkError::NoServer(error.to_string()))?;
    let status = answer.status().as_u16();
    let text = answer.body_mut().read_to_string().unwrap_or_default();
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    match (status, body["path"].as_str()) {
        (200, Some(path)) => Ok(format!("{base}{path}")),
        _ => {
            Err(LinkError::Refused(body["message"].as_str().unwrap_or("it is not a Baton server").to_owned()))
        }
    }
}

/// Starts `baton serve` in the background and waits until it answers.
fn start_server(base: &str, config: &Config) -> Result<(), Failure> {
    let folder = DataDir::open(&config.data_dir)?;
    let log = folder.logs().join("server.log");
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Failure, "serve_failed", format!("cannot start the server: {error}"))
    };
    let output = open_log(&log).map_err(failed)?;
    let mut child = Command::new(std::env::current_exe().map_err(failed)?)
        .args(["serve", "--listen", &config.listen, "--data-dir"])
        .arg(&config.data_dir)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(failed)?)
        .stderr(output)
        // Keys pressed in this terminal do not stop it.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let deadline = Instant::now() + START_TIMEOUT;
    while Instant::now() < deadline {
        let health = http_agent(REQUEST_TIMEOUT).get(format!("{base}/healthz")).call();
        if health.is_ok_and(|answer| answer.status() == 200) {
            return Ok(());
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(ended(&log, &format!("cannot start the server: it ended ({status})")));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Err(ended(&log, "cannot start the server: it does not answer"))
}

fn ended(log: &Path, message: &str) -> Failure {
    Failure::new(Exit::Failure, "serve_failed", message).hint(format!("see {}", log.display()))
}

/// Opens the browser of the desktop. Returns false if no browser is available.
fn open_browser(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    opened.is_ok_and(|status| status.success())
}
