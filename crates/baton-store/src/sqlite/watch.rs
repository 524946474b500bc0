//! Queue notifications: a file beside the database that every process writes to after adding queue items.
//!
//! Workers watch the file; its content does not matter. Failing to write or watch it only causes a delay, because
//! workers also poll the queue.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use baton_files::open_or_create;

use crate::engine::{MIN_NOTIFY_INTERVAL, STOP_CHECK_INTERVAL};

pub(super) fn notification_file(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-bell");
    name.into()
}

/// Notifies watchers.
pub(super) fn notify(path: &Path) {
    if let Err(error) = open_or_create(path).and_then(|mut file| file.write_all(b"\n")) {
        tracing::debug!(%error, "cannot write the queue notification file");
    }
}

/// Calls `changed` when the notification file is written, until `stop` is set.
pub(crate) fn watch(database: &Path, stop: &AtomicBool, changed: &dyn Fn()) {
    let path = &notification_file(database);
    #[cfg(target_os = "linux")]
    match linux::FileWatch::new(path) {
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
    use rustix::fs::inotify::{self, ReadFlags, WatchFlags};

    /// Events after which the watch reports no more writes.
    const GONE: ReadFlags = ReadFlags::DELETE_SELF
        .union(ReadFlags::MOVE_SELF)
        .union(ReadFlags::IGNORED)
        .union(ReadFlags::UNMOUNT);

    /// An inotify watch on the notification file. A watch on its folder would wake the thread at every commit.
    pub(super) struct FileWatch(OwnedFd);

    impl FileWatch {
        pub(super) fn new(path: &Path) -> io::Result<Self> {
            baton_files::open_or_create(path)?;
            let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
            let flags = WatchFlags::MODIFY | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            inotify::add_watch(&events, path, flags)?;
            Ok(Self(events))
        }

        /// Waits for a notification. Returns false on timeout, and an error if the file was removed or replaced.
        pub(super) fn wait(&self, limit: Duration) -> io::Result<bool> {
            let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
            let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
            if poll(&mut ready, Some(&limit))? == 0 {
                return Ok(false);
            }
            let mut buffer = [MaybeUninit::uninit(); 8_192];
            let mut reader = inotify::Reader::new(&self.0, &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) if event.events().intersects(GONE) => {
                        return Err(io::Error::other("the file was removed or replaced"));
                    }
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(rustix::io::Errno::WOULDBLOCK) => return Ok(true),
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}
