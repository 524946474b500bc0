//! Queue notifications: a file beside the database that every process writes to after adding queue items.
//!
//! Workers watch the file; its content does not matter. Failing to write or watch it only causes a delay, because
//! workers also poll the queue.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::watch::{MIN_NOTIFY_INTERVAL, STOP_CHECK_INTERVAL};

pub(super) fn notification_file(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-bell");
    name.into()
}

/// Notifies watchers.
pub(super) fn notify(path: &Path) {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(b"\n")) {
        tracing::debug!(%error, "cannot write the queue notification file");
    }
}

/// Calls `changed` when the notification file is written, until `stop` is set.
pub(crate) fn watch(database: &Path, stop: &AtomicBool, changed: &dyn Fn()) {
    let path = &notification_file(database);
    #[cfg(target_os = "linux")]
    match linux::FolderWatch::new(path) {
        Ok(watched) => {
            // Notifications before this point were missed.
            changed();
            while !stop.load(Ordering::Relaxed) {
                match watched.wait(STOP_CHECK_INTERVAL) {
                    Ok(true) => {
                        changed();
                        std::thread::sleep(MIN_NOTIFY_INTERVAL);
                    }
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(%error, "watching the queue notification file failed; polling it instead");
                        return poll_file(path, stop, changed);
                    }
                }
            }
            return;
        }
        Err(error) => tracing::warn!(%error, "cannot watch the queue notification file; polling it instead"),
    }
    poll_file(path, stop, changed);
}

/// Polls the modification time of the notification file, for systems without inotify.
fn poll_file(path: &Path, stop: &AtomicBool, changed: &dyn Fn()) {
    const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);
    let state = || std::fs::metadata(path).and_then(|file| file.modified()).ok();
    let mut seen = state();
    changed();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(POLL_INTERVAL);
        let now = state();
        if now != seen {
            seen = now;
            changed();
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify;

    use crate::files::folder_of;

    /// An inotify watch on the folder of the notification file.
    pub(super) struct FolderWatch {
        events: OwnedFd,
        name: Vec<u8>,
    }

    impl FolderWatch {
        pub(super) fn new(path: &Path) -> io::Result<Self> {
            let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
            let flags = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE;
            inotify::add_watch(&events, folder_of(path), flags)?;
            let name = path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
            Ok(Self { events, name })
        }

        /// Waits for a notification. Returns false on timeout.
        pub(super) fn wait(&self, limit: Duration) -> io::Result<bool> {
            let mut ready = [PollFd::new(&self.events, PollFlags::IN)];
            let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
            if poll(&mut ready, Some(&limit))? == 0 {
                return Ok(false);
            }
            let mut buffer = [MaybeUninit::uninit(); 8_192];
            let mut reader = inotify::Reader::new(&self.events, &mut buffer);
            let mut written = false;
            loop {
                match reader.next() {
                    Ok(event) => {
                        written |= event.file_name().is_none_or(|name| name.to_bytes() == self.name);
                    }
                    Err(rustix::io::Errno::WOULDBLOCK) => return Ok(written),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}
