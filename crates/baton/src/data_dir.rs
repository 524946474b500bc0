//! The data folder: the paths in it, and creating it with the right modes.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use baton_core::Sha256Hash;
use baton_files::{DurableFile, folder_of, make_folder};

use crate::exit::Exit;
use crate::output::Failure;

/// Opens a log file (mode 0600) for appending and creates it and its folder if they are missing.
pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    make_folder(folder_of(path))?;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Data folder of Baton.
#[derive(Debug, Clone)]
pub(crate) struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Refers to the folder, which need not exist.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Refers to the folder and creates it (mode 0700) if it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(
                Exit::StoreUnavailable,
                "store_unavailable",
                format!("cannot create the data folder {}: {error}", path.display()),
            )
            .hint("make it writable for you, or point BATON_DATA_DIR at a folder that is")
        };
        make_folder(path).map_err(failed)?;
        Ok(Self { path: path.to_owned() })
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("baton.db")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.path.join("blobs")
    }

    pub(crate) fn spill(&self) -> PathBuf {
        self.path.join("spill")
    }

    /// Times of the last captured events.
    pub(crate) fn captured(&self) -> PathBuf {
        self.path.join("captured")
    }

    /// Records of the files that `baton setup` changed.
    pub(crate) fn setup(&self) -> PathBuf {
        self.path.join("setup")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Returns the path of the file that exists while capture is paused.
    pub(crate) fn capture_pause(&self) -> PathBuf {
        self.path.join("capture-paused")
    }

    pub(crate) fn worker_pid(&self) -> PathBuf {
        self.path.join("worker.pid")
    }

    pub(crate) fn worker_socket(&self) -> PathBuf {
        self.path.join("worker.sock")
    }

    pub(crate) fn worker_lock(&self) -> PathBuf {
        self.path.join("worker.lock")
    }

    /// File whose modification time is the last start of a worker by a hook.
    pub(crate) fn worker_start(&self) -> PathBuf {
        self.path.join("worker.start")
    }

    /// Locked by each `baton serve` that runs a worker of its own.
    pub(crate) fn server_lock(&self) -> PathBuf {
        self.path.join("server.lock")
    }

    pub(crate) fn relay_key(&self) -> PathBuf {
        self.path.join("relay.key")
    }

    /// Reads the relay key, if there is one.
    pub(crate) fn read_relay_key(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.relay_key()).ok()?;
        Some(text.trim().to_owned()).filter(|key| !key.is_empty())
    }

    /// Reads the relay key, or creates one. The second value is true if the key is new.
    pub(crate) fn relay_key_or_new(&self) -> Result<(String, bool), Failure> {
        if let Some(key) = self.stored_relay_key()? {
            return Ok((key, false));
        }
        let path = self.relay_key();
        match create_relay_key(&path) {
            Ok(key) => Ok((key, true)),
            // Another process created a key first; that key is used.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.relay_key_or_new(),
            Err(error) => {
                Err(Failure::internal(format!("cannot create the relay key {}: {error}", path.display())))
            }
        }
    }

    /// Reads the relay key; `None` if there is no file.
    pub(crate) fn stored_relay_key(&self) -> Result<Option<String>, Failure> {
        let path = self.relay_key();
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let problem = match std::fs::read_to_string(&path).as_deref().map(str::trim) {
            Ok("") => "the file is empty".to_owned(),
            Ok(key) if !key.contains(char::is_control) => return Ok(Some(key.to_owned())),
            Ok(_) => "the file is not one line of text".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("cannot use the relay key {}: {problem}", path.display());
        Err(Failure::new(Exit::Usage, "invalid_config", message)
            .hint("correct the file, or delete it to have a new key created"))
    }
}

fn create_relay_key(path: &Path) -> io::Result<String> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let key = Sha256Hash::of(&random).to_string();
    let mut file = DurableFile::create(path)?;
    writeln!(file, "{key}")?;
    file.finish_new()?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn relay_key_is_created_once_and_private_to_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let folder = DataDir::at(home.path());
        let (key, is_new) = folder.relay_key_or_new().unwrap();
        assert!(is_new && key.len() == 64);
        assert_eq!(folder.relay_key_or_new().unwrap(), (key.clone(), false));
        assert_eq!(folder.read_relay_key(), Some(key));
        let mode = std::fs::metadata(folder.relay_key()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "nothing temporary is left");
    }

    #[test]
    fn relay_key_file_without_a_key_is_reported_and_kept() {
        let home = tempfile::tempdir().unwrap();
        let folder = DataDir::at(home.path());
        for (content, problem) in [
            (b"".as_slice(), "the file is empty"),
            (b" \n", "the file is empty"),
            (b"\xff\xfe", "stream did not contain valid UTF-8"),
            (b"first\nsecond\n", "the file is not one line of text"),
        ] {
            std::fs::write(folder.relay_key(), content).unwrap();
            let failure = folder.relay_key_or_new().unwrap_err();
            let path = folder.relay_key().display().to_string();
            assert_eq!(failure.message, format!("cannot use the relay key {path}: {problem}"));
            assert!(failure.hint.unwrap().contains("delete it to have a new key created"));
            assert_eq!(std::fs::read(folder.relay_key()).unwrap(), content);
        }
    }
}
