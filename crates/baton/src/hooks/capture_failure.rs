//! Record of hook reports that could not be saved to the data folder: time of the first and the last one,
//! number and reason.
//!
//! The record is a file in the data folder or, if that cannot be written, in the fallback folder. On a full
//! disk, often only an empty file can be created; its modification time is then the time of the first lost
//! report.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use baton_app::{Clock, SystemClock};
use baton_core::{Timestamp, counted};
use baton_store::FallbackFolder;
use serde::{Deserialize, Serialize};

use crate::data_dir::{DataDir, open_log};

const FILE_NAME: &str = "capture-failures.log";
/// Maximum size of the record. Failures are not added to a larger one.
const MAX_BYTES: u64 = 1024 * 1024;

/// Outcome of a report that could not be saved to the data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The report was saved to the fallback folder.
    KeptElsewhere,
    /// The report was lost.
    Lost,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at: Timestamp,
    event: String,
    outcome: Outcome,
    message: String,
}

/// Reports that could not be saved to the data folder and were not reported to an agent yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CaptureFailure {
    /// Time of the first failure.
    pub(crate) since: Timestamp,
    /// Time of the last failure.
    pub(crate) last_at: Timestamp,
    /// Number of recorded lost reports. More reports were lost if their loss could not be recorded.
    pub(crate) lost: usize,
    /// Number of reports that were saved to the fallback folder.
    pub(crate) kept_elsewhere: usize,
    /// Reason of the last failure.
    pub(crate) message: String,
}

impl CaptureFailure {
    /// Describes the failure in one sentence.
    pub(crate) fn describe(&self) -> String {
        let Self { since, last_at, lost, kept_elsewhere, message } = self;
        if *lost == 0 {
            let kept = counted(*kept_elsewhere as u64, "hook report");
            return format!("saved outside the data folder from {since} to {last_at}: {kept}; {message}");
        }
        format!(
            "hook reports could not be kept in the data folder from {since} to {last_at}: {lost} lost, \
             {kept_elsewhere} kept in the temporary folder ({message})"
        )
    }
}

/// The record of one data folder.
#[derive(Debug)]
pub(crate) struct CaptureFailures {
    in_data_folder: PathBuf,
    fallback: FallbackFolder,
}

impl CaptureFailures {
    pub(crate) fn of(data_dir: &Path) -> Self {
        let in_data_folder = DataDir::at(data_dir).logs().join(FILE_NAME);
        Self { in_data_folder, fallback: FallbackFolder::of(data_dir) }
    }

    /// Records that a report could not be saved, in the data folder or in the fallback folder.
    pub(crate) fn record(&self, event: &str, outcome: Outcome, message: &str) {
        let line =
            Line { at: SystemClock.now(), event: event.to_owned(), outcome, message: message.to_owned() };
        if append(&self.in_data_folder, &line).is_ok() {
            return;
        }
        let in_fallback = self.fallback.create().map(|folder| folder.join(FILE_NAME));
        if in_fallback.as_ref().is_ok_and(|file| append(file, &line).is_ok()) {
            return;
        }
        // If not even an empty file can be created, the loss cannot be recorded.
        let _ = open_log(&self.in_data_folder).or_else(|_| open_log(&in_fallback?));
    }

    /// Reads the failures that were recorded since the record was last cleared.
    pub(crate) fn read(&self) -> Option<CaptureFailure> {
        let mut lines: Vec<Line> = self.files().iter().flat_map(|file| read(file)).collect();
        lines.sort_by_key(|line| line.at);
        let (first, last) = (lines.first()?, lines.last()?);
        let count = |outcome| lines.iter().filter(|line| line.outcome == outcome).count();
        Some(CaptureFailure {
            since: first.at,
            last_at: last.at,
            lost: count(Outcome::Lost),
            kept_elsewhere: count(Outcome::KeptElsewhere),
            message: last.message.clone(),
        })
    }

    /// Clears the record after it was reported to an agent.
    pub(crate) fn clear(&self) {
        for file in self.files() {
            // A record that cannot be removed is reported again.
            let _ = std::fs::remove_file(file);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let fallback = self.fallback.existing().map(|folder| folder.join(FILE_NAME));
        [Some(self.in_data_folder.clone()), fallback].into_iter().flatten().collect()
    }
}

fn append(path: &Path, line: &Line) -> io::Result<()> {
    let marker = read_marker(path);
    let is_new = !path.exists();
    let mut file = open_log(path)?;
    if file.metadata()?.len() > MAX_BYTES {
        return Ok(());
    }
    let mut text = String::new();
    for line in marker.iter().chain([line]) {
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
    }
    file.write_all(text.as_bytes()).inspect_err(|_| {
        // An empty file would count as a lost report.
        if is_new {
            let _ = std::fs::remove_file(path);
        }
    })
}

/// Reads a file that could be created but not written. Its modification time is the time of the first lost
/// report.
fn read_marker(path: &Path) -> Option<Line> {
    let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.len() == 0)?;
    let since = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
    let at = Timestamp::from_millis(i64::try_from(since).ok()?);
    let message = "the disk is full".to_owned();
    Some(Line { at, event: "hook".to_owned(), outcome: Outcome::Lost, message })
}

fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let written = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    read_marker(path).into_iter().chain(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_until_they_are_cleared() {
        let home = tempfile::tempdir().unwrap();
        let failures = CaptureFailures::of(home.path());
        assert_eq!(failures.read(), None);
        failures.record("stop", Outcome::Lost, "first");
        failures.record("stop", Outcome::KeptElsewhere, "second");
        let read = failures.read().unwrap();
        assert_eq!((read.lost, read.kept_elsewhere, read.message.as_str()), (1, 1, "second"));
        assert!(read.since <= read.last_at);
        failures.clear();
        assert_eq!(failures.read(), None);
    }

    #[test]
    fn empty_record_has_the_time_of_the_first_failure() {
        let home = tempfile::tempdir().unwrap();
        let failures = CaptureFailures::of(home.path());
        std::fs::create_dir(home.path().join("logs")).unwrap();
        std::fs::write(home.path().join("logs").join(FILE_NAME), "").unwrap();
        let read = failures.read().unwrap();
        assert_eq!((read.lost, read.message.as_str()), (1, "the disk is full"));
        failures.record("stop", Outcome::Lost, "later");
        let later = failures.read().unwrap();
        assert_eq!((later.since, later.lost, later.message.as_str()), (read.since, 2, "later"));
    }
}
