//! Logging to standard error or a file, never to standard output.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Mutex;

use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, LogFormat};
use crate::exit::Exit;
use crate::output::Failure;

/// Starts logging as configured.
pub(crate) fn start(config: &Config) -> Result<(), Failure> {
    let filter = filter(&config.log_level).map_err(|error| {
        Failure::new(Exit::Usage, "invalid_config", format!("cannot use log.level: {error}"))
            .hint("use error, warn, info, debug or trace, or a filter like `warn,baton_store=debug`")
    })?;
    let writer = match &config.log_file {
        None => BoxMakeWriter::new(std::io::stderr),
        Some(path) => {
            let file =
                OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(|error| {
                    Failure::new(
                        Exit::Usage,
                        "invalid_config",
                        format!("cannot open log.file {}: {error}", path.display()),
                    )
                    .hint("name a writable file, or unset log.file to log to standard error")
                })?;
            BoxMakeWriter::new(Mutex::new(file))
        }
    };
    let lines = layer().with_writer(writer).with_ansi(false);
    let started = match config.log_format {
        LogFormat::Text => registry().with(lines.with_filter(filter)).try_init(),
        LogFormat::Json => registry().with(lines.json().with_filter(filter)).try_init(),
    };
    started.map_err(|error| Failure::internal(format!("cannot start logging: {error}")))
}

/// Parses a log filter. The MCP library (`rmcp`) logs addresses, arguments and whole responses, so only its
/// errors are logged unless the filter names it.
fn filter(level: &str) -> Result<Targets, ParseError> {
    let wanted: Targets = level.parse()?;
    let is_named = wanted.iter().any(|(target, _)| target.starts_with("rmcp"));
    Ok(if is_named { wanted } else { wanted.with_target("rmcp", LevelFilter::ERROR) })
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn rmcp_logs_only_errors_unless_the_filter_names_it() {
        let quiet = filter("debug").unwrap();
        assert!(quiet.would_enable("baton_mcp::server", &Level::DEBUG));
        assert!(!quiet.would_enable("rmcp::service", &Level::WARN));
        assert!(quiet.would_enable("rmcp::service", &Level::ERROR));
        assert!(filter("warn,rmcp=debug").unwrap().would_enable("rmcp::service", &Level::DEBUG));
    }
}
