//! Reads a working tree. Git reports what is tracked, staged and ignored; tracked files are examined here.

use std::collections::{BTreeMap, HashMap, HashSet};

use baton_core::Sha256Hash;
use baton_core::task::Inspector;
use sha2::Digest as _;

use crate::attributes::{ATTRIBUTES, Conversion};
use crate::error::GitError;
use crate::index::{Index, IndexStamp};
use crate::inspector::PermitAll;
use crate::object::{FileMode, ObjectHasher, ObjectId};
use crate::object_store::ObjectStore;
use crate::pack::{NewObject, ObjectKind, PackError};
use crate::path::{RepoPath, is_within, quoted};
use crate::program::Invocation;
use crate::repository::Repository;
use crate::snapshot::{Snapshot, StagedChange, TreeFile};
use crate::stat_cache::{KnownContent, StatCache};
use crate::stat_time::StatTime;
use crate::status::{Status, StatusCode, StatusEntry, StatusSide, Unstaged};
use crate::tree::build;
use crate::worktree::{Found, FoundFile, Item, ScanResult, Source, TreeScan, content};
use crate::worktree_files::WorktreeFiles;

/// Maximum number of attempts if the checkout changes while it is read.
const MAX_ATTEMPTS: usize = 5;

/// A captured working tree.
#[derive(Debug)]
pub struct Capture {
    pub snapshot: Snapshot,
    /// Status as reported by git.
    pub status: Status,
    /// Every file of the tree, sorted by path.
    pub files: Vec<TreeFile>,
    /// Files that may not be stored; `None` if everything may be stored.
    pub(crate) withheld: Option<Withheld>,
}

/// Size and hash of examined files that may not be stored, by path.
pub(crate) type Withheld = HashMap<RepoPath, (u64, Sha256Hash)>;

/// Whether to store the objects of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Objects,
    /// Nothing if the tree equals this one, or if the inspector rejects a file.
    ObjectsUnless(ObjectId),
    Nothing,
}

impl Repository {
    /// Reads the working tree and stores in the object store, durably, everything that `HEAD` does not have. The
    /// inspector sees it first.
    ///
    /// # Errors
    ///
    /// [`GitError::Withheld`] if the inspector rejects the content; nothing is stored then. [`GitError::Changing`] if the
    /// checkout keeps changing, [`GitError::Unreadable`] for an unreadable file, and errors of git.
    pub fn capture(
        &self,
        object_store: &ObjectStore,
        inspector: &mut dyn Inspector,
    ) -> Result<Capture, GitError> {
        self.capture_keeping(object_store, Keep::Objects, inspector)
    }

    /// Reads the working tree without storing anything.
    ///
    /// # Errors
    ///
    /// As [`capture`](Self::capture).
    pub fn capture_without_storing(&self, object_store: &ObjectStore) -> Result<Capture, GitError> {
        self.capture_keeping(object_store, Keep::Nothing, &mut PermitAll)
    }

    pub(crate) fn capture_keeping(
        &self,
        object_store: &ObjectStore,
        keep: Keep,
        inspector: &mut dyn Inspector,
    ) -> Result<Capture, GitError> {
        let mut last = Err(GitError::Changing { path: RepoPath::new("") });
        for _ in 0..MAX_ATTEMPTS {
            inspector.restart();
            last = attempt(self, object_store, keep, inspector);
            if !matches!(last, Err(GitError::Changing { .. })) {
                break;
            }
        }
        last
    }
}

fn attempt(
    repository: &Repository,
    object_store: &ObjectStore,
    keep: Keep,
    inspector: &mut dyn Inspector,
) -> Result<Capture, GitError> {
    let now = StatTime::now(object_store.folder())?;
    let cache = StatCache::load(&object_store.stat_cache(), object_store.object_format());
    let index = Index::read(repository, object_store.folder())?;
    let tracked_items = tracked_items(&index, object_store.excluded());
    let mut scan = TreeScan::new(repository, &index, &cache);
    scan.reread = object_store.rereads();
    scan.conversion = Conversion::possible(repository, &index);
    // Where nothing is converted, changes of tracked files are detected here and not by git.
    let unchanged_index = match scan.conversion {
        Conversion::None => index.assume_unchanged_copy(object_store.folder())?,
        Conversion::LineEndings | Conversion::Any => None,
    };
    let (status, tracked) = std::thread::scope(|scope| {
        let unchanged_index = unchanged_index.as_ref().map(tempfile::NamedTempFile::path);
        let status = scope.spawn(move || Status::read(repository, object_store.excluded(), unchanged_index));
        if scan.conversion == Conversion::LineEndings && cache.len() < tracked_items.len() / 2 {
            scan.stored_sizes = stored_sizes(repository, &index);
        }
        let tracked = scan.run(&tracked_items);
        (status.join(), tracked)
    });
    let status = status.unwrap_or_else(|_| Err(GitError::unexpected("status", "the thread panicked")));
    let (mut status, mut tracked) = (status?, tracked?);
    if IndexStamp::of(repository) != index.stamp {
        return Err(GitError::Changing { path: RepoPath::new(".git/index") });
    }
    let untracked_paths = untracked_paths(&status);
    let untracked_items: Vec<Item<'_>> =
        untracked_paths.iter().map(|path| Item { path, entry: None }).collect();
    let untracked = scan.run(&untracked_items)?;
    let attributed = [tracked.attributed.as_slice(), &untracked.attributed].concat();
    let conversion = scan.conversion.max(conversion_in(repository, &attributed));
    if conversion > scan.conversion {
        // An untracked attribute file was found that allows more conversions.
        scan.conversion = conversion;
        tracked = scan.run(&tracked_items)?;
        status = Status::read(repository, object_store.excluded(), None)?;
    } else if unchanged_index.is_some() {
        status.add_unstaged(unstaged(&tracked_items, &tracked));
    }
    let worktree =
        WorktreeFiles::new(&status, merged(&tracked_items, &tracked, &untracked_items, &untracked));
    let (recorded, files) = std::thread::scope(|scope| {
        if keep == Keep::Objects {
            // The changes since `HEAD` will ask for these. If this fails, they report the reason.
            scope.spawn(|| object_store.digests(&worktree.replaced()));
        }
        let files = scope.spawn(|| worktree.files());
        (record(repository, object_store, keep, inspector, (&status, &worktree), conversion), files.join())
    });
    let (snapshot, withheld) = recorded?;
    if withheld.is_none() {
        update_stat_cache(object_store, &cache, now, &worktree, conversion);
    }
    let files = files.map_err(|_| GitError::unexpected("status", "the thread panicked"))?;
    Ok(Capture { snapshot, status, files, withheld })
}

/// Builds the snapshot and stores its objects. Also returns the files if they may not be stored.
fn record(
    repository: &Repository,
    object_store: &ObjectStore,
    keep: Keep,
    inspector: &mut dyn Inspector,
    (status, worktree): (&Status, &WorktreeFiles<'_>),
    conversion: Conversion,
) -> Result<(Snapshot, Option<Withheld>), GitError> {
    let (raw, (wanted, withheld)) = std::thread::scope(|scope| {
        let building = scope.spawn(|| build(object_store.object_format(), worktree.inputs(&HashMap::new())));
        // Whether files must be inspected does not depend on the tree if they are stored in any case.
        let inspected = match keep {
            Keep::Objects => Some(inspect(repository, object_store, worktree, inspector)),
            Keep::ObjectsUnless(_) | Keep::Nothing => None,
        };
        let raw = building.join().map_err(|_| GitError::unexpected("status", "the thread panicked"))?;
        let wanted = match keep {
            Keep::Objects => true,
            Keep::ObjectsUnless(tree) => tree != raw.id,
            Keep::Nothing => false,
        };
        let withheld = match inspected {
            Some(withheld) => withheld?,
            None if wanted => inspect(repository, object_store, worktree, inspector)?,
            None => None,
        };
        Ok::<_, GitError>((raw, (wanted, withheld)))
    })?;
    if withheld.is_some() && keep == Keep::Objects {
        return Err(GitError::Withheld);
    }
    let stored = wanted && withheld.is_none();
    let patch_ids = match conversion {
        Conversion::None => HashMap::new(),
        Conversion::LineEndings | Conversion::Any => {
            patch_ids(repository, stored.then_some(object_store), worktree, conversion)?
        }
    };
    let patch =
        (!patch_ids.is_empty()).then(|| build(object_store.object_format(), worktree.inputs(&patch_ids)));
    let not_checked_out = worktree.not_checked_out(object_store);
    let patch_tree = patch.as_ref().map_or(raw.id, |patch| patch.id);
    let snapshot = Snapshot {
        head: status.head.clone(),
        tree: raw.id,
        patch_tree,
        clean: worktree.staged.is_empty() && !patch.as_ref().unwrap_or(&raw).differs,
        staged: staged_changes(status),
        nested: worktree.nested(),
        not_checked_out: not_checked_out.as_ref().map(|(id, _)| *id),
        stash: status.stash.clone(),
        large: large_files(repository, worktree),
    };
    if stored {
        let trees = raw.objects.into_iter().chain(patch.into_iter().flat_map(|patch| patch.objects));
        store(repository, object_store, worktree, trees.collect(), not_checked_out)?;
    }
    Ok((snapshot, withheld))
}

/// Returns the files that are too large for a patch.
fn large_files(repository: &Repository, worktree: &WorktreeFiles<'_>) -> Vec<RepoPath> {
    let least = repository.git().limits().large_file_bytes;
    let is_large = |found: &Found| matches!(found, Found::File(file) if file.stat.size >= least);
    worktree
        .found
        .iter()
        .filter(|(_, found)| is_large(found))
        .map(|(item, _)| RepoPath::new(item.path))
        .collect()
}

/// Shows the inspector every file that `HEAD` does not have. Returns these files if they may not be stored.
fn inspect(
    repository: &Repository,
    object_store: &ObjectStore,
    worktree: &WorktreeFiles<'_>,
    inspector: &mut dyn Inspector,
) -> Result<Option<Withheld>, GitError> {
    let mut seen = Withheld::new();
    for (item, found) in &worktree.found {
        match found {
            Found::File(file) if !worktree.in_head(item, file.mode, file.id) => {
                let path = RepoPath::new(item.path);
                let name = path.to_string();
                let mut id = ObjectHasher::new(object_store.object_format(), "blob", file.stat.size);
                let mut hasher = sha2::Sha256::new();
                inspector.inspect(&name, &[]);
                content(repository.root(), item.path, &file.stat, &mut |piece| {
                    id.update(piece);
                    hasher.update(piece);
                    inspector.inspect(&name, piece);
                })?;
                let hash = Sha256Hash::from_bytes(hasher.finalize().into());
                let digest = (file.stat.size, hash);
                // The same bytes have this id and this hash.
                if id.finish() == file.id {
                    object_store.known_digests().insert(file.id, digest);
                }
                seen.insert(path, digest);
            }
            Found::Nested(_) if item.entry.is_none() => {
                inspector.inspect(&RepoPath::new(item.path).to_string(), &[]);
            }
            _ => {}
        }
    }
    Ok(inspector.check().is_err().then_some(seen))
}

/// Returns each tracked path once: during a conflict the index has a path up to three times.
fn tracked_items<'a>(index: &'a Index, excluded: &[RepoPath]) -> Vec<Item<'a>> {
    let mut items: Vec<Item<'a>> = Vec::with_capacity(index.entries().len());
    for entry in index.entries() {
        let path = index.path(entry);
        let repeated = entry.stage > 0 && items.last().is_some_and(|last| last.path == path);
        if !repeated && !excluded.iter().any(|folder| is_within(path, folder.as_bytes())) {
            items.push(Item { path, entry: Some(entry) });
        }
    }
    items
}

/// Returns the differences between tracked files and the index. Conflicts and nested repositories are reported by git.
fn unstaged<'a>(items: &[Item<'a>], scanned: &ScanResult) -> BTreeMap<&'a [u8], Unstaged> {
    let change = |(item, found): (&Item<'a>, &Found)| {
        let entry = item.entry.filter(|entry| entry.stage == 0 && entry.mode != FileMode::Nested)?;
        let (code, worktree) = match found {
            Found::Absent => (StatusCode::Deleted, None),
            Found::File(file) if file.mode.is_file() != entry.mode.is_file() => {
                (StatusCode::TypeChanged, Some(file.mode))
            }
            Found::File(file) if (file.mode, file.id) != (entry.mode, entry.id) => {
                (StatusCode::Modified, Some(file.mode))
            }
            _ => return None,
        };
        let index = StatusSide { mode: entry.mode, id: entry.id };
        Some((item.path, Unstaged { code, index, worktree }))
    };
    items.iter().zip(&scanned.found).filter_map(change).collect()
}

/// Returns the conversions that the attribute files of some folders may request.
fn conversion_in(repository: &Repository, folders: &[Vec<u8>]) -> Conversion {
    let distinct: HashSet<&Vec<u8>> = folders.iter().collect();
    let by_folder = distinct.into_iter().map(|folder| {
        let folder = RepoPath::new(folder.as_slice());
        Conversion::by_file(&repository.root().join(folder.as_path()).join(ATTRIBUTES))
    });
    by_folder.max().unwrap_or(Conversion::None)
}

/// Returns the sizes of the stored objects of tracked files, if git can report them faster than the files can be read,
/// which requires packed objects. This is an optimization: files of unknown size are read.
fn stored_sizes(repository: &Repository, index: &Index) -> HashMap<ObjectId, u64> {
    let files = index.entries().iter().filter(|entry| entry.stage == 0 && entry.mode.is_file());
    let ids: Vec<ObjectId> = files.map(|entry| entry.id).collect();
    // Like git's own estimate: object ids are distributed evenly over the folders.
    let loose =
        std::fs::read_dir(repository.common_dir().join("objects/17")).map_or(0, |list| list.count() * 256);
    if ids.len() < repository.git().limits().files_worth_a_call
        || loose > ids.len() / 8
        || repository.configuration().is_partial_clone()
    {
        return HashMap::new();
    }
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let arguments = ["--batch-check=%(objectsize)", "--buffer"];
    let Ok(output) = repository.call("cat-file").arguments(arguments).input(input.into_bytes()).output()
    else {
        return HashMap::new();
    };
    let sizes = output.split(|byte| *byte == b'\n').map(|line| std::str::from_utf8(line).ok()?.parse().ok());
    ids.into_iter().zip(sizes).filter_map(|(id, size)| Some((id, size?))).collect()
}

/// Returns the untracked paths, sorted; nested repositories without the trailing slash.
fn untracked_paths(status: &Status) -> Vec<Vec<u8>> {
    let mut paths: Vec<Vec<u8>> = status
        .entries
        .iter()
        .filter_map(|entry| match entry {
            StatusEntry::Untracked { path } => {
                Some(path.as_bytes().strip_suffix(b"/").unwrap_or(path.as_bytes()).to_vec())
            }
            _ => None,
        })
        .collect();
    paths.sort_unstable();
    paths
}

fn staged_changes(status: &Status) -> Vec<StagedChange> {
    let mut staged: Vec<StagedChange> = status
        .entries
        .iter()
        .filter_map(|entry| match entry {
            StatusEntry::Changed { path, staged, unstaged, index, .. } => {
                let is_intent_to_add = *unstaged == StatusCode::Added;
                let change = if is_intent_to_add { StatusCode::Added } else { *staged };
                (change != StatusCode::Unmodified).then(|| StagedChange {
                    path: path.clone(),
                    change,
                    index: *index,
                })
            }
            StatusEntry::Unmerged { path, .. } => {
                Some(StagedChange { path: path.clone(), change: StatusCode::Unmerged, index: None })
            }
            StatusEntry::Untracked { .. } => None,
        })
        .collect();
    staged.sort_by(|a, b| a.path.cmp(&b.path));
    staged
}

fn merged<'a>(
    tracked: &[Item<'a>],
    seen_tracked: &ScanResult,
    untracked: &[Item<'a>],
    seen_untracked: &ScanResult,
) -> Vec<(Item<'a>, Found)> {
    let mut all = Vec::with_capacity(tracked.len() + untracked.len());
    let mut left = tracked.iter().copied().zip(seen_tracked.found.iter().copied()).peekable();
    let mut right = untracked.iter().copied().zip(seen_untracked.found.iter().copied()).peekable();
    while let Some((item, _)) = right.peek() {
        while let Some(earlier) = left.next_if(|(other, _)| other.path < item.path) {
            all.push(earlier);
        }
        all.extend(right.next());
    }
    all.extend(left);
    all
}

/// Caches the ids of files that had settled before the capture began.
fn update_stat_cache(
    object_store: &ObjectStore,
    cache: &StatCache,
    now: StatTime,
    worktree: &WorktreeFiles<'_>,
    conversion: Conversion,
) {
    // Where files are converted, it is not cheap to find out whether the index refers to raw bytes, so the result is
    // cached.
    let is_known_from_index = |file: &FoundFile| {
        file.source == Source::Index && (conversion == Conversion::None || !file.mode.is_file())
    };
    let is_cacheable =
        |file: &FoundFile| !is_known_from_index(file) && file.stat.changed_at.is_settled_before(now);
    let files = || {
        worktree.found.iter().filter_map(|(item, found)| match found {
            Found::File(file) if is_cacheable(file) => Some((item.path, file)),
            _ => None,
        })
    };
    let unchanged = files().all(|(_, file)| file.source == Source::Cache) && files().count() == cache.len();
    if !unchanged {
        let content_of =
            |file: &FoundFile| KnownContent { id: file.id, without_returns: file.without_returns };
        let entries = files().map(|(path, file)| (path, file.stat, content_of(file)));
        StatCache::save(&object_store.stat_cache(), object_store.object_format(), entries);
    }
}

/// Lets git convert files that need it and returns the ids that differ from those of the raw bytes. Stores the
/// converted objects if an object store is given.
fn patch_ids<'a>(
    repository: &Repository,
    object_store: Option<&ObjectStore>,
    worktree: &WorktreeFiles<'a>,
    conversion: Conversion,
) -> Result<HashMap<&'a [u8], ObjectId>, GitError> {
    let mut ids = HashMap::new();
    let mut asked = Vec::new();
    // Git cannot compare a file whose filter must not run, so for such files the stat information decides.
    let filters = !repository.configuration().subsections("filter").is_empty();
    for (item, found) in &worktree.found {
        let Found::File(file) = found else { continue };
        if !file.mode.is_file() || worktree.in_head(item, file.mode, file.id) {
            continue;
        }
        match item.entry {
            Some(entry) if entry.id == file.id => {}
            Some(entry)
                if (filters && file.same_stat || worktree.is_unchanged_to_git(item))
                    && worktree.in_head(item, file.mode, entry.id) =>
            {
                ids.insert(item.path, entry.id);
            }
            _ if conversion == Conversion::LineEndings && file.without_returns => {}
            _ => asked.push((item.path, file)),
        }
    }
    if asked.is_empty() {
        return Ok(ids);
    }
    let paths: Vec<&[u8]> = asked.iter().map(|(path, _)| *path).collect();
    let converted = convert(repository, &paths)?;
    let differing = asked.iter().zip(converted).filter(|((_, file), id)| file.id != *id);
    let differing: Vec<(&'a [u8], ObjectId)> = differing.map(|((path, _), id)| (*path, id)).collect();
    let paths: Vec<&[u8]> = differing.iter().map(|(path, _)| *path).collect();
    let Some(object_store) = object_store.filter(|_| !differing.is_empty()) else {
        ids.extend(differing);
        return Ok(ids);
    };
    if convert_into(repository, object_store, &paths).is_ok() {
        ids.extend(differing);
        return Ok(ids);
    }
    // Git refuses to store a file that is invalid in its declared encoding. Such a file keeps its raw id.
    for (path, id) in differing {
        if convert_into(repository, object_store, &[path]).is_ok() {
            ids.insert(path, id);
        }
    }
    Ok(ids)
}

/// Returns the ids that git would assign to files.
fn convert(repository: &Repository, paths: &[&[u8]]) -> Result<Vec<ObjectId>, GitError> {
    conversion(repository, paths).output().and_then(|output| read_ids(&output, paths.len()))
}

/// Stores files in the object store as git would store them. The user's objects are not accessible to this call: git would
/// update their time stamps instead of writing new objects.
fn convert_into(
    repository: &Repository,
    object_store: &ObjectStore,
    paths: &[&[u8]],
) -> Result<(), GitError> {
    let call = conversion(repository, paths).arguments(["-w"]);
    call.variable("GIT_OBJECT_DIRECTORY", object_store.objects()).output().map(|_| ())
}

fn conversion<'a>(repository: &'a Repository, paths: &[&[u8]]) -> Invocation<'a> {
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(quoted(path).as_bytes());
        input.push(b'\n');
    }
    let call = repository.call("hash-object").arguments(["--stdin-paths"]);
    call.setting("core.safecrlf", "false").input(input)
}

fn read_ids(output: &[u8], count: usize) -> Result<Vec<ObjectId>, GitError> {
    let lines = output.split(|byte| *byte == b'\n').take(count);
    let ids: Option<Vec<ObjectId>> = lines.map(ObjectId::from_hex).collect();
    ids.filter(|ids| ids.len() == count)
        .ok_or_else(|| GitError::unexpected("hash-object", "an id is missing"))
}

fn store(
    repository: &Repository,
    object_store: &ObjectStore,
    worktree: &WorktreeFiles<'_>,
    trees: Vec<(ObjectId, Vec<u8>)>,
    not_checked_out: Option<(ObjectId, Vec<u8>)>,
) -> Result<(), GitError> {
    let mut objects = Vec::new();
    for (item, found) in &worktree.found {
        let Found::File(file) = found else { continue };
        if worktree.in_head(item, file.mode, file.id) {
            continue;
        }
        let (path, stat) = (item.path, file.stat);
        objects.push(NewObject {
            id: file.id,
            kind: ObjectKind::Blob,
            size: stat.size,
            write_content: Box::new(move |sink| content(repository.root(), path, &stat, sink)),
        });
    }
    let in_memory = trees.iter().map(|object| (ObjectKind::Tree, object));
    let in_memory = in_memory.chain(not_checked_out.iter().map(|object| (ObjectKind::Blob, object)));
    for (kind, (id, bytes)) in in_memory {
        let write_content = Box::new(move |sink: &mut dyn FnMut(&[u8])| {
            sink(bytes);
            Ok(())
        });
        objects.push(NewObject { id: *id, kind, size: bytes.len() as u64, write_content });
    }
    object_store.store(objects).map_err(|error| match error {
        PackError::Failed(error) => error,
        PackError::OtherContent => GitError::Changing { path: RepoPath::new("") },
    })
}
