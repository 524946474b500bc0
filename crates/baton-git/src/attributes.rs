//! Whether git may store files of a repository otherwise than they lie in the working tree.
//!
//! Line endings, `ident`, encodings and filters are settings and attributes. Where one of them may apply, the index
//! names converted content, so that it says nothing about raw bytes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::index::Index;
use crate::repository::Repository;

/// The file that gives files of its folder attributes.
pub(crate) const ATTRIBUTES: &str = ".gitattributes";

const CONVERTING: &[&[u8]] = &[b"text", b"eol", b"crlf", b"ident", b"filter", b"working-tree-encoding"];

/// Whether conversion is possible as far as can be told without looking into every folder.
pub(crate) fn may_convert(repository: &Repository, index: &Index) -> bool {
    let configuration = repository.configuration();
    let automatic =
        configuration.get("core.autocrlf").is_some() && configuration.flag("core.autocrlf") != Some(false);
    automatic
        || file_may_convert(&repository.common_dir().join("info/attributes"))
        || users_attributes(repository).is_none_or(|path| file_may_convert(&path))
        || index.entries().iter().map(|entry| index.path(entry)).any(|path| {
            let folder = path.strip_suffix(ATTRIBUTES.as_bytes());
            folder.is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/")) && {
                let path = crate::path::RepoPath::new(path);
                let file = repository.root().join(path.as_path());
                // One that is missing is read from the index.
                !file.exists() || file_may_convert(&file)
            }
        })
}

/// Whether a file of attributes mentions one that converts. What cannot be read may say anything.
pub(crate) fn file_may_convert(path: &Path) -> bool {
    match fs::read(path) {
        Ok(content) => {
            CONVERTING.iter().any(|name| content.windows(name.len()).any(|window| window == *name))
        }
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// Where the attributes of the user are; none if that cannot be told.
fn users_attributes(repository: &Repository) -> Option<PathBuf> {
    let home = || repository.git().variable("HOME").map(Path::new);
    match repository.configuration().get("core.attributesfile") {
        Some(path) => match path.strip_prefix('~') {
            None => Some(repository.root().join(path)),
            Some(rest) => Some(home()?.join(rest.strip_prefix('/')?)),
        },
        None => {
            let configured = repository.git().variable("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
            let folder = configured.map(PathBuf::from).or_else(|| Some(home()?.join(".config")));
            // Without a home there are none: a path that does not exist.
            Some(folder.unwrap_or_default().join("git/attributes"))
        }
    }
}
