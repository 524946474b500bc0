//! Error log of hooks, `logs/hook.log`. A hook must not fail its agent, so it writes errors to this file.

use std::io::Write;
use std::path::{Path, PathBuf};

use baton_app::{Clock, SystemClock};
use baton_observation::without_private;
use serde::{Deserialize, Serialize};

use crate::data_dir::{DataDir, open_log};

/// Size above which the file is rotated.
const MAX_BYTES: u64 = 1024 * 1024;
/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 500;
/// Maximum length of an event name, in characters; the name comes from the command line and may be anything.
const MAX_EVENT: usize = 64;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HookError {
    /// Time of the error.
    pub(crate) at: String,
    /// Event of the hook.
    pub(crate) event: String,
    /// Error message.
    pub(crate) message: String,
}

/// Error log of hooks.
#[derive(Debug)]
pub(crate) struct HookLog {
    path: PathBuf,
}

impl HookLog {
    /// Returns the log of a data folder.
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { path: DataDir::at(data_dir).logs().join("hook.log") }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an error. A failure to write is ignored, because it cannot be reported anywhere.
    pub(crate) fn record(&self, event: &str, message: &str) {
        let fit = |text: &str, most: usize| -> String {
            baton_secrets::redact(&without_private(text)).chars().take(most).collect()
        };
        let (event, message) = (fit(event, MAX_EVENT), fit(message, MAX_MESSAGE));
        let _ = self.append(&HookError { at: SystemClock.now().to_string(), event, message });
    }

    fn append(&self, error: &HookError) -> std::io::Result<()> {
        if std::fs::metadata(&self.path).is_ok_and(|log| log.len() > MAX_BYTES) {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        let mut line = serde_json::to_string(error)?;
        line.push('\n');
        open_log(&self.path)?.write_all(line.as_bytes())
    }

    /// Reads the latest errors, newest last.
    pub(crate) fn latest(&self, count: usize) -> Vec<HookError> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let mut found: Vec<HookError> =
            text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).take(count).collect();
        found.reverse();
        found
    }
}
