//! The recorded operations that change a disk, in order.

use std::ffi::OsString;
use std::path::PathBuf;

/// Number of a file or folder. Numbers are never reused, even if the name is.
pub(super) type Node = u64;

/// The mounted folder.
pub(super) const ROOT: Node = 1;

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) folder: Node,
    pub(super) name: OsString,
}

/// Content of a new node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link(PathBuf),
}

/// An operation that changes the disk, or makes changes durable.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Create {
        entry: Entry,
        node: Node,
        kind: Kind,
        mode: u32,
    },
    Link {
        entry: Entry,
        node: Node,
    },
    Remove {
        entry: Entry,
        node: Node,
    },
    Rename {
        from: Entry,
        to: Entry,
        node: Node,
    },
    Write {
        node: Node,
        offset: u64,
        bytes: Vec<u8>,
    },
    Resize {
        node: Node,
        size: u64,
    },
    SetMode {
        node: Node,
        mode: u32,
    },
    /// `fsync` or `fdatasync` of a file, `fsync` of a folder.
    Sync {
        node: Node,
    },
    /// Everything before this is durable, as after `sync` and a pause.
    SyncEverything,
}

/// All operations on a disk.
#[derive(Debug)]
pub struct Recording {
    pub(super) operations: Vec<Operation>,
}

impl Recording {
    /// Returns the number of recorded operations. The power can be cut after 0 to this many.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns true if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}
