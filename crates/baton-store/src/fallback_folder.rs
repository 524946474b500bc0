//! A private folder below the system's temporary folder, for writes of the outbox that cannot be saved to the
//! data folder.
//!
//! The temporary folder is shared with other users, so everything below it is used only if it is a real folder that
//! belongs to this user alone.

use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use baton_core::Sha256Hash;

/// Length of the folder name that stands for the path of a data folder.
const NAME_LENGTH: usize = 16;
/// Mode bit of a folder in which users can replace only their own files.
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The fallback folder of one data folder: `<temporary folder>/baton-<user id>/<hash of the data folder's path>`.
#[derive(Debug, Clone)]
pub struct FallbackFolder {
    temporary: PathBuf,
    of_user: PathBuf,
    path: PathBuf,
}

impl FallbackFolder {
    /// Derives the folder from the path of a data folder.
    pub fn of(data_dir: &Path) -> Self {
        Self::below(std::env::temp_dir(), data_dir)
    }

    fn below(temporary: PathBuf, data_dir: &Path) -> Self {
        let absolute = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
        let mut name = Sha256Hash::of(absolute.as_os_str().as_encoded_bytes()).to_string();
        name.truncate(NAME_LENGTH);
        let of_user = temporary.join(format!("baton-{}", rustix::process::geteuid().as_raw()));
        let path = of_user.join(name);
        Self { temporary, of_user, path }
    }

    /// Returns the folder if it exists and is safe to read.
    pub fn existing(&self) -> Option<&Path> {
        std::fs::symlink_metadata(&self.path).ok()?;
        self.check().ok().map(|()| self.path.as_path())
    }

    /// Creates the folder if it is missing. Fails if it is not safe to use.
    pub fn create(&self) -> io::Result<&Path> {
        for folder in [&self.of_user, &self.path] {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        self.check().map(|()| self.path.as_path())
    }

    fn check(&self) -> io::Result<()> {
        let temporary = std::fs::metadata(&self.temporary)?;
        // Without the sticky bit, others could replace the folder after it was checked.
        if temporary.mode() & WRITABLE_BY_OTHERS != 0 && temporary.mode() & STICKY == 0 {
            return Err(unsafe_folder(&self.temporary, "others can replace files of this user in it"));
        }
        for folder in [&self.of_user, &self.path] {
            check_private(folder, &std::fs::symlink_metadata(folder)?)?;
        }
        Ok(())
    }
}

fn check_private(folder: &Path, metadata: &Metadata) -> io::Result<()> {
    if !metadata.is_dir() {
        return Err(unsafe_folder(folder, "it is not a folder"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(unsafe_folder(folder, "it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(unsafe_folder(folder, "others can access it"));
    }
    Ok(())
}

fn unsafe_folder(folder: &Path, why: &str) -> io::Error {
    io::Error::other(format!("cannot use {}: {why}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn folder_is_private_and_differs_by_data_folder() {
        let home = tempfile::tempdir().unwrap();
        let folder = FallbackFolder::below(home.path().to_owned(), Path::new("/data"));
        assert_eq!(folder.existing(), None);
        let path = folder.create().unwrap().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(folder.existing(), Some(path.as_path()));
        let other = FallbackFolder::below(home.path().to_owned(), Path::new("/data2"));
        assert_ne!(other.create().unwrap(), path);
    }

    #[test]
    fn rejects_a_folder_that_others_can_read_or_replace() {
        let home = tempfile::tempdir().unwrap();
        let folder = FallbackFolder::below(home.path().to_owned(), Path::new("/data"));
        let path = folder.create().unwrap().to_owned();
        for shared in [&path, &folder.of_user] {
            set_mode(shared, 0o750);
            assert!(folder.create().is_err() && folder.existing().is_none());
            set_mode(shared, 0o700);
        }
        set_mode(home.path(), 0o777);
        assert!(folder.create().is_err() && folder.existing().is_none());
        set_mode(home.path(), 0o1777);
        assert!(folder.create().is_ok() && folder.existing().is_some());
    }

    #[test]
    fn rejects_a_folder_that_is_a_link() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let folder = FallbackFolder::below(home.path().to_owned(), Path::new("/data"));
        symlink(elsewhere.path(), &folder.of_user).unwrap();
        assert!(folder.create().is_err() && folder.existing().is_none());
    }
}
