//! Reports that could not be stored: kept as files, without secrets, and stored as soon as that can be done.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baton_core::observation::make_private;
use baton_store::{make_folder, write_durably};
use serde_json::Value;

use crate::data_dir::DataDir;

/// How many reports one process stores for others.
const MAX_TAKEN: usize = 100;
/// A report that somebody began to store this long ago was left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// The folder of reports that could not be stored.
#[derive(Debug)]
pub(crate) struct HookSpill {
    folder: PathBuf,
}

impl HookSpill {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { folder: DataDir::at(data_dir).spill().join("hooks") }
    }

    /// Keeps a report, durably.
    pub(crate) fn put(&self, mut report: Value) -> std::io::Result<()> {
        make_private(&mut report);
        make_folder(&self.folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{:020}-{}.json", now.as_nanos(), std::process::id());
        write_durably(&self.folder.join(name), report.to_string().as_bytes())
    }

    /// Tells how many reports wait.
    pub(crate) fn len(&self) -> usize {
        std::fs::read_dir(&self.folder).map_or(0, Iterator::count)
    }

    /// Stores what waits, oldest first, through `store`, which is given a key so that nothing is stored twice. Stops at the
    /// first that cannot be stored.
    pub(crate) fn take_in(&self, mut store: impl FnMut(Value, &str) -> bool) -> usize {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return 0 };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        let mut taken = 0;
        for name in names.into_iter().take(MAX_TAKEN) {
            let Some(stem) = name.strip_suffix(".json").or_else(|| self.left_behind(&name)) else { continue };
            let (path, ours) = (self.folder.join(&name), self.folder.join(format!("{stem}.taking")));
            // Whoever renames it first has it.
            if path != ours && std::fs::rename(&path, &ours).is_err() {
                continue;
            }
            let report = std::fs::read(&ours).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let stored = report.is_none_or(|report| store(report, &format!("hook-{stem}")));
            if !stored {
                // It waits for somebody else.
                let _ = std::fs::rename(&ours, self.folder.join(format!("{stem}.json")));
                break;
            }
            let _ = std::fs::remove_file(&ours);
            taken += 1;
        }
        taken
    }

    /// The stem of a report that somebody began to store and never finished.
    fn left_behind<'a>(&self, name: &'a str) -> Option<&'a str> {
        let stem = name.strip_suffix(".taking")?;
        let begun = std::fs::metadata(self.folder.join(name)).and_then(|file| file.modified()).ok()?;
        begun.elapsed().is_ok_and(|age| age > LEFT_BEHIND).then_some(stem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_are_stored_once_in_order_and_wait_while_they_cannot_be() {
        let home = tempfile::tempdir().unwrap();
        let spill = HookSpill::of(home.path());
        assert_eq!(spill.take_in(|_, _| panic!("there is nothing")), 0);
        for number in 0..3 {
            spill.put(json!({ "number": number, "prompt": "a <private>b</private>" })).unwrap();
        }
        assert_eq!(spill.len(), 3);
        assert_eq!(spill.take_in(|_, _| false), 0);
        let mut seen = Vec::new();
        let taken = spill.take_in(|report, key| {
            assert!(key.starts_with("hook-"), "{key}");
            assert_eq!(report["prompt"], "a [private]");
            seen.push(report["number"].clone());
            true
        });
        assert_eq!((taken, spill.len()), (3, 0));
        assert_eq!(seen, [0, 1, 2]);
    }
}
