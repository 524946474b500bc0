//! The files of a working tree combined with the status of git.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::nested::NestedRepository;
use crate::object::{FileMode, ObjectId};
use crate::object_store::ObjectStore;
use crate::path::RepoPath;
use crate::snapshot::TreeFile;
use crate::status::{Status, StatusCode, StatusEntry, StatusSide};
use crate::tree::TreeInput;
use crate::worktree::{Found, Item};

/// A working tree and its git status.
pub(crate) struct WorktreeFiles<'a> {
    pub(crate) found: Vec<(Item<'a>, Found)>,
    /// Version in `HEAD` by path, where it differs from the index.
    pub(crate) staged: HashMap<&'a [u8], Option<StatusSide>>,
    /// Paths that are in `HEAD` but not in the index, sorted.
    unlisted: Vec<&'a [u8]>,
    /// Paths that git reports as changed in the working tree.
    unstaged: HashSet<&'a [u8]>,
}

impl<'a> WorktreeFiles<'a> {
    pub(crate) fn new(status: &'a Status, found: Vec<(Item<'a>, Found)>) -> Self {
        let (mut staged, mut unlisted, mut unstaged) = (HashMap::new(), Vec::new(), HashSet::new());
        for entry in &status.entries {
            let path = entry.path().as_bytes();
            match entry {
                StatusEntry::Changed { previous_path, staged: code, unstaged: worktree, head, .. } => {
                    if *code != StatusCode::Unmodified {
                        // A renamed file did not exist at its new path.
                        staged.insert(path, head.filter(|_| previous_path.is_none()));
                    }
                    if *code == StatusCode::Deleted {
                        unlisted.push(path);
                    }
                    if *code == StatusCode::Renamed {
                        unlisted.extend(previous_path.as_ref().map(RepoPath::as_bytes));
                    }
                    if *worktree != StatusCode::Unmodified {
                        unstaged.insert(path);
                    }
                }
                StatusEntry::Unmerged { .. } => {
                    staged.insert(path, None);
                    unstaged.insert(path);
                }
                StatusEntry::Untracked { .. } => {}
            }
        }
        unlisted.sort_unstable();
        Self { found, staged, unlisted, unstaged }
    }

    /// Returns true if `HEAD` has the same file at this path.
    pub(crate) fn in_head(&self, item: &Item<'_>, mode: FileMode, id: ObjectId) -> bool {
        let staged = if self.staged.is_empty() { None } else { self.staged.get(item.path) };
        match (staged, item.entry) {
            (Some(head), _) => *head == Some(StatusSide { mode, id }),
            (None, Some(entry)) => !entry.intent_to_add && entry.mode == mode && entry.id == id,
            (None, None) => false,
        }
    }

    /// Returns the files of `HEAD` that the working tree changes or does not have.
    pub(crate) fn replaced(&self) -> BTreeSet<ObjectId> {
        let differs = |item: &Item<'_>, found| {
            side(item, found).is_none_or(|side| !self.in_head(item, side.mode, side.id))
        };
        let from_index =
            self.found.iter().filter(|(item, found)| differs(item, found)).filter_map(|(item, _)| {
                let entry = item.entry.filter(|_| !self.staged.contains_key(item.path))?;
                Some(StatusSide { mode: entry.mode, id: entry.id })
            });
        let from_head = self.staged.values().flatten().copied();
        let files = from_index.chain(from_head).filter(|side| side.mode != FileMode::Nested);
        files.map(|side| side.id).collect()
    }

    /// Returns true if git compared the file with the index and found no difference.
    pub(crate) fn is_unchanged_to_git(&self, item: &Item<'_>) -> bool {
        let marked = |entry: &crate::index::IndexEntry| entry.assume_unchanged || entry.skip_worktree;
        !item.entry.is_none_or(marked) && !self.unstaged.contains(item.path)
    }

    /// Returns the tree entries, with replacement ids for some paths.
    pub(crate) fn inputs(&self, ids: &HashMap<&[u8], ObjectId>) -> impl Iterator<Item = TreeInput<'a>> {
        let mut inputs: Vec<TreeInput<'a>> = Vec::with_capacity(self.found.len() + self.unlisted.len());
        for (item, found) in &self.found {
            let file = side(item, found)
                .map(|side| StatusSide { id: ids.get(item.path).copied().unwrap_or(side.id), ..side });
            let in_head = file.is_some_and(|side| self.in_head(item, side.mode, side.id));
            inputs.push(TreeInput { path: item.path, file, in_head });
        }
        if !self.unlisted.is_empty() {
            let gone = |path: &&'a [u8]| TreeInput { path, file: None, in_head: false };
            inputs.extend(self.unlisted.iter().map(gone));
            inputs.sort_by_key(|input| input.path);
        }
        inputs.into_iter()
    }

    pub(crate) fn nested(&self) -> Vec<NestedRepository> {
        let nested = self.found.iter().filter_map(|(item, found)| match found {
            Found::Nested(commit) => Some(NestedRepository {
                path: RepoPath::new(item.path),
                tracked: item.entry.is_some(),
                commit: *commit,
            }),
            _ => None,
        });
        nested.collect()
    }

    pub(crate) fn not_checked_out(&self, object_store: &ObjectStore) -> Option<(ObjectId, Vec<u8>)> {
        let mut list = Vec::new();
        for (item, found) in &self.found {
            if matches!(found, Found::NotCheckedOut) {
                list.extend_from_slice(item.path);
                list.push(0);
            }
        }
        (!list.is_empty()).then(|| (object_store.object_format().id_of("blob", &list), list))
    }

    pub(crate) fn files(&self) -> Vec<TreeFile> {
        let file = |(item, found): &(Item<'a>, Found)| {
            let StatusSide { mode, id } = side(item, found)?;
            let size_bytes = if let Found::File(file) = found { file.stat.size } else { 0 };
            Some(TreeFile { path: RepoPath::new(item.path), mode, id, size_bytes })
        };
        self.found.iter().filter_map(file).collect()
    }
}

/// Returns the tree entry for what was found.
fn side(item: &Item<'_>, found: &Found) -> Option<StatusSide> {
    match found {
        Found::Absent => None,
        Found::NotCheckedOut => item.entry.map(|entry| StatusSide { mode: entry.mode, id: entry.id }),
        Found::File(file) => Some(StatusSide { mode: file.mode, id: file.id }),
        Found::Nested(commit) => commit.map(|id| StatusSide { mode: FileMode::Nested, id }),
    }
}
