//! How git may store files of a repository otherwise than they lie in the working tree.
//!
//! Line endings, `ident`, encodings and filters are settings and attributes. Where one of them may apply, the index
//! names converted content, so that it says nothing about raw bytes; unless the conversion can be seen to do nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::index::Index;
use crate::repository::Repository;

/// The file that gives files of its folder attributes.
pub(crate) const ATTRIBUTES: &str = ".gitattributes";

/// What git may do to a file before it stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Conversion {
    /// Nothing.
    None,
    /// It may take carriage returns out, and nothing else: a file without any is stored as it is, and one of which
    /// something was taken out is stored smaller than it is.
    LineEndings,
    /// Anything.
    Any,
}

const LINE_ENDINGS: &[&[u8]] = &[b"text", b"eol", b"crlf"];
const OTHERS: &[&[u8]] = &[b"ident", b"filter", b"working-tree-encoding"];

impl Conversion {
    /// What is possible as far as can be told without looking into every folder.
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
            // One that is missing is read from the index.
            if file.exists() { Self::by_file(&file) } else { Self::Any }
        });
        let others = [
            if automatic { Self::LineEndings } else { Self::None },
            Self::by_file(&repository.common_dir().join("info/attributes")),
            users_attributes(repository).map_or(Self::Any, |path| Self::by_file(&path)),
        ];
        others.into_iter().chain(tracked).max().unwrap_or(Self::None)
    }

    /// What a file of attributes may ask for, by the words in it. What cannot be read may say anything.
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
