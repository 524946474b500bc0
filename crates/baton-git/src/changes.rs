//! Changes between a commit and a snapshot, or between two snapshots.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};

use baton_core::Sha256Hash;
use baton_core::task::{ChangeStatus, DiffStat, Inspector, TreeChange, TreeDiff};
use sha2::Digest as _;

use crate::capture::Withheld;
use crate::diff::{Detail, DiffFile, RawDiff, diff_trees};
use crate::error::GitError;
use crate::object::{FileMode, ObjectId};
use crate::object_store::{Digests, ObjectStore};
use crate::path::RepoPath;
use crate::program::require_success;
use crate::snapshot::Snapshot;
use crate::status::StatusSide;

impl ObjectStore {
    /// Returns the changes since a commit, or since an empty tree, in the form that git would store.
    ///
    /// A file that differs from the commit only by a conversion is not included. Hash and size of a changed file are
    /// those of its raw bytes. The inspector sees both versions of every changed binary file, because the patch does not
    /// show their content.
    ///
    /// # Errors
    ///
    /// Fails if git fails, for example because the commit no longer exists.
    pub fn changes_since(
        &self,
        commit: Option<ObjectId>,
        snapshot: &Snapshot,
        inspector: &mut dyn Inspector,
    ) -> Result<TreeDiff, GitError> {
        let from = commit.unwrap_or_else(|| self.object_format().empty_tree());
        let may_be_large = !snapshot.large.is_empty() || self.may_replace_large(commit, snapshot);
        let mut diff = diff_trees(self, from, snapshot.patch_tree, patch_detail(may_be_large))?;
        if snapshot.patch_tree != snapshot.tree {
            let converted = diff_trees(self, snapshot.patch_tree, snapshot.tree, Detail::Paths)?;
            let raw: HashMap<_, _> = converted.files.iter().map(|file| (&file.path, file.after)).collect();
            for file in &mut diff.files {
                if let (Some(after), Some(Some(raw))) = (&mut file.after, raw.get(&file.path)) {
                    *after = *raw;
                }
            }
        }
        self.inspect_binaries(&diff.files, inspector)?;
        self.changes(diff)
    }

    /// Returns the changes between two snapshots by raw bytes. The patch contains the files as git would store them.
    ///
    /// # Errors
    ///
    /// Fails if git fails.
    pub fn changes_between(&self, from: &Snapshot, to: &Snapshot) -> Result<TreeDiff, GitError> {
        let may_be_large = !(from.large.is_empty() && to.large.is_empty());
        let mut diff = diff_trees(self, from.patch_tree, to.patch_tree, patch_detail(may_be_large))?;
        if from.patch_tree != from.tree || to.patch_tree != to.tree {
            let raw = diff_trees(self, from.tree, to.tree, Detail::Paths)?;
            diff = with_lines_of(raw, diff);
        }
        self.changes(diff)
    }

    /// Returns true if a file of the commit that the snapshot replaces may be too large for a patch. The capture read the
    /// replaced files of its `HEAD`.
    fn may_replace_large(&self, commit: Option<ObjectId>, snapshot: &Snapshot) -> bool {
        let least = self.call("diff-tree").limits().large_file_bytes;
        commit != snapshot.head.commit() || self.known_digests().values().any(|(size, _)| *size >= least)
    }

    fn inspect_binaries(&self, files: &[DiffFile], inspector: &mut dyn Inspector) -> Result<(), GitError> {
        let mut wanted: BTreeMap<ObjectId, Vec<String>> = BTreeMap::new();
        for file in files.iter().filter(|file| file.lines.is_none()) {
            for side in [file.before, file.after].into_iter().flatten() {
                if side.mode != FileMode::Nested {
                    wanted.entry(side.id).or_default().push(file.path.to_string());
                }
            }
        }
        for (id, paths) in wanted {
            for path in paths {
                inspector.inspect(&path, &[]);
                let call = self.call("cat-file").arguments(["blob".to_owned(), id.to_string()]);
                let ended = call.stream(&mut |piece| inspector.inspect(&path, piece))?;
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

    fn changes(&self, diff: RawDiff) -> Result<TreeDiff, GitError> {
        let mut stat = DiffStat { files: diff.files.len() as u64, ..DiffStat::default() };
        for (insertions, deletions) in diff.files.iter().filter_map(|file| file.lines) {
            stat.insertions += insertions;
            stat.deletions += deletions;
        }
        let changes = self.describe(diff.files, None)?.into_values().collect();
        Ok(TreeDiff { changes, stat, patch: diff.patch })
    }

    /// Describes changed files by path. `withheld` has size and hash of current files that are in no repository.
    pub(crate) fn describe(
        &self,
        files: Vec<DiffFile>,
        withheld: Option<&Withheld>,
    ) -> Result<BTreeMap<RepoPath, TreeChange>, GitError> {
        let withheld = |path: &RepoPath| withheld.and_then(|withheld| withheld.get(path));
        let stored = |file: &DiffFile| file.after.filter(|_| withheld(&file.path).is_none());
        let sides = files.iter().flat_map(|file| [file.before, stored(file)]).flatten();
        let ids = sides.filter(|side| side.mode != FileMode::Nested).map(|side| side.id).collect();
        let digests = self.digests(&ids)?;
        let change = |file: DiffFile| {
            let now = withheld(&file.path).or_else(|| digests.get(&file.after?.id));
            let before = file.before.and_then(|side| digests.get(&side.id));
            // A nested repository has no content of its own, so its commit is used.
            let hash = |side: StatusSide, digest: Option<&(u64, Sha256Hash)>| {
                digest.map_or_else(|| side.id.to_string(), |(_, hash)| hash.to_string())
            };
            let mode = |side: StatusSide| side.mode.to_string();
            let change = TreeChange {
                path: file.path.to_string(),
                previous_path: file.previous_path.as_ref().map(RepoPath::to_string),
                status: status(&file),
                sha256: file.after.map(|side| hash(side, now)),
                previous_sha256: file.before.map(|side| hash(side, before)),
                mode: file.after.map(mode),
                previous_mode: file.before.map(mode),
                size_bytes: file.after.and(now).map(|(size, _)| *size),
            };
            (file.path, change)
        };
        Ok(files.into_iter().map(change).collect())
    }

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
        let ended = call.stream(&mut |piece| reader.read(piece))?;
        require_success("cat-file", &ended)?;
        if let Some(problem) = reader.problem {
            return Err(GitError::unexpected("cat-file", problem));
        }
        self.known_digests().extend(&reader.digests);
        digests.extend(reader.digests);
        Ok(digests)
    }
}

/// Without large files, one git call is sufficient.
const fn patch_detail(may_be_large: bool) -> Detail {
    if may_be_large { Detail::PatchWithoutLarge } else { Detail::Patch }
}

/// Combines the files of one diff with the line counts and the patch of another.
fn with_lines_of(mut files: RawDiff, lines: RawDiff) -> RawDiff {
    let counts: HashMap<&RepoPath, _> = lines.files.iter().map(|file| (&file.path, file.lines)).collect();
    for file in &mut files.files {
        // If git would store the same content, no line changed.
        file.lines = counts.get(&file.path).copied().unwrap_or(Some((0, 0)));
    }
    files.patch = lines.patch;
    files
}

/// Returns the kind of a change. If several apply, the first one is used.
fn status(file: &DiffFile) -> ChangeStatus {
    match (file.before, file.after) {
        (None, _) => ChangeStatus::Added,
        (_, None) => ChangeStatus::Deleted,
        _ if file.previous_path.is_some() => ChangeStatus::Renamed,
        (Some(before), Some(after)) if before.mode != after.mode => {
            match (before.mode.is_file() && after.mode.is_file(), before.id == after.id) {
                (false, _) => ChangeStatus::TypeChanged,
                (true, false) => ChangeStatus::Modified,
                (true, true) => ChangeStatus::ModeChanged,
            }
        }
        _ => ChangeStatus::Modified,
    }
}

/// Parses the output of `git cat-file --batch` incrementally: a line with id, kind and size, the content, a line break.
#[derive(Default)]
struct BatchReader {
    line: Vec<u8>,
    object: Option<OpenObject>,
    digests: Digests,
    problem: Option<String>,
}

/// An object whose content is being read.
struct OpenObject {
    id: ObjectId,
    size: u64,
    /// Number of bytes that were not read yet.
    left: u64,
    hasher: sha2::Sha256,
}

impl BatchReader {
    fn read(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() && self.problem.is_none() {
            match &mut self.object {
                Some(object) if object.left > 0 => {
                    let count = usize::try_from(object.left).unwrap_or(usize::MAX).min(piece.len());
                    object.hasher.update(&piece[..count]);
                    object.left -= count as u64;
                    piece = &piece[count..];
                }
                Some(_) => {
                    if let Some(OpenObject { id, size, hasher, .. }) = self.object.take() {
                        let hash: [u8; 32] = hasher.finalize().into();
                        self.digests.insert(id, (size, Sha256Hash::from_bytes(hash)));
                    }
                    // The line break after the content.
                    piece = &piece[1..];
                }
                None => {
                    let end = piece.iter().position(|byte| *byte == b'\n');
                    self.line.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
                    piece = &piece[end.map_or(piece.len(), |end| end + 1)..];
                    if end.is_some() {
                        self.read_header();
                    }
                }
            }
        }
    }

    fn read_header(&mut self) {
        let line = std::mem::take(&mut self.line);
        let mut fields = line.split(|byte| *byte == b' ');
        let id = fields.next().and_then(ObjectId::from_hex);
        let size = fields.nth(1).and_then(|size| std::str::from_utf8(size).ok()?.parse::<u64>().ok());
        match id.zip(size) {
            Some((id, size)) => {
                self.object = Some(OpenObject { id, size, left: size, hasher: sha2::Sha256::new() });
            }
            None => self.problem = Some(String::from_utf8_lossy(&line).into_owned()),
        }
    }
}
