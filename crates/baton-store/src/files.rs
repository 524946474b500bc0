//! Writing files so that a crash leaves the old one or the new one, and never a part.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes a folder (0700), with those above it, when it is missing.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file (0600) and returns when it is on disk under its name: temporary file, fsync, rename, fsync of the
/// folder.
pub fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the file has no folder"))?;
    let name = path.file_name().ok_or_else(|| io::Error::other("the file has no name"))?;
    let mut temporary = name.to_owned();
    // The process id keeps two writers of the same name apart.
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder.join(temporary);
    let written = write_new(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // What went wrong is what counts; a leftover is swept with the orphans.
        let _ = std::fs::remove_file(&temporary);
        return written;
    }
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
