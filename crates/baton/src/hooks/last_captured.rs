//! Times of the last event that was captured from each client: the modification times of files in `captured/` of the
//! data folder. A hook sets one without waiting for the disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use baton_core::Timestamp;

use crate::data_dir::DataDir;

/// The times of the last captured events, in a data folder.
pub(crate) struct LastCaptured {
    folder: PathBuf,
}

impl LastCaptured {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { folder: DataDir::at(data_dir).captured() }
    }

    /// Records that an event of a client was captured now.
    pub(crate) fn record(&self, client: &str) {
        let is_plain =
            client.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if !is_plain || client.starts_with('.') || client.is_empty() {
            return;
        }
        let path = self.folder.join(client);
        let set = || File::options().create(true).append(true).open(&path)?.set_modified(SystemTime::now());
        // The time is only informative, so a failure is ignored.
        let _ = set().or_else(|_| baton_files::make_folder(&self.folder).and_then(|()| set()));
    }

    /// Returns the time of the last event of each client.
    pub(crate) fn read(&self) -> BTreeMap<String, Timestamp> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let time = |entry: &std::fs::DirEntry| {
            let since =
                entry.metadata().ok()?.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
        };
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, time(&entry)?))).collect()
    }
}
