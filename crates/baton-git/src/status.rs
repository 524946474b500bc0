//! The output of `git status`: staged, unstaged, untracked, unmerged and renamed paths.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::head::Head;
use crate::object::{FileMode, ObjectId};
use crate::path::{RepoPath, is_within};
use crate::program::require_success;
use crate::repository::Repository;
use crate::stash::Stash;

/// Status of a checkout as seen by git.
///
/// Git compares whole seconds and trusts marks such as assume-unchanged. A [`Snapshot`](crate::Snapshot) does neither,
/// and where nothing is converted, nor does the status that comes with it. Where the two disagree about a file, the
/// snapshot is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// State of `HEAD`.
    pub head: Head,
    /// The stash; `None` if it is empty.
    pub stash: Option<Stash>,
    /// Every path that differs from the commit, in git's order.
    pub entries: Vec<StatusEntry>,
    /// The same in git's format (`--porcelain=v2 -z`), without headers and excluded paths.
    pub report: Vec<u8>,
}

/// Difference between a tracked file in the working tree and the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unstaged {
    pub(crate) code: StatusCode,
    pub(crate) index: StatusSide,
    /// Mode in the working tree; `None` if the file was deleted.
    pub(crate) worktree: Option<FileMode>,
}

/// Kind of difference between the index and `HEAD`, or between the working tree and the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusCode {
    /// No difference.
    Unmodified,
    /// Content or mode differs.
    Modified,
    /// The type differs, for example a link instead of a file.
    TypeChanged,
    /// The path is new.
    Added,
    /// The path was deleted.
    Deleted,
    /// The path is new and has the content of a deleted one.
    Renamed,
    /// The path is new and has the content of another.
    Copied,
    /// In conflict.
    Unmerged,
}

/// Mode and content of a path on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusSide {
    /// Type and mode.
    pub mode: FileMode,
    pub id: ObjectId,
}

/// A path that differs from the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusEntry {
    /// Tracked, and different in the index, the working tree or both.
    Changed {
        path: RepoPath,
        /// Previous path of a renamed or copied file.
        previous_path: Option<RepoPath>,
        /// Index compared with `HEAD`.
        staged: StatusCode,
        /// Working tree compared with the index.
        unstaged: StatusCode,
        /// Version in `HEAD`, at the previous path if there is one.
        head: Option<StatusSide>,
        /// Version in the index.
        index: Option<StatusSide>,
    },
    /// In conflict.
    Unmerged { path: RepoPath },
    /// Neither tracked nor ignored. A nested repository if the path ends with `/`.
    Untracked { path: RepoPath },
}

impl StatusEntry {
    pub const fn path(&self) -> &RepoPath {
        match self {
            Self::Changed { path, .. } | Self::Unmerged { path } | Self::Untracked { path } => path,
        }
    }
}

impl Status {
    /// Runs `git status`. Paths within `excluded` are omitted.
    ///
    /// If `index` is given, it is used instead of the index of the checkout.
    pub(crate) fn read(
        repository: &Repository,
        excluded: &[RepoPath],
        index: Option<&Path>,
    ) -> Result<Self, GitError> {
        let renames = if repository.configuration().is_partial_clone() {
            // Rename detection would need contents that a partial clone does not have.
            "--no-renames"
        } else {
            "--find-renames"
        };
        let (mut call, _objects) = repository.index_call("status")?;
        if let Some(index) = index {
            // Preloading would examine files in spite of the assume-unchanged marks.
            call = call.variable("GIT_INDEX_FILE", index).setting("core.preloadIndex", "false");
        }
        let (output, ended) = call
            .arguments(["--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--untracked-files=all"])
            .arguments(["--ignored=no", "--ignore-submodules=dirty", renames])
            .attempt()?;
        require_success("status", &ended)?;
        require_readable_folders(&ended.stderr, excluded)?;
        Self::parse(&output, excluded, Stash::read(repository)?)
    }

    fn parse(output: &[u8], excluded: &[RepoPath], stash: Option<Stash>) -> Result<Self, GitError> {
        let mut records = output.split(|byte| *byte == 0);
        let (mut oid, mut name) = (None, None);
        let (mut entries, mut report) = (Vec::new(), Vec::new());
        while let Some(record) = records.next() {
            if record.is_empty() {
                continue;
            }
            if let Some(header) = record.strip_prefix(b"# ") {
                oid = header.strip_prefix(b"branch.oid ").or(oid);
                name = header.strip_prefix(b"branch.head ").or(name);
                continue;
            }
            let original = if record.starts_with(b"2 ") { records.next() } else { None };
            let entry = entry(record, original)
                .ok_or_else(|| GitError::unexpected("status", String::from_utf8_lossy(record)))?;
            let path = entry.path().as_bytes();
            if excluded.iter().any(|folder| is_within(path, folder.as_bytes())) {
                continue;
            }
            for part in [Some(record), original].into_iter().flatten() {
                report.extend_from_slice(part);
                report.push(0);
            }
            entries.push(entry);
        }
        let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
        let head = match oid {
            Some(b"(initial)") => Head::Unborn { name },
            Some(oid) => {
                let commit = ObjectId::from_hex(oid)
                    .ok_or_else(|| GitError::unexpected("status", "HEAD is not a commit"))?;
                if name == "(detached)" { Head::Detached { commit } } else { Head::Branch { name, commit } }
            }
            None => return Err(GitError::unexpected("status", "HEAD is missing")),
        };
        Ok(Self { head, stash, entries, report })
    }

    /// Adds changes that git was prevented from examining.
    pub(crate) fn add_unstaged(&mut self, mut found: BTreeMap<&[u8], Unstaged>) {
        if found.is_empty() {
            return;
        }
        let records = records(&self.report);
        let mut all: Vec<(StatusEntry, Vec<u8>)> = Vec::with_capacity(records.len() + found.len());
        for (mut entry, mut record) in self.entries.drain(..).zip(records) {
            if let StatusEntry::Changed { path, unstaged, .. } = &mut entry
                && let Some(file) = found.remove(path.as_bytes())
            {
                *unstaged = file.code;
                amend(&mut record, &file);
            }
            all.push((entry, record));
        }
        for (path, file) in found {
            let entry = StatusEntry::Changed {
                path: RepoPath::new(path),
                previous_path: None,
                staged: StatusCode::Unmodified,
                unstaged: file.code,
                head: Some(file.index),
                index: Some(file.index),
            };
            let StatusSide { mode, id } = file.index;
            let mut record = format!("1 .. N... {mode} {mode} {mode} {id} {id} ").into_bytes();
            record.extend_from_slice(path);
            record.push(0);
            amend(&mut record, &file);
            all.push((entry, record));
        }
        // Git's order: changes by path, then conflicts, then untracked paths.
        let rank = |entry: &StatusEntry| match entry {
            StatusEntry::Changed { .. } => 0,
            StatusEntry::Unmerged { .. } => 1,
            StatusEntry::Untracked { .. } => 2,
        };
        all.sort_by(|(a, _), (b, _)| rank(a).cmp(&rank(b)).then_with(|| a.path().cmp(b.path())));
        let (entries, records): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        (self.entries, self.report) = (entries, records.concat());
    }
}

/// Splits a report into records, each with its NUL; a rename record contains both paths.
fn records(report: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = report.split_inclusive(|byte| *byte == 0);
    let mut records = Vec::new();
    while let Some(part) = parts.next() {
        let second = if part.starts_with(b"2 ") { parts.next() } else { None };
        records.push([part, second.unwrap_or_default()].concat());
    }
    records
}

/// Writes the working tree side into a record: its letter, and its mode.
fn amend(record: &mut [u8], file: &Unstaged) {
    const LETTER_AT: usize = 3;
    const MODE_AT: usize = "1 XY N... 100644 100644 ".len();
    let mode = file.worktree.map_or("000000", FileMode::digits);
    record[LETTER_AT] = letter(file.code);
    record[MODE_AT..MODE_AT + mode.len()].copy_from_slice(mode.as_bytes());
}

/// Letters of git for each code.
const LETTERS: [(u8, StatusCode); 8] = [
    (b'.', StatusCode::Unmodified),
    (b'M', StatusCode::Modified),
    (b'T', StatusCode::TypeChanged),
    (b'A', StatusCode::Added),
    (b'D', StatusCode::Deleted),
    (b'R', StatusCode::Renamed),
    (b'C', StatusCode::Copied),
    (b'U', StatusCode::Unmerged),
];

fn letter(code: StatusCode) -> u8 {
    LETTERS.iter().find(|(_, known)| *known == code).map_or(b'.', |(letter, _)| *letter)
}

fn code(letter: u8) -> Option<StatusCode> {
    LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, code)| *code)
}

impl Repository {
    /// Returns staged, unstaged, untracked and conflicting paths. Paths within `excluded` are omitted.
    ///
    /// # Errors
    ///
    /// Fails if git fails.
    pub fn status(&self, excluded: &[RepoPath]) -> Result<Status, GitError> {
        Status::read(self, excluded, None)
    }
}

/// Rejects a status without the untracked files of a folder: git only warns about a folder that it cannot open.
fn require_readable_folders(stderr: &[u8], excluded: &[RepoPath]) -> Result<(), GitError> {
    for line in stderr.split(|byte| *byte == b'\n') {
        let Some(rest) = line.strip_prefix(b"warning: could not open directory '") else { continue };
        let Some(end) = rest.windows(3).rposition(|window| window == b"': ") else { continue };
        let (folder, reason) = (&rest[..end], String::from_utf8_lossy(&rest[end + 3..]));
        // A folder that was deleted meanwhile contains no files.
        let gone = reason == "No such file or directory";
        if !gone && !excluded.iter().any(|path| is_within(folder, path.as_bytes())) {
            let source = io::Error::new(io::ErrorKind::PermissionDenied, reason.into_owned());
            return Err(GitError::Unreadable { path: RepoPath::new(folder), source });
        }
    }
    Ok(())
}

fn entry(record: &[u8], original: Option<&[u8]>) -> Option<StatusEntry> {
    match record.first()? {
        b'?' => Some(StatusEntry::Untracked { path: RepoPath::new(record.get(2..)?) }),
        b'1' => changed(record.splitn(9, |byte| *byte == b' ').collect(), None),
        b'2' => {
            let mut fields: Vec<&[u8]> = record.splitn(10, |byte| *byte == b' ').collect();
            if fields.len() != 10 {
                return None;
            }
            // The similarity is before the path.
            fields.remove(8);
            changed(fields, Some(RepoPath::new(original?)))
        }
        b'u' => {
            let path = record.splitn(11, |byte| *byte == b' ').nth(10)?;
            Some(StatusEntry::Unmerged { path: RepoPath::new(path) })
        }
        _ => None,
    }
}

fn changed(fields: Vec<&[u8]>, previous_path: Option<RepoPath>) -> Option<StatusEntry> {
    let [_, [staged, unstaged], _, head_mode, index_mode, _, head_id, index_id, path] = fields[..] else {
        return None;
    };
    let side = |mode: &[u8], id: &[u8]| {
        let id = ObjectId::from_hex(id)?;
        Some(FileMode::from_digits(mode).filter(|_| !id.is_null()).map(|mode| StatusSide { mode, id }))
    };
    Some(StatusEntry::Changed {
        path: RepoPath::new(path),
        previous_path,
        staged: code(*staged)?,
        unstaged: code(*unstaged)?,
        head: side(head_mode, head_id)?,
        index: side(index_mode, index_id)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const Z: &str = "0000000000000000000000000000000000000000";

    #[test]
    fn every_kind_of_record_is_parsed() {
        let text = format!(
            "# branch.oid {A}\0# branch.head main\0# branch.upstream origin/main\0\
             1 .M N... 100644 100644 100755 {A} {A} a b\0\
             1 A. N... 000000 120000 120000 {Z} {A} link\0\
             2 R. N... 100644 100644 100644 {A} {A} R100 new name\0old name\0\
             u UU N... 100644 100644 100644 100644 {A} {A} {A} both\0\
             ? nested/\0? .agent-output/x\0"
        );
        let excluded = [RepoPath::new(".agent-output")];
        let status = Status::parse(text.as_bytes(), &excluded, None).unwrap();
        assert_eq!(status.head, Head::Branch { name: "main".into(), commit: A.parse().unwrap() });
        let paths: Vec<String> = status.entries.iter().map(|entry| entry.path().to_string()).collect();
        assert_eq!(paths, ["a b", "link", "new name", "both", "nested/"]);
        let StatusEntry::Changed { staged, head, index, .. } = &status.entries[1] else { panic!() };
        assert_eq!((*staged, *head), (StatusCode::Added, None));
        assert_eq!(index.unwrap().mode, FileMode::Symlink);
        let StatusEntry::Changed { previous_path, .. } = &status.entries[2] else { panic!() };
        assert_eq!(previous_path.as_ref().unwrap().as_bytes(), b"old name");
        assert!(status.report.ends_with(b"? nested/\0"));
        assert!(!status.report.starts_with(b"#"));
    }

    #[test]
    fn unborn_and_detached_heads_are_distinguished() {
        let unborn = Status::parse(b"# branch.oid (initial)\0# branch.head main\0", &[], None).unwrap();
        assert_eq!(unborn.head, Head::Unborn { name: "main".into() });
        let text = format!("# branch.oid {A}\0# branch.head (detached)\0");
        let detached = Status::parse(text.as_bytes(), &[], None).unwrap();
        assert_eq!(detached.head, Head::Detached { commit: A.parse().unwrap() });
        assert!(Status::parse(b"9 what", &[], None).is_err());
    }
}
