//! Reads a working tree: git says what is tracked, staged and ignored, while tracked files are looked at here.

use std::collections::{BTreeMap, HashMap, HashSet};

use baton_core::Sha256Hash;
use sha2::Digest as _;

use crate::attributes::{ATTRIBUTES, Conversion};
use crate::error::GitError;
use crate::index::{Index, IndexStamp};
use crate::inspector::{Inspector, Unasked};
use crate::moment::Moment;
use crate::object::{FileMode, ObjectId};
use crate::pack::{NewObject, ObjectKind, PackError};
use crate::path::{RepoPath, is_within, quoted};
use crate::program::Invocation;
use crate::repository::Repository;
use crate::snapshot::{Snapshot, StagedChange, TreeFile};
use crate::stat_cache::{KnownContent, StatCache};
use crate::status::{Status, StatusCode, StatusEntry, StatusSide, Unstaged};
use crate::tree::build;
use crate::vault::Vault;
use crate::view::View;
use crate::worktree::{Found, FoundFile, Item, Look, Sight, Source, content};

/// How often a checkout may change while it is being read.
const ATTEMPTS: usize = 5;

/// A working tree that was read.
#[derive(Debug)]
pub struct Capture {
    snapshot: Snapshot,
    status: Status,
    files: Vec<TreeFile>,
    withheld: Option<Withheld>,
}

/// The hashes of what was looked at and may not be stored, by path.
pub(crate) type Withheld = HashMap<RepoPath, Sha256Hash>;

impl Capture {
    /// What to remember of it.
    pub const fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What git said about it.
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// Every file of the tree, in the order of paths.
    pub fn files(&self) -> &[TreeFile] {
        &self.files
    }

    /// What is known of the files whose content may not be stored; none if everything is.
    pub(crate) const fn withheld(&self) -> Option<&Withheld> {
        self.withheld.as_ref()
    }
}

/// Whether the objects of a capture are to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Objects,
    /// Nothing, if the tree is this one or something in it may not be stored.
    ObjectsUnless(ObjectId),
    /// Nothing at all.
    Nothing,
}

impl Repository {
    /// Reads the working tree and stores in the vault what `HEAD` does not have of it, durably.
    ///
    /// # Errors
    ///
    /// [`GitError::Changing`] if the checkout does not hold still, [`GitError::Unreadable`] for a file that cannot be
    /// read, and whatever git says.
    pub fn capture(&self, vault: &Vault) -> Result<Capture, GitError> {
        self.capture_inspected(vault, &mut Unasked)
    }

    /// The same, if the inspector permits it. It sees every file that `HEAD` does not have, before anything is stored.
    ///
    /// # Errors
    ///
    /// [`GitError::Withheld`] if it does not; then nothing was stored. Else as [`capture`](Self::capture).
    pub fn capture_inspected(
        &self,
        vault: &Vault,
        inspector: &mut dyn Inspector,
    ) -> Result<Capture, GitError> {
        self.capture_keeping(vault, Keep::Objects, inspector)
    }

    /// Reads the working tree and stores nothing.
    ///
    /// # Errors
    ///
    /// As [`capture`](Self::capture).
    pub fn glimpse(&self, vault: &Vault) -> Result<Capture, GitError> {
        self.capture_keeping(vault, Keep::Nothing, &mut Unasked)
    }

    pub(crate) fn capture_keeping(
        &self,
        vault: &Vault,
        keep: Keep,
        inspector: &mut dyn Inspector,
    ) -> Result<Capture, GitError> {
        let mut last = Err(GitError::Changing { path: RepoPath::new("") });
        for _ in 0..ATTEMPTS {
            inspector.begin();
            last = attempt(self, vault, keep, inspector);
            if !matches!(last, Err(GitError::Changing { .. })) {
                break;
            }
        }
        last
    }
}

fn attempt(
    repository: &Repository,
    vault: &Vault,
    keep: Keep,
    inspector: &mut dyn Inspector,
) -> Result<Capture, GitError> {
    let now = Moment::now(vault.folder())?;
    let cache = StatCache::load(&vault.stat_cache(), vault.object_format());
    let index = Index::read(repository, vault.folder())?;
    let tracked_items = tracked_items(&index, vault.excluded());
    let mut look = Look::new(repository, &index, &cache);
    look.reread = vault.rereads();
    look.conversion = Conversion::possible(repository, &index);
    // Where nothing is converted, whether a tracked file changed is found out here alone.
    let quiet = match look.conversion {
        Conversion::None => index.quiet_copy(vault.folder())?,
        Conversion::LineEndings | Conversion::Any => None,
    };
    let (status, tracked) = std::thread::scope(|scope| {
        let quiet = quiet.as_ref().map(tempfile::NamedTempFile::path);
        let status = scope.spawn(move || Status::ask(repository, vault.excluded(), quiet));
        if look.conversion == Conversion::LineEndings && cache.len() < tracked_items.len() / 2 {
            look.stored_sizes = stored_sizes(repository, &index);
        }
        let tracked = look.at(&tracked_items);
        (status.join(), tracked)
    });
    let status = status.unwrap_or_else(|_| Err(GitError::unexpected("status", "the listener broke off")));
    let (mut status, mut tracked) = (status?, tracked?);
    if IndexStamp::of(repository) != index.stamp {
        return Err(GitError::Changing { path: RepoPath::new(".git/index") });
    }
    let untracked_paths = untracked_paths(&status);
    let untracked_items: Vec<Item<'_>> =
        untracked_paths.iter().map(|path| Item { path, entry: None }).collect();
    let untracked = look.at(&untracked_items)?;
    let attributed = [tracked.attributed.as_slice(), &untracked.attributed].concat();
    let conversion = look.conversion.max(conversion_in(repository, &attributed));
    if conversion > look.conversion {
        // A file of attributes that nobody tracks.
        look.conversion = conversion;
        tracked = look.at(&tracked_items)?;
        status = Status::ask(repository, vault.excluded(), None)?;
    } else if quiet.is_some() {
        status.add_unstaged(unstaged(&tracked_items, &tracked));
    }
    let view = View::new(&status, merged(&tracked_items, &tracked, &untracked_items, &untracked));
    let raw = build(vault.object_format(), view.inputs(&HashMap::new()));
    let wanted = match keep {
        Keep::Objects => true,
        Keep::ObjectsUnless(tree) => tree != raw.id,
        Keep::Nothing => false,
    };
    let withheld = if wanted { inspect(repository, &view, keep, inspector)? } else { None };
    if withheld.is_some() && keep == Keep::Objects {
        return Err(GitError::Withheld);
    }
    let stored = wanted && withheld.is_none();
    if withheld.is_none() {
        remember(vault, &cache, now, &view, conversion);
    }
    let patch_ids = match conversion {
        Conversion::None => HashMap::new(),
        Conversion::LineEndings | Conversion::Any => {
            patch_ids(repository, stored.then_some(vault), &view, conversion)?
        }
    };
    let patch = (!patch_ids.is_empty()).then(|| build(vault.object_format(), view.inputs(&patch_ids)));
    let not_checked_out = view.not_checked_out(vault);
    let patch_tree = patch.as_ref().map_or(raw.id, |patch| patch.id);
    let snapshot = Snapshot {
        head: status.head.clone(),
        tree: raw.id,
        patch_tree,
        clean: view.staged.is_empty() && !patch.as_ref().unwrap_or(&raw).differs,
        staged: staged_changes(&status),
        nested: view.nested(),
        not_checked_out: not_checked_out.as_ref().map(|(id, _)| *id),
        stash: status.stash.clone(),
        large: large_files(repository, &view),
    };
    if stored {
        let trees = raw.objects.into_iter().chain(patch.into_iter().flat_map(|patch| patch.objects));
        store(repository, vault, &view, trees.collect(), not_checked_out)?;
    }
    let files = view.files();
    Ok(Capture { snapshot, status, files, withheld })
}

/// Files that are too large for a patch.
fn large_files(repository: &Repository, view: &View<'_>) -> Vec<RepoPath> {
    let least = repository.git().limits().large_file_bytes;
    let is_large = |found: &Found| matches!(found, Found::File(file) if file.stat.size >= least);
    view.found.iter().filter(|(_, found)| is_large(found)).map(|(item, _)| RepoPath::new(item.path)).collect()
}

/// Shows the inspector every file that `HEAD` does not have; answers what they are if they may not be stored. Hashes are
/// wanted only where that is no reason to give up.
fn inspect(
    repository: &Repository,
    view: &View<'_>,
    keep: Keep,
    inspector: &mut dyn Inspector,
) -> Result<Option<Withheld>, GitError> {
    let mut seen = Withheld::new();
    for (item, found) in &view.found {
        let path = RepoPath::new(item.path);
        match found {
            Found::File(file) if !view.in_head(item, file.mode, file.id) => {
                let mut hasher = sha2::Sha256::new();
                inspector.look(&path, &[]);
                content(repository.root(), item.path, &file.stat, &mut |piece| {
                    if keep != Keep::Objects {
                        hasher.update(piece);
                    }
                    inspector.look(&path, piece);
                })?;
                seen.insert(path, Sha256Hash::from_bytes(hasher.finalize().into()));
            }
            Found::Nested(_) if item.entry.is_none() => inspector.look(&path, &[]),
            _ => {}
        }
    }
    Ok(if inspector.permits() { None } else { Some(seen) })
}

/// The tracked paths, once each: in a conflict the index has a path up to three times.
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

/// How tracked files differ from the index. Conflicts and nested repositories are git's to tell.
fn unstaged<'a>(items: &[Item<'a>], sight: &Sight) -> BTreeMap<&'a [u8], Unstaged> {
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
    items.iter().zip(&sight.found).filter_map(change).collect()
}

/// What files of attributes in some folders may ask for.
fn conversion_in(repository: &Repository, folders: &[Vec<u8>]) -> Conversion {
    let distinct: HashSet<&Vec<u8>> = folders.iter().collect();
    let by_folder = distinct.into_iter().map(|folder| {
        let folder = RepoPath::new(folder.as_slice());
        Conversion::by_file(&repository.root().join(folder.as_path()).join(ATTRIBUTES))
    });
    by_folder.max().unwrap_or(Conversion::None)
}

/// How large the objects of tracked files are, if git can tell that faster than the files are read: it can where
/// objects are packed. Only a help: what is not known is read.
fn stored_sizes(repository: &Repository, index: &Index) -> HashMap<ObjectId, u64> {
    let files = index.entries().iter().filter(|entry| entry.stage == 0 && entry.mode.is_file());
    let ids: Vec<ObjectId> = files.map(|entry| entry.id).collect();
    // As git itself estimates it: ids are spread evenly over the folders.
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

/// What git calls untracked, in the order of paths; repositories without the slash at their end.
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
                let announced = *unstaged == StatusCode::Added;
                let change = if announced { StatusCode::Added } else { *staged };
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
    seen_tracked: &Sight,
    untracked: &[Item<'a>],
    seen_untracked: &Sight,
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

/// Remembers what was read, if it settled before the reading began.
fn remember(vault: &Vault, cache: &StatCache, now: Moment, view: &View<'_>, conversion: Conversion) {
    // Where files are converted, whether the index speaks of a file's own bytes had to be asked for.
    let known = |file: &FoundFile| {
        file.source == Source::Index && (conversion == Conversion::None || !file.mode.is_file())
    };
    let worth = |file: &FoundFile| !known(file) && file.stat.changed_at.is_settled_before(now);
    let files = || {
        view.found.iter().filter_map(|(item, found)| match found {
            Found::File(file) if worth(file) => Some((item.path, file)),
            _ => None,
        })
    };
    let unchanged = files().all(|(_, file)| file.source == Source::Cache) && files().count() == cache.len();
    if !unchanged {
        let known = |file: &FoundFile| KnownContent { id: file.id, without_returns: file.without_returns };
        let entries = files().map(|(path, file)| (path, file.stat, known(file)));
        StatCache::save(&vault.stat_cache(), vault.object_format(), entries);
    }
}

/// Lets git convert what it would convert; answers the ids that differ from those of the raw bytes. What they stand for
/// is stored if there is a vault for it.
fn patch_ids<'a>(
    repository: &Repository,
    vault: Option<&Vault>,
    view: &View<'a>,
    conversion: Conversion,
) -> Result<HashMap<&'a [u8], ObjectId>, GitError> {
    let mut ids = HashMap::new();
    let mut asked = Vec::new();
    // Git cannot compare a file whose filter it may not run, so that for those the status information decides.
    let filters = !repository.configuration().subsections("filter").is_empty();
    for (item, found) in &view.found {
        let Found::File(file) = found else { continue };
        if !file.mode.is_file() || view.in_head(item, file.mode, file.id) {
            continue;
        }
        match item.entry {
            Some(entry) if entry.id == file.id => {}
            Some(entry)
                if (filters && file.same_stat || view.is_unchanged_to_git(item))
                    && view.in_head(item, file.mode, entry.id) =>
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
    let Some(vault) = vault.filter(|_| !differing.is_empty()) else {
        ids.extend(differing);
        return Ok(ids);
    };
    if convert_into(repository, vault, &paths).is_ok() {
        ids.extend(differing);
        return Ok(ids);
    }
    // Git refuses to store some file, as one that is not in the encoding that it is said to have: that one stays raw.
    for (path, id) in differing {
        if convert_into(repository, vault, &[path]).is_ok() {
            ids.insert(path, id);
        }
    }
    Ok(ids)
}

/// The ids that files would have in git.
fn convert(repository: &Repository, paths: &[&[u8]]) -> Result<Vec<ObjectId>, GitError> {
    conversion(repository, paths).output().and_then(|output| read_ids(&output, paths.len()))
}

/// Stores files in the vault as they would be in git. The user's objects are not at hand for this: git would renew
/// their time stamps instead of writing its own.
fn convert_into(repository: &Repository, vault: &Vault, paths: &[&[u8]]) -> Result<(), GitError> {
    let call = conversion(repository, paths).arguments(["-w"]);
    call.variable("GIT_OBJECT_DIRECTORY", vault.objects()).output().map(|_| ())
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
    vault: &Vault,
    view: &View<'_>,
    trees: Vec<(ObjectId, Vec<u8>)>,
    not_checked_out: Option<(ObjectId, Vec<u8>)>,
) -> Result<(), GitError> {
    let mut objects = Vec::new();
    let mut paths = Vec::new();
    for (item, found) in &view.found {
        let Found::File(file) = found else { continue };
        if view.in_head(item, file.mode, file.id) {
            continue;
        }
        let (path, stat) = (item.path, file.stat);
        paths.push(path);
        objects.push(NewObject {
            id: file.id,
            kind: ObjectKind::Blob,
            size: stat.size,
            pour: Box::new(move |sink| content(repository.root(), path, &stat, sink)),
        });
    }
    let in_memory = trees.iter().map(|object| (ObjectKind::Tree, object));
    let in_memory = in_memory.chain(not_checked_out.iter().map(|object| (ObjectKind::Blob, object)));
    for (kind, (id, bytes)) in in_memory {
        let pour = Box::new(move |sink: &mut dyn FnMut(&[u8])| {
            sink(bytes);
            Ok(())
        });
        objects.push(NewObject { id: *id, kind, size: bytes.len() as u64, pour });
    }
    vault.store(objects).map_err(|error| match error {
        PackError::Failed(error) => error,
        PackError::OtherContent => GitError::Changing { path: RepoPath::new("") },
    })
}
