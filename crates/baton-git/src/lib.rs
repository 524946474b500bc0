//! Exact snapshots of working trees, and the only code of Baton that runs git.
//!
//! Owns: finding a checkout, what is in it down to the last byte, and the differences between two such states. Does
//! not own: task files, scopes, what a difference means for a task, printing.
//!
//! A [`Repository`] is a checkout that was found. [`Repository::capture`] reads its working tree into a [`Capture`],
//! whose [`Snapshot`] is small, can be stored, and names a tree; the objects behind it go to a [`Vault`], a folder of
//! the caller's. The vault tells the [`Changes`] between two snapshots, and [`Repository::verify`] whether a working
//! tree is still what a snapshot says.
//!
//! Nothing is stored that an [`Inspector`] does not permit: it sees every file that `HEAD` does not have first.
//!
//! **The user's repository gains nothing**: no lock, no object, no changed index, not even a new time stamp. Git is
//! asked only what it alone knows (where the checkout is, what is ignored, what is staged); tracked files are looked
//! at and hashed here, and objects are written to the vault. See `program` for how git is held.
//!
//! # What a snapshot is
//!
//! - **Raw bytes.** [`Snapshot::tree`] holds every file as it lies in the working tree: no line-ending conversion, no
//!   filter, no `ident`, no re-encoding. Two equal trees are two equal working trees.
//! - **No false changes.** Where the repository converts files, raw bytes differ from what is committed although git
//!   rightly calls the file unchanged. [`Snapshot::patch_tree`] therefore holds the same files as git would store
//!   them: changes since a commit and all patches are made from it, so a checkout with CRLF files shows the edited
//!   line and not the whole file. Where nothing is converted, the two are the same tree. Filter programs (as those of
//!   git-lfs) are never run: an unchanged file keeps the form in which it is committed, an edited one shows raw.
//! - **Membership** is git's: what is in the index, and what is neither there nor ignored. Files that are marked
//!   assume-unchanged are read like any other. So are those marked skip-worktree; if one is missing in a sparse
//!   checkout, it counts as not checked out, and a change between the two is a difference.
//! - **Modes** are git's as well: executable or not, symbolic link, nested repository. With `core.fileMode=false` the
//!   executable bit is that of the index.
//! - **Nested repositories**, submodules or not, count by the commit that they have checked out.

mod attributes;
mod capture;
mod changes;
mod configuration;
mod diff;
mod error;
mod head;
mod index;
mod inspector;
mod lookup;
mod moment;
mod nested;
mod object;
mod pack;
mod patch;
mod path;
mod process;
mod program;
mod remote;
mod repository;
mod snapshot;
mod stash;
mod stat_cache;
mod status;
mod sweep;
mod tree;
mod uncommitted;
mod vault;
mod verification;
mod view;
mod worktree;

pub use capture::Capture;
pub use changes::{Changes, Content, FileChange, FileChangeKind, LineCounts};
pub use error::GitError;
pub use head::Head;
pub use inspector::Inspector;
pub use lookup::Glance;
pub use nested::NestedRepository;
pub use object::{FileMode, ObjectFormat, ObjectId, ObjectIdError};
pub use patch::{Patch, normalized_patch_hash};
pub use path::{RepoPath, RepoPathError};
pub use program::{Git, Limits};
pub use repository::Repository;
pub use snapshot::{Snapshot, StagedChange, TreeFile};
pub use stash::Stash;
pub use status::{Status, StatusCode, StatusEntry, StatusSide};
pub use uncommitted::Uncommitted;
pub use vault::Vault;
pub use verification::{Difference, HeadMovement, Verification};
