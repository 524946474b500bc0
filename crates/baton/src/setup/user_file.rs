//! Reading and replacing files that belong to the user.
//!
//! A file is read only if it can be replaced safely. Replacements are staged for all files first and then renamed, so
//! that a failure leaves every file as it was.

use std::fs::{File, Metadata, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use baton_files::{DurableFile, sync_folder};

use crate::exit::Exit;
use crate::output::Failure;

/// Maximum size of a configuration file. Claude Code keeps histories in its file, which can be several megabytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The text of a file and its mode; `None` if the file does not exist.
pub(super) type Current = Option<(String, u32)>;

/// Follows a symbolic link, so that the file behind it is replaced and the link is kept.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, Failure> {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => path.canonicalize().map_err(|error| {
            failure(path, &format!("its symbolic link cannot be followed: {error}"))
                .hint("remove the link or create its target, then run setup again")
        }),
        _ => Ok(path.to_owned()),
    }
}

/// Reads a file and checks that it can be replaced. The path is resolved already.
pub(super) fn read(path: &Path) -> Result<Current, Failure> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure(path, &error.to_string())),
    };
    require_replaceable(path, &metadata)?;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| failure(path, &error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        failure(path, "the file is not UTF-8 text").hint("repair the file, then run setup again")
    })?;
    Ok(Some((text, metadata.mode() & 0o7777)))
}

fn require_replaceable(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    let user = rustix::process::geteuid().as_raw();
    if !metadata.is_file() {
        return Err(failure(path, "it is not a regular file").hint("move it away, then run setup again"));
    }
    if metadata.uid() != user {
        return Err(failure(path, "it belongs to another user")
            .hint(format!("run setup as its owner, or run chown {user} '{}'", path.display())));
    }
    if metadata.mode() & 0o200 == 0 {
        return Err(failure(path, "it is read-only").hint(format!("chmod u+w '{}'", path.display())));
    }
    if metadata.len() > MAX_BYTES {
        let limit = MAX_BYTES / (1024 * 1024);
        return Err(failure(path, &format!("it is larger than {limit} MiB"))
            .hint("make it smaller, then run setup again"));
    }
    Ok(())
}

/// A replacement of a file: its new text and mode, or `None` to delete it.
#[derive(Debug)]
pub(super) struct Replacement {
    pub(super) path: PathBuf,
    pub(super) new: Current,
    pub(super) old: Current,
}

/// Replaces all files, or none. Returns the folders that were created, outermost first.
pub(super) fn replace_all(replacements: &[&Replacement]) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = Vec::new();
    let staged = replacements
        .iter()
        .map(|replacement| stage(replacement, &mut folders))
        .collect::<Result<Vec<_>, _>>();
    let staged = staged.inspect_err(|_| remove_folders(&folders))?;
    for (done, (replacement, file)) in replacements.iter().zip(staged).enumerate() {
        if let Err(error) = commit(&replacement.path, file) {
            restore(&replacements[..done]);
            remove_folders(&folders);
            return Err(failure(&replacement.path, &error.to_string()));
        }
    }
    Ok(folders)
}

/// Writes the new text next to the file.
fn stage(replacement: &Replacement, folders: &mut Vec<PathBuf>) -> Result<Option<DurableFile>, Failure> {
    let Some((text, mode)) = &replacement.new else { return Ok(None) };
    let path = &replacement.path;
    let mut write = || -> std::io::Result<DurableFile> {
        create_folders(path.parent().unwrap_or_else(|| Path::new("/")), folders)?;
        let mut file = DurableFile::create(path)?;
        file.write_all(text.as_bytes())?;
        // Exactly the mode of the file that is replaced, whatever the umask is.
        file.as_file().set_permissions(Permissions::from_mode(*mode))?;
        file.sync()?;
        Ok(file)
    };
    write().map(Some).map_err(|error| {
        failure(path, &error.to_string()).hint("make the folder writable for you, then run setup again")
    })
}

fn create_folders(folder: &Path, created: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    for folder in missing.into_iter().rev() {
        std::fs::create_dir(folder)?;
        created.push(folder.to_owned());
    }
    Ok(())
}

fn commit(path: &Path, staged: Option<DurableFile>) -> std::io::Result<()> {
    match staged {
        Some(file) => file.rename()?,
        None => match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        },
    }
    path.parent().map_or(Ok(()), sync_folder)
}

/// Restores files that were replaced before a failure.
fn restore(replaced: &[&Replacement]) {
    for Replacement { path, old, .. } in replaced {
        let back = Replacement { path: path.clone(), new: old.clone(), old: None };
        let restored = stage(&back, &mut Vec::new())
            .and_then(|file| commit(path, file).map_err(|error| failure(path, &error.to_string())));
        if let Err(failure) = restored {
            crate::output::warn(&failure.message);
        }
    }
}

/// Removes folders that are empty, innermost first.
fn remove_folders(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        // A folder that contains other files is kept.
        let _ = std::fs::remove_dir(folder);
    }
}

fn failure(path: &Path, problem: &str) -> Failure {
    Failure::new(Exit::Failure, "setup_failed", format!("cannot change {}: {problem}", path.display()))
        .hint("nothing was changed; correct the problem, then run setup again")
}
