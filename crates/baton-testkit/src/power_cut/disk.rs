//! A file system in memory, mounted with FUSE, that records every change.
#![expect(clippy::expect_used, reason = "a test whose disk fails must fail loudly")]

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

use super::operation::{Entry, Kind, Node, Operation, ROOT, Recording};

/// How long the kernel may cache attributes. All changes go through the kernel, so cached attributes stay valid.
const TTL: Duration = Duration::from_secs(3_600);
const BLOCK_BYTES: u32 = 4_096;
/// Reported free space: more than any check requires.
const FREE_BLOCKS: u64 = 1 << 28;

/// A mounted disk, unmounted when dropped.
pub struct Disk {
    path: PathBuf,
    state: Arc<Mutex<State>>,
    session: Option<BackgroundSession>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Disk").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Disk {
    /// Mounts an empty disk on a folder.
    ///
    /// # Errors
    ///
    /// Fails if `/dev/fuse` is missing or the process may not mount.
    pub fn mount(path: &Path) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State::empty()));
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("power-cut".to_owned()), MountOption::DefaultPermissions];
        let session = fuser::spawn_mount(Recorder(Arc::clone(&state)), path, &config)?;
        Ok(Self { path: path.to_owned(), state, session: Some(session) })
    }

    /// Returns the mount point.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of operations so far.
    ///
    /// # Panics
    ///
    /// Panics if the file system failed.
    pub fn position(&self) -> usize {
        self.state.lock().expect("the disk works").operations.len()
    }

    /// Makes everything durable, as if the computer had been idle for a while.
    ///
    /// # Panics
    ///
    /// Panics if the file system failed.
    pub fn sync_everything(&self) {
        self.state.lock().expect("the disk works").operations.push(Operation::SyncEverything);
    }

    /// Unmounts the disk and returns the recording.
    ///
    /// # Panics
    ///
    /// Panics if a process still uses the disk.
    #[must_use]
    pub fn unmount(mut self) -> Recording {
        let session = self.session.take().expect("it is mounted");
        session.umount_and_join().expect("no process uses the disk");
        Recording { operations: std::mem::take(&mut self.state.lock().expect("the disk works").operations) }
    }
}

struct State {
    nodes: HashMap<Node, Stored>,
    operations: Vec<Operation>,
}

struct Stored {
    content: Content,
    mode: u32,
    links: u32,
    owner: (u32, u32),
    modified_at: SystemTime,
    changed_at: SystemTime,
}

enum Content {
    File(Vec<u8>),
    Folder(BTreeMap<OsString, Node>),
    Link(PathBuf),
}

impl Stored {
    fn new(kind: &Kind, mode: u32, owner: (u32, u32)) -> Self {
        let content = match kind {
            Kind::File => Content::File(Vec::new()),
            Kind::Folder => Content::Folder(BTreeMap::new()),
            Kind::Link(target) => Content::Link(target.clone()),
        };
        let now = SystemTime::now();
        Self { content, mode: mode & 0o7777, links: 1, owner, modified_at: now, changed_at: now }
    }

    fn kind(&self) -> FileType {
        match self.content {
            Content::File(_) => FileType::RegularFile,
            Content::Folder(_) => FileType::Directory,
            Content::Link(_) => FileType::Symlink,
        }
    }

    fn attributes(&self, node: Node) -> FileAttr {
        let size = match &self.content {
            Content::File(bytes) => bytes.len() as u64,
            Content::Folder(entries) => entries.len() as u64,
            Content::Link(target) => target.as_os_str().len() as u64,
        };
        FileAttr {
            ino: INodeNo(node),
            size,
            blocks: size.div_ceil(512),
            atime: self.modified_at,
            mtime: self.modified_at,
            ctime: self.changed_at,
            crtime: self.modified_at,
            kind: self.kind(),
            perm: u16::try_from(self.mode).unwrap_or(0o600),
            nlink: self.links,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        }
    }

    fn touch(&mut self) {
        self.modified_at = SystemTime::now();
        self.changed_at = self.modified_at;
    }
}

impl State {
    fn empty() -> Self {
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let root = Stored::new(&Kind::Folder, 0o755, owner);
        Self { nodes: HashMap::from([(ROOT, root)]), operations: Vec::new() }
    }

    fn node(&mut self, node: Node) -> Result<&mut Stored, Errno> {
        self.nodes.get_mut(&node).ok_or(Errno::ENOENT)
    }

    fn entries(&mut self, folder: Node) -> Result<&mut BTreeMap<OsString, Node>, Errno> {
        match &mut self.node(folder)?.content {
            Content::Folder(entries) => Ok(entries),
            Content::File(_) | Content::Link(_) => Err(Errno::ENOTDIR),
        }
    }

    fn file(&mut self, node: Node) -> Result<&mut Vec<u8>, Errno> {
        match &mut self.node(node)?.content {
            Content::File(bytes) => Ok(bytes),
            Content::Folder(_) | Content::Link(_) => Err(Errno::EISDIR),
        }
    }

    fn find(&mut self, folder: Node, name: &OsStr) -> Result<Node, Errno> {
        self.entries(folder)?.get(name).copied().ok_or(Errno::ENOENT)
    }

    fn attributes(&mut self, node: Node) -> Result<FileAttr, Errno> {
        Ok(self.node(node)?.attributes(node))
    }

    fn create(&mut self, entry: Entry, kind: Kind, mode: u32, owner: (u32, u32)) -> Result<FileAttr, Errno> {
        let node = ROOT + self.nodes.len() as u64;
        let entries = self.entries(entry.folder)?;
        if entries.contains_key(&entry.name) {
            return Err(Errno::EEXIST);
        }
        entries.insert(entry.name.clone(), node);
        self.node(entry.folder)?.touch();
        self.nodes.insert(node, Stored::new(&kind, mode, owner));
        self.operations.push(Operation::Create { entry, node, kind, mode: mode & 0o7777 });
        self.attributes(node)
    }

    /// Removes a name. The node stays, because an open file can still be written.
    fn remove(&mut self, entry: Entry, is_folder: bool) -> Result<(), Errno> {
        let node = self.find(entry.folder, &entry.name)?;
        if is_folder && !self.entries(node)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.entries(entry.folder)?.remove(&entry.name);
        self.node(entry.folder)?.touch();
        let stored = self.node(node)?;
        stored.links = stored.links.saturating_sub(1);
        self.operations.push(Operation::Remove { entry, node });
        Ok(())
    }

    fn rename(&mut self, from: Entry, to: Entry, flags: RenameFlags) -> Result<(), Errno> {
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            return Err(Errno::EINVAL);
        }
        let node = self.find(from.folder, &from.name)?;
        if let Ok(replaced) = self.find(to.folder, &to.name) {
            if flags.contains(RenameFlags::RENAME_NOREPLACE) {
                return Err(Errno::EEXIST);
            }
            if self.entries(replaced).is_ok_and(|entries| !entries.is_empty()) {
                return Err(Errno::ENOTEMPTY);
            }
            let replaced = self.node(replaced)?;
            replaced.links = replaced.links.saturating_sub(1);
        }
        self.entries(from.folder)?.remove(&from.name);
        self.entries(to.folder)?.insert(to.name.clone(), node);
        self.node(from.folder)?.touch();
        self.node(to.folder)?.touch();
        self.operations.push(Operation::Rename { from, to, node });
        Ok(())
    }

    fn write(&mut self, node: Node, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        let file = self.file(node)?;
        overwrite(file, offset, bytes);
        self.node(node)?.touch();
        self.operations.push(Operation::Write { node, offset, bytes: bytes.to_vec() });
        Ok(())
    }

    fn resize(&mut self, node: Node, size: u64) -> Result<(), Errno> {
        self.file(node)?.resize(usize::try_from(size).map_err(|_| Errno::EFBIG)?, 0);
        self.node(node)?.touch();
        self.operations.push(Operation::Resize { node, size });
        Ok(())
    }
}

/// Writes bytes into a file at an offset. A gap before them is filled with zeros.
pub(super) fn overwrite(file: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(bytes.len());
    if file.len() < end {
        file.resize(end, 0);
    }
    file[start..end].copy_from_slice(bytes);
}

fn entry(folder: INodeNo, name: &OsStr) -> Entry {
    Entry { folder: folder.0, name: name.to_owned() }
}

/// Handles the requests of the kernel.
struct Recorder(Arc<Mutex<State>>);

impl Recorder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("the disk works")
    }
}

fn reply_entry(result: Result<FileAttr, Errno>, reply: ReplyEntry) {
    match result {
        Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn reply_empty(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Recorder {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut state = self.state();
        let found = state.find(parent.0, name).and_then(|node| state.attributes(node));
        reply_entry(found, reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.state().attributes(ino.0) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.state();
        let mut set = || {
            if let Some(size) = size {
                state.resize(ino.0, size)?;
            }
            if let Some(mode) = mode {
                state.node(ino.0)?.mode = mode & 0o7777;
                state.operations.push(Operation::SetMode { node: ino.0, mode: mode & 0o7777 });
            }
            let stored = state.node(ino.0)?;
            stored.owner = (uid.unwrap_or(stored.owner.0), gid.unwrap_or(stored.owner.1));
            stored.changed_at = SystemTime::now();
            match mtime {
                Some(TimeOrNow::SpecificTime(time)) => stored.modified_at = time,
                Some(TimeOrNow::Now) => stored.modified_at = stored.changed_at,
                None => {}
            }
            Ok(stored.attributes(ino.0))
        };
        match set() {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.state().node(ino.0).map(|stored| &stored.content) {
            Ok(Content::Link(target)) => reply.data(target.as_os_str().as_encoded_bytes()),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let owner = (request.uid(), request.gid());
        reply_entry(self.state().create(entry(parent, name), Kind::File, mode & !umask, owner), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let owner = (request.uid(), request.gid());
        reply_entry(self.state().create(entry(parent, name), Kind::Folder, mode & !umask, owner), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(self.state().remove(entry(parent, name), false), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(self.state().remove(entry(parent, name), true), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (kind, owner) = (Kind::Link(target.to_owned()), (request.uid(), request.gid()));
        reply_entry(self.state().create(entry(parent, name), kind, 0o777, owner), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = self.state().rename(entry(parent, name), entry(newparent, newname), flags);
        reply_empty(renamed, reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let mut state = self.state();
        let mut link = || {
            let entries = state.entries(newparent.0)?;
            if entries.contains_key(newname) {
                return Err(Errno::EEXIST);
            }
            entries.insert(newname.to_owned(), ino.0);
            state.node(ino.0)?.links += 1;
            state.operations.push(Operation::Link { entry: entry(newparent, newname), node: ino.0 });
            state.attributes(ino.0)
        };
        let linked = link();
        reply_entry(linked, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.state().file(ino.0) {
            Ok(file) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
                let end = start.saturating_add(size as usize).min(file.len());
                reply.data(&file[start..end]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.state().write(ino.0, offset, data) {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.state().operations.push(Operation::Sync { node: ino.0 });
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.state().operations.push(Operation::Sync { node: ino.0 });
        reply.ok();
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut state = self.state();
        let listed: Vec<(OsString, Node)> = match state.entries(ino.0) {
            Ok(entries) => entries.iter().map(|(name, node)| (name.clone(), *node)).collect(),
            Err(error) => return reply.error(error),
        };
        let own = [".", ".."].map(|name| (OsString::from(name), ino.0));
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        for (place, (name, node)) in own.into_iter().chain(listed).enumerate().skip(skipped) {
            let kind = state.node(node).map_or(FileType::RegularFile, |stored| stored.kind());
            if reply.add(INodeNo(node), place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = 2 * FREE_BLOCKS;
        reply.statfs(blocks, FREE_BLOCKS, FREE_BLOCKS, blocks, FREE_BLOCKS, BLOCK_BYTES, 255, BLOCK_BYTES);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let owner = (request.uid(), request.gid());
        match self.state().create(entry(parent, name), Kind::File, mode & !umask, owner) {
            Ok(attributes) => {
                reply.created(&TTL, &attributes, Generation(0), FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(error) => reply.error(error),
        }
    }
}
