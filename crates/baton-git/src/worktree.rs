//! Scans files of the working tree for their type and content.
//!
//! Folders are opened one by one without following links, so a tracked file is never found through a link that
//! replaced its folder. A file is read only if neither the index nor the cache identifies its content.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::attributes::{ATTRIBUTES, Conversion};
use crate::error::GitError;
use crate::index::{Index, IndexEntry, IndexStat};
use crate::nested::{NestedState, nested_state};
use crate::object::{FileMode, ObjectHasher, ObjectId};
use crate::path::{RepoPath, split_name};
use crate::repository::Repository;
use crate::stat_cache::{CacheCursor, FileStat, KnownContent, StatCache};
use crate::stat_time::StatTime;

/// A path to examine, with its index entry if it is tracked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) entry: Option<&'a IndexEntry>,
}

/// What was found at a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found {
    /// Nothing, or a folder in place of a file.
    Absent,
    /// Nothing, because the sparse checkout omits it.
    NotCheckedOut,
    /// A file or a link.
    File(FoundFile),
    /// A repository, with its commit if it has one.
    Nested(Option<ObjectId>),
}

/// A file or a link that was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundFile {
    pub(crate) mode: FileMode,
    /// Id of the raw bytes.
    pub(crate) id: ObjectId,
    /// True if the file is known to contain no carriage return.
    pub(crate) without_returns: bool,
    pub(crate) stat: FileStat,
    /// Where the id was found.
    pub(crate) source: Source,
    /// True if the stat information of the file equals that of its index entry.
    pub(crate) same_stat: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Index,
    Cache,
    Read,
}

/// Settings and inputs of a scan.
pub(crate) struct TreeScan<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) index: &'a Index,
    pub(crate) cache: &'a StatCache,
    /// Conversions that git may apply, which decide whether the ids of the index are those of raw bytes.
    pub(crate) conversion: Conversion,
    /// Sizes of git's objects, as far as they were requested.
    pub(crate) stored_sizes: HashMap<ObjectId, u64>,
    /// Whether every file is read, even if its stat information is unchanged.
    pub(crate) reread: bool,
    executable_bit: bool,
    symlinks: bool,
    sparse: bool,
}

#[derive(Default)]
pub(crate) struct ScanResult {
    /// One element for each item.
    pub(crate) found: Vec<Found>,
    /// Folders with an attribute file, each ending with `/` unless it is the root.
    pub(crate) attributed: Vec<Vec<u8>>,
}

/// Number of items that a thread processes at a time.
const CHUNK_ITEMS: usize = 512;

/// Maximum number of attempts if a file changes while it is read.
const MAX_READ_ATTEMPTS: usize = 3;

impl<'a> TreeScan<'a> {
    pub(crate) fn new(repository: &'a Repository, index: &'a Index, cache: &'a StatCache) -> Self {
        let flag = |key| repository.configuration().flag(key);
        Self {
            repository,
            index,
            cache,
            conversion: Conversion::Any,
            stored_sizes: HashMap::new(),
            reread: false,
            executable_bit: flag("core.filemode").unwrap_or(true),
            symlinks: flag("core.symlinks").unwrap_or(true),
            sparse: flag("core.sparsecheckout").unwrap_or(false),
        }
    }

    /// Returns true if git stored the file of an entry unmodified, assuming that the file is unchanged since.
    fn is_stored_raw(&self, entry: &IndexEntry, kind: FileType, size: u64) -> bool {
        kind == FileType::Symlink
            || match self.conversion {
                Conversion::None => true,
                // If the size is equal, no carriage return was removed.
                Conversion::LineEndings => self.stored_sizes.get(&entry.id) == Some(&size),
                Conversion::Any => false,
            }
    }

    /// Examines all items, which must be sorted by path.
    pub(crate) fn run(&self, items: &[Item<'_>]) -> Result<ScanResult, GitError> {
        let pieces: Vec<&[Item<'_>]> = items.chunks(CHUNK_ITEMS).collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = pieces.len().min(cores).min(8);
        if threads <= 1 {
            return pieces.into_iter().map(|piece| self.piece(piece)).sum::<Result<_, _>>();
        }
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(pieces.len()));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(piece) = pieces.get(number) else { break };
                        let scanned = self.piece(piece);
                        if scanned.is_err() {
                            next.store(pieces.len(), Ordering::Relaxed);
                        }
                        done.lock().unwrap_or_else(|broken| broken.into_inner()).push((number, scanned));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(|broken| broken.into_inner());
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, scanned)| scanned).sum()
    }

    fn piece(&self, items: &[Item<'_>]) -> Result<ScanResult, GitError> {
        let mut folders = Folders::new(self.repository.root())?;
        let mut cursor = self.cache.cursor();
        let mut buffer = Vec::new();
        let mut found = Vec::with_capacity(items.len());
        for item in items {
            found.push(self.item(item, &mut folders, &mut cursor, &mut buffer)?);
        }
        Ok(ScanResult { found, attributed: folders.attributed })
    }

    fn item(
        &self,
        item: &Item<'_>,
        folders: &mut Folders,
        cursor: &mut CacheCursor<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<Found, GitError> {
        let (folder, name) = split_name(item.path);
        let Some(folder) = folders.enter(folder)? else { return Ok(self.missing(item)) };
        let unreadable = |error| unreadable(item.path, error);
        for _ in 0..MAX_READ_ATTEMPTS {
            let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(self.missing(item)),
                Err(error) => return Err(unreadable(error)),
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            match kind {
                FileType::Directory => return self.folder(item),
                FileType::RegularFile | FileType::Symlink => {}
                _ => return Ok(Found::Absent),
            }
            let mode = self.mode(item, kind, &stat);
            let file_stat = file_stat(&stat);
            let same_stat = item.entry.is_some_and(|entry| has_stat(entry, kind, &file_stat));
            let settled =
                || self.index.written_at.is_some_and(|at| file_stat.changed_at.is_settled_before(at));
            let known = match item.entry {
                _ if self.reread => None,
                Some(entry) if same_stat && self.is_stored_raw(entry, kind, file_stat.size) && settled() => {
                    Some((KnownContent { id: entry.id, without_returns: false }, Source::Index))
                }
                _ => cursor.find(item.path, &file_stat).map(|known| (known, Source::Cache)),
            };
            let (KnownContent { id, without_returns }, source) = match known {
                Some(known) => known,
                None => match self.read(folder, name, kind, &stat, buffer).map_err(unreadable)? {
                    Some(known) => (known, Source::Read),
                    None => continue,
                },
            };
            let stat = file_stat;
            return Ok(Found::File(FoundFile { mode, id, without_returns, stat, source, same_stat }));
        }
        Err(GitError::Changing { path: RepoPath::new(item.path) })
    }

    fn missing(&self, item: &Item<'_>) -> Found {
        let left_out = self.sparse && item.entry.is_some_and(|entry| entry.skip_worktree);
        if left_out { Found::NotCheckedOut } else { Found::Absent }
    }

    /// Examines a folder where the index has a repository or a file, or where git found a repository.
    fn folder(&self, item: &Item<'_>) -> Result<Found, GitError> {
        if item.entry.is_some_and(|entry| entry.mode != FileMode::Nested) {
            return Ok(Found::Absent);
        }
        let path = self.repository.root().join(RepoPath::new(item.path).as_path());
        Ok(match nested_state(self.repository.git(), &path, self.repository.object_format())? {
            NestedState::Commit(id) => Found::Nested(Some(id)),
            NestedState::Unborn => Found::Nested(None),
            NestedState::None => item.entry.map_or(Found::Absent, |entry| Found::Nested(Some(entry.id))),
        })
    }

    fn mode(&self, item: &Item<'_>, kind: FileType, stat: &Stat) -> FileMode {
        let tracked = item.entry.map(|entry| entry.mode);
        let written_as_file = !self.symlinks && tracked == Some(FileMode::Symlink);
        if kind == FileType::Symlink || written_as_file {
            FileMode::Symlink
        } else if !self.executable_bit {
            tracked.filter(|mode| mode.is_file()).unwrap_or(FileMode::Regular)
        } else if stat.st_mode & 0o100 != 0 {
            FileMode::Executable
        } else {
            FileMode::Regular
        }
    }

    /// Reads and hashes a file or link; `None` if it changed meanwhile.
    fn read(
        &self,
        folder: BorrowedFd<'_>,
        name: &[u8],
        kind: FileType,
        stat: &Stat,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<KnownContent>, Errno> {
        let format = self.repository.object_format();
        let vanished = |error| matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL);
        if kind == FileType::Symlink {
            return match readlinkat(folder, name, Vec::new()) {
                Ok(target) => {
                    let id = format.id_of("blob", target.as_bytes());
                    Ok(Some(KnownContent { id, without_returns: false }))
                }
                Err(error) if vanished(error) => Ok(None),
                Err(error) => Err(error),
            };
        }
        let size = file_stat(stat).size;
        let mut hasher = ObjectHasher::new(format, "blob", size);
        let mut without_returns = true;
        let mut take = |piece: &[u8]| {
            hasher.update(piece);
            without_returns &= !piece.contains(&b'\r');
        };
        let read = match open_file(folder, name) {
            Ok(file) => read_pieces(file, size, buffer, &mut take),
            Err(error) if vanished(error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let after = read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let same = after.is_some_and(|after| file_stat(&after) == file_stat(stat));
        Ok(same.then(|| KnownContent { id: hasher.finish(), without_returns }))
    }
}

impl std::iter::Sum for ScanResult {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut all, scanned| {
            all.found.extend(scanned.found);
            all.attributed.extend(scanned.attributed);
            all
        })
    }
}

fn unreadable(path: &[u8], error: Errno) -> GitError {
    GitError::Unreadable { path: RepoPath::new(path), source: error.into() }
}

/// Opens a regular file for reading. Does not follow links or block on pipes.
fn open_file(folder: BorrowedFd<'_>, name: &[u8]) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty()).map(File::from)
}

/// Reads `size` bytes, then returns the stat information; `None` if there are more or fewer bytes.
fn read_pieces(
    mut file: File,
    size: u64,
    buffer: &mut Vec<u8>,
    sink: &mut dyn FnMut(&[u8]),
) -> std::io::Result<Option<Stat>> {
    buffer.resize(usize::try_from(size).unwrap_or(usize::MAX).clamp(1, 256 * 1_024), 0);
    let mut left = size;
    while left > 0 {
        let count = match file.read(buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if count == 0 || count as u64 > left {
            return Ok(None);
        }
        sink(&buffer[..count]);
        left -= count as u64;
    }
    let after = fstat(&file)?;
    Ok(u64::try_from(after.st_size).is_ok_and(|now| now == size).then_some(after))
}

/// Passes the raw content of a file or link to `sink`, if its stat information is unchanged.
pub(crate) fn content(
    root: &Path,
    path: &[u8],
    stat: &FileStat,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<(), GitError> {
    let changing = || GitError::Changing { path: RepoPath::new(path) };
    let (folder, name) = split_name(path);
    let mut folders = Folders::new(root)?;
    let folder = folders.enter(folder)?.ok_or_else(changing)?;
    if FileType::from_raw_mode(stat.mode) == FileType::Symlink {
        let target = readlinkat(folder, name, Vec::new()).map_err(|error| unreadable(path, error))?;
        sink(target.as_bytes());
        return Ok(());
    }
    let file = open_file(folder, name).map_err(|error| match error {
        Errno::NOENT | Errno::LOOP | Errno::NOTDIR => changing(),
        error => unreadable(path, error),
    })?;
    let after = read_pieces(file, stat.size, &mut Vec::new(), sink)
        .map_err(|source| GitError::Unreadable { path: RepoPath::new(path), source })?;
    after.filter(|after| file_stat(after) == *stat).map(|_| ()).ok_or_else(changing)
}

#[allow(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
fn file_stat(stat: &Stat) -> FileStat {
    FileStat {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        size: stat.st_size as u64,
        changed_at: StatTime::new(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        modified_at: StatTime::new(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        mode: stat.st_mode as u32,
        user: stat.st_uid as u32,
        group: stat.st_gid as u32,
    }
}

/// Returns true if a file has the stat information of its index entry.
fn has_stat(entry: &IndexEntry, kind: FileType, stat: &FileStat) -> bool {
    let same_kind = match kind {
        FileType::Symlink => entry.mode == FileMode::Symlink,
        _ => entry.mode.is_file(),
    };
    let now = IndexStat {
        ctime: (stat.changed_at.seconds as u32, stat.changed_at.nanoseconds),
        mtime: (stat.modified_at.seconds as u32, stat.modified_at.nanoseconds),
        inode: stat.inode as u32,
        user: stat.user,
        group: stat.group,
        size: stat.size as u32,
    };
    // Git clears the size of an entry that it cannot trust.
    let sure = stat.size > 0 || entry.id == entry.id.format().id_of("blob", b"");
    same_kind && sure && entry.stage == 0 && !entry.intent_to_add && entry.stat == now
}

/// Open file descriptors of the folders down to the current one.
struct Folders {
    root: OwnedFd,
    /// Current folder, ending with `/` unless it is the root.
    current_folder: Vec<u8>,
    /// Each folder below the root, with its length in `current_folder`.
    chain: Vec<(usize, OwnedFd)>,
    /// The last missing folder, ending with `/`.
    missing: Option<Vec<u8>>,
    /// Folders with an attribute file.
    attributed: Vec<Vec<u8>>,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Folders {
    fn new(root: &Path) -> Result<Self, GitError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, root, flags, Mode::empty())
            .map_err(|error| GitError::Folder { path: root.to_owned(), source: error.into() })?;
        let mut folders = Self {
            root: fd,
            current_folder: Vec::new(),
            chain: Vec::new(),
            missing: None,
            attributed: Vec::new(),
        };
        folders.note_attributes();
        Ok(folders)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.chain.last().map_or(self.root.as_fd(), |(_, fd)| fd.as_fd())
    }

    fn note_attributes(&mut self) {
        if statat(self.fd(), ATTRIBUTES, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            self.attributed.push(self.current_folder.clone());
        }
    }

    /// Enters a folder (empty, or ending with `/`). Returns `None` if it does not exist or is not a folder.
    fn enter(&mut self, folder: &[u8]) -> Result<Option<BorrowedFd<'_>>, GitError> {
        if self.current_folder != folder {
            if self.missing.as_ref().is_some_and(|missing| folder.starts_with(missing)) {
                return Ok(None);
            }
            while !folder.starts_with(&self.current_folder) {
                self.chain.pop();
                self.current_folder.truncate(self.chain.last().map_or(0, |(length, _)| *length));
            }
            while self.current_folder.len() < folder.len() {
                let rest = &folder[self.current_folder.len()..];
                let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
                let length = (self.current_folder.len() + end + 1).min(folder.len());
                match openat(self.fd(), &rest[..end], FOLDER, Mode::empty()) {
                    Ok(fd) => self.chain.push((length, fd)),
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                        self.missing = Some(folder[..length].to_vec());
                        return Ok(None);
                    }
                    Err(error) => return Err(unreadable(&folder[..length], error)),
                }
                self.current_folder.extend_from_slice(&folder[self.current_folder.len()..length]);
                self.note_attributes();
            }
        }
        Ok(Some(self.fd()))
    }
}
