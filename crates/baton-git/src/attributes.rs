//! Conversions that git may apply to files before it stores them.
//!
//! Line endings, `ident`, encodings and filters are controlled by settings and attributes. Where one of them may apply,
//! the index refers to converted content and says nothing about raw bytes, unless the conversion is known to have no
//! effect.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::index::Index;
use crate::repository::Repository;

/// Name of the file with the attributes of a folder.
pub(crate) const ATTRIBUTES: &str = ".gitattributes";

/// Conversions that may apply to a file before git stores it, from none to any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Conversion {
    /// No conversion.
    None,
    /// Only removal of carriage returns. A file without carriage returns is stored unmodified, and a converted file is
    /// stored smaller than it is.
    LineEndings,
    /// Any conversion.
    Any,
}

const LINE_ENDINGS: &[&[u8]] = &[b"text", b"eol", b"crlf"];
const OTHERS: &[&[u8]] = &[b"ident", b"filter", b"working-tree-encoding"];

impl Conversion {
    /// Returns the possible conversions, without searching every folder for attributes.
    pub(crate) fn possible(repository: &Repository, index: &Index) -> Self {
        let configuration = repository.configuration();
        let automatic = configuration.get("core.autocrlf").is_some()
            && configuration.flag("core.autocrlf") != Some(false);
        let tracked = index.entries().iter().map(|entry| index.path(entry)).filter(|path| {
            let folder = path.strip_suffix(ATTRIBUTES.as_bytes());
            folder.is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"))
        });
        let tracked = tracked.map(|path| {
            let file = repository.root().join(crate::path::RepoPath::new(path).as_path());
            // Git reads a missing attribute file from the index.
            if file.exists() { Self::by_file(&file) } else { Self::Any }
        });
        let others = [
            if automatic { Self::LineEndings } else { Self::None },
            Self::by_file(&repository.common_dir().join("info/attributes")),
            users_attributes(repository).map_or(Self::Any, |path| Self::by_file(&path)),
        ];
        others.into_iter().chain(tracked).max().unwrap_or(Self::None)
    }

    /// Returns the conversions that an attribute file may request, judged by the words in it. An unreadable file may
    /// request any.
    pub(crate) fn by_file(path: &Path) -> Self {
        let content = match fs::read(path) {
            Ok(content) => content,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Self::None;
            }
            Err(_) => return Self::Any,
        };
        let mentions = |words: &[&[u8]]| {
            words.iter().any(|word| content.windows(word.len()).any(|window| window == *word))
        };
        if mentions(OTHERS) {
            Self::Any
        } else if mentions(LINE_ENDINGS) {
            Self::LineEndings
        } else {
            Self::None
        }
    }
}

/// Returns the path of the user's attributes; `None` if it is unknown.
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
            // Without a home folder there are no user attributes, and the path does not exist.
            Some(folder.unwrap_or_default().join("git/attributes"))
        }
    }
}
