//! `baton pause`: stops hooks from recording on this machine, and reports whether they record.

use std::fs;
use std::io::ErrorKind;

use baton_app::{Clock, SystemClock};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::{Answer, Failure};

pub(crate) const EXAMPLES: &str = "\
While capture is paused, hooks record nothing and add nothing to chats. To stop them in one chat,
set BATON_CAPTURE=off; to stop them in one project, set capture.enabled = \"off\" in .baton.toml.

Examples:
  $ baton pause
  $ baton pause --end";

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// End the pause
    #[arg(long)]
    end: bool,
}

/// Whether hooks record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(crate) enum CaptureState {
    /// Hooks record.
    On,
    /// `capture.enabled` is off.
    Off,
    /// `baton pause` was called.
    Paused {
        /// Time of the call.
        since: String,
    },
}

impl CaptureState {
    pub(crate) fn of(config: &Config) -> Self {
        match fs::read_to_string(DataDir::at(&config.data_dir).capture_pause()) {
            Ok(since) => Self::Paused { since: since.trim().to_owned() },
            Err(_) if config.is_capture_enabled => Self::On,
            Err(_) => Self::Off,
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::On => "on".to_owned(),
            Self::Off => "off (capture.enabled)".to_owned(),
            Self::Paused { since } => format!("paused since {since}; baton pause --end ends the pause"),
        }
    }
}

pub(crate) fn run(args: &PauseArgs, config: &Config) -> Result<Answer, Failure> {
    let file = DataDir::open(&config.data_dir)?.capture_pause();
    let is_paused = matches!(CaptureState::of(config), CaptureState::Paused { .. });
    let changed = match (args.end, is_paused) {
        (false, false) => fs::write(&file, format!("{}\n", SystemClock.now())),
        (true, true) => fs::remove_file(&file).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }),
        _ => Ok(()),
    };
    changed.map_err(|error| {
        let message = format!("cannot change {}: {error}", file.display());
        Failure::new(Exit::Failure, "write_failed", message).hint("check the permissions of the data folder")
    })?;
    let state = CaptureState::of(config);
    let text = format!("capture is {}", state.describe());
    Answer::new(&json!({ "capture": state }), text)
}
