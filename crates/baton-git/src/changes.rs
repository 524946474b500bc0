//! Changes between a commit and a snapshot, or between two snapshots.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};

use baton_core::Sha256Hash;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::diff::{Detail, DiffFile, TreeDiff, diff_trees, patch_trees};
use crate::error::GitError;
use crate::inspector::Inspector;
use crate::object::{FileMode, ObjectId};
use crate::patch::Patch;
use crate::path::RepoPath;
use crate::program::require_success;
use crate::snapshot::Snapshot;
use crate::status::StatusSide;
use crate::vault::{Digests, Vault};

/// All changes, per file and as a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Changed files, sorted by path.
    pub files: Vec<FileChange>,
    /// The changes as a patch.
    pub patch: Patch,
}

/// A file that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Current path.
    pub path: RepoPath,
    /// Previous path of a renamed file.
    pub previous_path: Option<RepoPath>,
    /// Kind of the change.
    pub kind: FileChangeKind,
    /// Previous content; `None` for an added file.
    pub before: Option<Content>,
    /// Current content; `None` for a deleted file.
    pub after: Option<Content>,
    /// Added and deleted lines; `None` for a binary file.
    pub lines: Option<LineCounts>,
}

/// Kind of a file change. If several apply, the first one is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// The file is new.
    Added,
    /// The file was deleted.
    Deleted,
    /// The file has another path, possibly with other content.
    Renamed,
    /// The path has another type, for example a link instead of a file.
    TypeChanged,
    /// The content differs, possibly with another mode.
    Modified,
    /// Only the executable bit differs.
    ModeChanged,
}

/// Content of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Type and mode.
    pub mode: FileMode,
    /// Object id, or the commit of a nested repository.
    pub id: ObjectId,
    /// Size in bytes; zero for a nested repository.
    pub size_bytes: u64,
    /// Hash of the bytes; `None` for a nested repository.
    pub sha256: Option<Sha256Hash>,
}

/// Numbers of added and deleted lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LineCounts {
    /// Added lines.
    pub insertions: u64,
    /// Deleted lines.
    pub deletions: u64,
}

impl Changes {
    /// Returns the total numbers of added and deleted lines.
    pub fn lines(&self) -> LineCounts {
        let counts = self.files.iter().filter_map(|file| file.lines);
        counts.fold(LineCounts::default(), |sum, lines| LineCounts {
            insertions: sum.insertions + lines.insertions,
            deletions: sum.deletions + lines.deletions,
        })
    }

    /// Returns all affected paths, sorted, including the previous paths of renames.
    pub fn paths(&self) -> BTreeSet<&RepoPath> {
        self.files.iter().flat_map(|file| [Some(&file.path), file.previous_path.as_ref()]).flatten().collect()
    }
}

impl Vault {
    /// Returns the changes since a commit, or since an empty tree, in the form that git would store.
    ///
    /// A file that differs from the commit only by a conversion is not included. The `after` content of a changed file
    /// refers to its raw bytes.
    ///
    /// # Errors
    ///
    /// Fails if git fails, for example because the commit no longer exists.
    pub fn changes_since(&self, commit: Option<ObjectId>, snapshot: &Snapshot) -> Result<Changes, GitError> {
        let from = commit.unwrap_or_else(|| self.object_format().empty_tree());
        let mut diff = patch_trees(self, from, snapshot.patch_tree, &snapshot.large)?;
        if snapshot.patch_tree != snapshot.tree {
            let converted = diff_trees(self, snapshot.patch_tree, snapshot.tree, Detail::Paths)?;
            let raw: HashMap<_, _> = converted.files.iter().map(|file| (&file.path, file.after)).collect();
            for file in &mut diff.files {
                if let (Some(after), Some(Some(raw))) = (&mut file.after, raw.get(&file.path)) {
                    *after = *raw;
                }
            }
        }
        self.changes(diff)
    }

    /// Returns the changes between two snapshots by raw bytes. The patch contains the files as git would store them.
    ///
    /// # Errors
    ///
    /// Fails if git fails.
    pub fn changes_between(&self, from: &Snapshot, to: &Snapshot) -> Result<Changes, GitError> {
        let large = [from.large.as_slice(), &to.large].concat();
        let mut diff = patch_trees(self, from.patch_tree, to.patch_tree, &large)?;
        if from.patch_tree != from.tree || to.patch_tree != to.tree {
            let raw = diff_trees(self, from.tree, to.tree, Detail::Paths)?;
            diff = with_lines_of(raw, diff);
        }
        self.changes(diff)
    }

    /// Returns the differences in raw bytes, without a patch.
    pub(crate) fn raw_differences(&self, from: &Snapshot, to: &Snapshot) -> Result<Changes, GitError> {
        self.changes(diff_trees(self, from.tree, to.tree, Detail::Paths)?)
    }

    /// Shows an inspector both versions of every changed binary file, because the patch does not show their content.
    ///
    /// # Errors
    ///
    /// Fails if git fails.
    pub fn inspect_binaries(&self, changes: &Changes, inspector: &mut dyn Inspector) -> Result<(), GitError> {
        let mut wanted: BTreeMap<ObjectId, Vec<&RepoPath>> = BTreeMap::new();
        for file in changes.files.iter().filter(|file| file.lines.is_none()) {
            for content in [file.before, file.after].into_iter().flatten() {
                if content.mode != FileMode::Nested {
                    wanted.entry(content.id).or_default().push(&file.path);
                }
            }
        }
        for (id, paths) in wanted {
            for path in paths {
                inspector.look(path, &[]);
                let call = self.call("cat-file").arguments(["blob".to_owned(), id.to_string()]);
                let ended = call.stream(&mut |piece| inspector.look(path, piece))?;
                require_success("cat-file", &ended)?;
            }
        }
        Ok(())
    }

    /// Passes the content of a file of a snapshot, or the target of a link, to `sink` in pieces.
    ///
    /// # Errors
    ///
    /// Fails if the snapshot does not contain the file, if its objects were removed, or if git fails.
    pub fn file(
        &self,
        snapshot: &Snapshot,
        path: &RepoPath,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), GitError> {
        let mut name = OsString::from(format!("{}:", snapshot.tree));
        name.push(path.as_path());
        // Git holds smaller files in memory.
        let call = self.call("cat-file").setting("core.bigFileThreshold", "8m");
        require_success("cat-file", &call.arguments([OsStr::new("blob"), &name]).stream(sink)?)
    }

    /// Lists every file of a tree.
    pub(crate) fn listing(&self, tree: ObjectId) -> Result<BTreeMap<RepoPath, StatusSide>, GitError> {
        let call = self.call("ls-tree").arguments(["-r", "-z", "--full-tree"]);
        let output = call.arguments([tree.to_string()]).output()?;
        let entry = |line: &[u8]| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let mut fields = line[..tab].split(|byte| *byte == b' ');
            let (mode, id) = (fields.next()?, fields.nth(1)?);
            let side = StatusSide { mode: FileMode::from_digits(mode)?, id: ObjectId::from_hex(id)? };
            Some((RepoPath::new(&line[tab + 1..]), side))
        };
        let lines = output.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let entries: Option<BTreeMap<_, _>> = lines.map(entry).collect();
        entries.ok_or_else(|| GitError::unexpected("ls-tree", "a line cannot be parsed"))
    }

    /// Describes changes between pairs of versions. `known` returns size and hash of files that are in no repository.
    pub(crate) fn described(
        &self,
        pairs: Vec<(RepoPath, Option<StatusSide>, Option<StatusSide>)>,
        known: impl Fn(&RepoPath) -> Option<(u64, Sha256Hash)>,
    ) -> Result<Vec<FileChange>, GitError> {
        let known: HashMap<RepoPath, (u64, Sha256Hash)> =
            pairs.iter().filter_map(|(path, ..)| Some((path.clone(), known(path)?))).collect();
        let after = |path: &RepoPath, side: Option<StatusSide>| side.filter(|_| !known.contains_key(path));
        let sides = pairs.iter().flat_map(|(path, before, now)| [*before, after(path, *now)]).flatten();
        let ids = sides.filter(|side| side.mode != FileMode::Nested).map(|side| side.id).collect();
        let digests = self.digests(&ids)?;
        let content = |side: StatusSide, known: Option<&(u64, Sha256Hash)>| {
            let digest = known.or_else(|| digests.get(&side.id));
            let (size_bytes, sha256) = digest.map_or((0, None), |(size, hash)| (*size, Some(*hash)));
            Content { mode: side.mode, id: side.id, size_bytes, sha256 }
        };
        let change = |(path, before, after): (RepoPath, Option<StatusSide>, Option<StatusSide>)| {
            let file = DiffFile { path, previous_path: None, before, after, lines: None };
            FileChange {
                kind: kind(&file),
                before: before.map(|side| content(side, None)),
                after: after.map(|side| content(side, known.get(&file.path))),
                lines: None,
                previous_path: None,
                path: file.path,
            }
        };
        Ok(pairs.into_iter().map(change).collect())
    }

    fn changes(&self, diff: TreeDiff) -> Result<Changes, GitError> {
        let sides = diff.files.iter().flat_map(|file| [file.before, file.after]).flatten();
        let ids = sides.filter(|side| side.mode != FileMode::Nested).map(|side| side.id).collect();
        let digests = self.digests(&ids)?;
        let content = |side: StatusSide| {
            let (size_bytes, sha256) =
                digests.get(&side.id).map_or((0, None), |(size, hash)| (*size, Some(*hash)));
            Content { mode: side.mode, id: side.id, size_bytes, sha256 }
        };
        let change = |file: DiffFile| FileChange {
            kind: kind(&file),
            before: file.before.map(content),
            after: file.after.map(content),
            lines: file.lines.map(|(insertions, deletions)| LineCounts { insertions, deletions }),
            path: file.path,
            previous_path: file.previous_path,
        };
        let mut files: Vec<FileChange> = diff.files.into_iter().map(change).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Changes { files, patch: diff.patch })
    }

    /// Returns the digests of objects.
    pub(crate) fn digests(&self, ids: &BTreeSet<ObjectId>) -> Result<Digests, GitError> {
        let mut digests: Digests = {
            let known = self.known_digests();
            ids.iter().filter_map(|id| Some((*id, *known.get(id)?))).collect()
        };
        let missing: String =
            ids.iter().filter(|id| !digests.contains_key(id)).map(|id| format!("{id}\n")).collect();
        if missing.is_empty() {
            return Ok(digests);
        }
        let mut reader = BatchReader::default();
        let call = self.call("cat-file").arguments(["--batch"]).input(missing.into_bytes());
        let ended = call.stream(&mut |piece| reader.take(piece))?;
        require_success("cat-file", &ended)?;
        if let Some(problem) = reader.problem {
            return Err(GitError::unexpected("cat-file", problem));
        }
        self.known_digests().extend(&reader.digests);
        digests.extend(reader.digests);
        Ok(digests)
    }
}

/// Combines the files of one diff with the line counts and the patch of another.
fn with_lines_of(mut files: TreeDiff, lines: TreeDiff) -> TreeDiff {
    let counts: HashMap<&RepoPath, _> = lines.files.iter().map(|file| (&file.path, file.lines)).collect();
    for file in &mut files.files {
        // If git would store the same content, no line changed.
        file.lines = counts.get(&file.path).copied().unwrap_or(Some((0, 0)));
    }
    files.patch = lines.patch;
    files
}

fn kind(file: &DiffFile) -> FileChangeKind {
    match (file.before, file.after) {
        (None, _) => FileChangeKind::Added,
        (_, None) => FileChangeKind::Deleted,
        _ if file.previous_path.is_some() => FileChangeKind::Renamed,
        (Some(before), Some(after)) if before.mode != after.mode => {
            match (before.mode.is_file() && after.mode.is_file(), before.id == after.id) {
                (false, _) => FileChangeKind::TypeChanged,
                (true, false) => FileChangeKind::Modified,
                (true, true) => FileChangeKind::ModeChanged,
            }
        }
        _ => FileChangeKind::Modified,
    }
}

/// Parses the output of `git cat-file --batch` incrementally: a line with id, kind and size, the content, a line break.
#[derive(Default)]
struct BatchReader {
    line: Vec<u8>,
    present: Option<(ObjectId, u64, u64, sha2::Sha256)>,
    digests: Digests,
    problem: Option<String>,
}

impl BatchReader {
    fn take(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() && self.problem.is_none() {
            match &mut self.present {
                Some((_, _, left, hasher)) if *left > 0 => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(piece.len());
                    hasher.update(&piece[..count]);
                    *left -= count as u64;
                    piece = &piece[count..];
                }
                Some(_) => {
                    if let Some((id, size, _, hasher)) = self.present.take() {
                        let hash: [u8; 32] = hasher.finalize().into();
                        self.digests.insert(id, (size, Sha256Hash::from_bytes(hash)));
                    }
                    piece = &piece[1..];
                }
                None => {
                    let end = piece.iter().position(|byte| *byte == b'\n');
                    self.line.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
                    piece = &piece[end.map_or(piece.len(), |end| end + 1)..];
                    if end.is_some() {
                        self.begin();
                    }
                }
            }
        }
    }

    fn begin(&mut self) {
        let line = std::mem::take(&mut self.line);
        let mut fields = line.split(|byte| *byte == b' ');
        let id = fields.next().and_then(ObjectId::from_hex);
        let size = fields.nth(1).and_then(|size| std::str::from_utf8(size).ok()?.parse::<u64>().ok());
        match id.zip(size) {
            Some((id, size)) => self.present = Some((id, size, size, sha2::Sha256::new())),
            None => self.problem = Some(String::from_utf8_lossy(&line).into_owned()),
        }
    }
}
