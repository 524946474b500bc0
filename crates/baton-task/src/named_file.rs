//! Reads files that a caller names. Unless stated otherwise, a file must be inside the checkout after resolving links.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use baton_core::{ErrorCode, Fault};

use crate::durable::failed;
use crate::rules::check_repo_path;

/// Maximum size of a task file, standard, log or evidence.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A file inside the checkout.
#[derive(Debug)]
pub(crate) struct CheckoutFile {
    /// Path relative to the root.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a file of the checkout. `field` is the parameter that names it.
pub(crate) fn read_in_checkout(root: &Path, field: &str, path: &str) -> Result<CheckoutFile, Fault> {
    let path = from_root(root, field, path)?;
    let full = root.join(&path);
    let real = full.canonicalize().map_err(|error| unreadable(field, &path, &full, error))?;
    let inside = root.canonicalize().is_ok_and(|root| real.starts_with(root));
    if !inside {
        return Err(Fault::invalid(field, format!("the path {path:?} is outside the checkout")));
    }
    let found = fs::metadata(&real).map_err(|error| failed("read", &full, error))?;
    if !found.is_file() {
        return Err(Fault::invalid(field, format!("{path:?} is not a regular file")));
    }
    let bytes = read_limited(field, &path, &real)?;
    Ok(CheckoutFile { path, bytes })
}

/// Reads any file or pipe, by an absolute path or a path relative to the root.
pub(crate) fn read_anywhere(root: &Path, field: &str, path: &str) -> Result<Vec<u8>, Fault> {
    let full = root.join(path);
    let found = fs::metadata(&full).map_err(|error| unreadable(field, path, &full, error))?;
    if found.is_dir() {
        return Err(Fault::invalid(field, format!("{path:?} is a folder")).hint("name the log file in it"));
    }
    read_limited(field, path, &full)
}

/// Returns the path relative to the root of a file that `read_anywhere` reads; `None` if it is outside the checkout.
pub(crate) fn path_in_checkout(root: &Path, path: &str) -> Option<String> {
    let full = root.join(path);
    // A link as the file itself is part of the checkout, wherever it leads.
    let folder = full.parent()?.canonicalize().ok()?;
    let path = folder.strip_prefix(root.canonicalize().ok()?).ok()?.join(full.file_name()?);
    path.to_str().map(str::to_owned)
}

/// Creates the fault for a path that does not exist or cannot be resolved.
fn unreadable(field: &str, path: &str, full: &Path, error: io::Error) -> Fault {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Fault::new(ErrorCode::NotFound, format!("{field}: there is no file {path}"))
                .hint(format!("check the path; it resolves to {}", full.display()))
        }
        _ => failed("read", full, error),
    }
}

fn read_limited(field: &str, path: &str, full: &Path) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let read = fs::File::open(full).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| failed("read", full, error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Fault::invalid(field, format!("{path:?} is larger than {MAX_BYTES} bytes"))
            .hint("shorten the file; the end of a log contains the results: tail -c 60M"));
    }
    Ok(bytes)
}

/// Reads a file of the checkout as text; `None` if it does not exist.
pub(crate) fn read_text(root: &Path, field: &str, path: &str) -> Result<Option<String>, Fault> {
    match read_in_checkout(root, field, path) {
        Ok(file) => String::from_utf8(file.bytes)
            .map(Some)
            .map_err(|_| Fault::invalid(field, format!("{path:?} is not UTF-8 text"))),
        Err(fault) if fault.code == ErrorCode::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Converts an absolute path below the root to a relative path.
fn from_root(root: &Path, field: &str, path: &str) -> Result<String, Fault> {
    let relative =
        Path::new(path).strip_prefix(root).ok().and_then(Path::to_str).filter(|_| path.starts_with('/'));
    check_repo_path(field, relative.unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn read_inside_rejects_paths_that_lead_out_of_the_checkout() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("d")).unwrap();
        fs::write(root.path().join("d/a"), "text").unwrap();
        symlink(outside.path().join("secret"), root.path().join("link")).unwrap();
        symlink(outside.path(), root.path().join("folder")).unwrap();
        symlink("d/a", root.path().join("good")).unwrap();
        let code = |path: &str| {
            read_in_checkout(root.path(), "path", path).map(|file| file.bytes).map_err(|fault| fault.code)
        };
        assert_eq!(code("d/a"), Ok(b"text".to_vec()));
        assert_eq!(code("./good"), Ok(b"text".to_vec()));
        assert_eq!(code(root.path().join("d/a").to_str().unwrap()), Ok(b"text".to_vec()));
        for bad in ["link", "folder/secret", "../x", "/etc/passwd", "d", ""] {
            assert_eq!(code(bad), Err(ErrorCode::InvalidRequest), "{bad}");
        }
        assert_eq!(code("d/none"), Err(ErrorCode::NotFound));
        assert_eq!(code("d/a/none"), Err(ErrorCode::NotFound));
    }
}
