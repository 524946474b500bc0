//! Atomic, durable file writes: after a crash a file has its old or its new content, never a part of it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Prefix of temporary files. Those of killed processes are removed by the owner of the folder.
pub const TEMPORARY_PREFIX: &str = ".tmp-";

/// A file that is written incrementally and gets its name when it is complete: temporary file, fsync, rename, fsync of
/// the folder. Dropping an unfinished file removes it.
#[derive(Debug)]
pub struct DurableFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl DurableFile {
    /// Creates the temporary file with mode 0600.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_with_mode(path, 0o600)
    }

    /// Creates the temporary file with `mode`, without the bits of the umask.
    pub fn create_with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        let open = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
        let file = Builder::new().prefix(TEMPORARY_PREFIX).make_in(folder_of(path), open)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Creates a large file whose temporary name, `<name>.partial`, does not depend on the process, so that the next
    /// attempt overwrites the file of a killed one. Fails with [`ErrorKind::WouldBlock`] while another process writes it.
    pub fn create_exclusively(path: &Path) -> io::Result<Self> {
        let mut name = path.file_name().ok_or_else(|| io::Error::other("the file has no name"))?.to_owned();
        name.push(".partial");
        let open = |path: &Path| {
            let file = open_or_create(path)?;
            file.try_lock()?;
            // Another process may have renamed the file between opening and locking it.
            let (locked, named) = (file.metadata()?, std::fs::metadata(path));
            if !named.is_ok_and(|named| named.ino() == locked.ino() && named.dev() == locked.dev()) {
                return Err(ErrorKind::WouldBlock.into());
            }
            file.set_len(0)?;
            Ok(file)
        };
        let file = Builder::new().prefix(&name).rand_bytes(0).make_in(folder_of(path), open)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Returns the open temporary file.
    pub fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Returns the path of the temporary file.
    pub fn temporary(&self) -> &Path {
        self.file.path()
    }

    /// Syncs to disk what was written so far.
    pub fn sync(&self) -> io::Result<()> {
        self.as_file().sync_all()
    }

    /// Gives the file its name without syncing. For files that are synced one by one and renamed together; the caller
    /// syncs their folder afterwards.
    pub fn rename(self) -> io::Result<()> {
        self.file.persist(&self.path)?;
        Ok(())
    }

    /// Syncs the file and gives it its name; an existing file is replaced.
    pub fn finish(self) -> io::Result<()> {
        self.sync()?;
        self.file.persist(&self.path)?;
        sync_folder(folder_of(&self.path))
    }

    /// Syncs the file and gives it its name. Fails with [`ErrorKind::AlreadyExists`] if a file has the name.
    pub fn finish_new(self) -> io::Result<()> {
        self.sync()?;
        self.file.persist_noclobber(&self.path)?;
        sync_folder(folder_of(&self.path))
    }
}

impl Write for DurableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Not through `NamedTempFile`, which adds its path to errors.
        self.as_file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.as_file().flush()
    }
}

/// Writes a file (0600) and returns after its content and name are synced to disk.
pub fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = DurableFile::create(path)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Opens a file for reading and writing, and creates it (0600) if it is missing. Its content is kept.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)
}

/// Creates a folder (0700) and its missing parents, and returns after the new names are synced to disk.
///
/// # Errors
///
/// Fails if a folder cannot be created or synced, or if a file has its name.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = folder_of(path);
    // The working folder is its own parent after it was removed.
    if parent != path {
        make_folder(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        // Another process created it first and may not have synced its name yet.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(ErrorKind::NotADirectory.into()),
        created => created?,
    }
    match sync_folder(parent) {
        // A folder can be writable without being readable, and then it cannot be synced.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Syncs a folder, so that the names of its files are on disk.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Returns the folder of a file. A relative path without a folder is in the current folder.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_appears_when_it_is_finished() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let mut file = DurableFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!((path.exists(), mode(file.temporary())), (false, 0o600));
        file.finish().unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), 0o600));
        write_durably(&path, b"newer").unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap(), names(home.path())),
            (b"newer".to_vec(), vec!["file".into()])
        );
    }

    #[test]
    fn an_unfinished_file_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let file = DurableFile::create(&home.path().join("file")).unwrap();
        assert!(names(home.path())[0].starts_with(TEMPORARY_PREFIX));
        drop(file);
        assert_eq!(names(home.path()), [""; 0]);
    }

    #[test]
    fn a_new_file_does_not_replace_an_existing_one() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        DurableFile::create_with_mode(&path, 0o400).unwrap().finish_new().unwrap();
        assert_eq!(mode(&path), 0o400);
        let error = DurableFile::create(&path).unwrap().finish_new().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!((mode(&path), names(home.path())), (0o400, vec!["file".into()]));
    }

    #[test]
    fn one_process_writes_a_partial_file_and_the_next_one_starts_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let partial = home.path().join("file.partial");
        std::fs::write(&partial, "left by a killed process").unwrap();
        let mut file = DurableFile::create_exclusively(&path).unwrap();
        assert_eq!(file.temporary(), partial);
        let error = DurableFile::create_exclusively(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap(), names(home.path())),
            (b"new".to_vec(), vec!["file".into()])
        );
    }

    #[test]
    fn errors_of_the_system_are_passed_on_unchanged() {
        let error = DurableFile::create(Path::new("/nonexistent/file")).unwrap_err();
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::NotFound, Some(2)));
    }

    #[test]
    fn folders_are_made_with_their_parents_and_private() {
        let home = tempfile::tempdir().unwrap();
        let (outer, inner) = (home.path().join("a"), home.path().join("a/b"));
        make_folder(&inner).unwrap();
        make_folder(&inner).unwrap();
        assert_eq!((mode(&outer), mode(&inner)), (0o700, 0o700));
        write_durably(&inner.join("file"), b"").unwrap();
        let error = make_folder(&inner.join("file")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
    }
}
