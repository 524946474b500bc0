//! The bell: a file beside the database that is written to after something went into the queue, by whatever process.
//!
//! Whoever waits for work watches it. What is in it does not matter, and a bell that cannot be rung or heard costs only
//! time: workers look after the queue now and then anyway.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::watch::{NOTICE, REST};

/// The bell of a database.
pub(super) fn bell_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-bell");
    name.into()
}

/// Rings a bell.
pub(super) fn ring(bell: &Path) {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(bell);
    if let Err(error) = file.and_then(|mut file| file.write_all(b"\n")) {
        tracing::debug!(%error, "the bell could not be rung");
    }
}

/// Calls `changed` when the bell is rung, until `over`.
pub(crate) fn watch(database: &Path, over: &AtomicBool, changed: &dyn Fn()) {
    let path = &bell_of(database);
    #[cfg(target_os = "linux")]
    match linux::Watched::new(path) {
        Ok(watched) => {
            // What was rung before was not heard.
            changed();
            while !over.load(Ordering::Relaxed) {
                match watched.wait(NOTICE) {
                    Ok(true) => {
                        changed();
                        std::thread::sleep(REST);
                    }
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(%error, "the bell can no longer be heard; looking at it instead");
                        return look(path, over, changed);
                    }
                }
            }
            return;
        }
        Err(error) => tracing::warn!(%error, "the bell cannot be heard; looking at it instead"),
    }
    look(path, over, changed);
}

/// Looks at the bell again and again, where the system does not tell of changes.
fn look(path: &Path, over: &AtomicBool, changed: &dyn Fn()) {
    const EVERY: std::time::Duration = std::time::Duration::from_millis(50);
    let state = || std::fs::metadata(path).and_then(|bell| bell.modified()).ok();
    let mut seen = state();
    changed();
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(EVERY);
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

    /// The folder of a bell; what happens to the files in it is told.
    pub(super) struct Watched {
        events: OwnedFd,
        name: Vec<u8>,
    }

    impl Watched {
        pub(super) fn new(path: &Path) -> io::Result<Self> {
            let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let flags = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE;
            inotify::add_watch(&events, folder.unwrap_or_else(|| Path::new(".")), flags)?;
            let name = path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
            Ok(Self { events, name })
        }

        /// Waits for the bell; false when it was not rung.
        pub(super) fn wait(&self, patience: Duration) -> io::Result<bool> {
            let mut ready = [PollFd::new(&self.events, PollFlags::IN)];
            let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
            if poll(&mut ready, Some(&patience))? == 0 {
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
