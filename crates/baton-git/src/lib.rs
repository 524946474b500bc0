//! Exact snapshots of working trees, and the only code of Baton that runs git.
//!
//! Owns finding a checkout, its exact content, and the differences between two states. Does not own task files, scopes,
//! the meaning of a difference for a task, or output.
//!
//! A [`Repository`] is a discovered checkout. [`Repository::capture`] reads its working tree into a [`Capture`]. Its
//! [`Snapshot`] is small and serializable and refers to a tree; the objects of the tree are stored in a [`ObjectStore`], a
//! folder of the caller. The object store computes the changes between two snapshots, and [`Repository::verify`] lists
//! how a working tree differs from a snapshot.
//!
//! An [`Inspector`](baton_core::task::Inspector) sees every file that `HEAD` does not have before anything is stored, and
//! can reject it.
//!
//! **The user's repository is never changed**: no lock, no object, no index update, not even a new time stamp. Git is
//! used only for what it alone knows (the location of the checkout, ignored paths, staged changes); tracked files are
//! examined and hashed here, and objects are written to the object store. See `program` for how git is invoked.
//!
//! # Properties of a snapshot
//!
//! - **Raw bytes.** [`Snapshot::tree`] holds every file exactly as in the working tree: no line-ending conversion,
//!   no filter, no `ident`, no re-encoding. Equal trees mean equal working trees.
//! - **No false changes.** Where the repository converts files, raw bytes differ from the committed content although
//!   git correctly reports the file as unchanged. [`Snapshot::patch_tree`] therefore holds the same files as git would
//!   store them. Changes since a commit and all patches are computed from it, so a checkout with CRLF files shows the
//!   edited line and not the whole file. Where nothing is converted, both are the same tree. Filter programs, such as
//!   those of git-lfs, are never run: an unchanged file keeps its committed form, an edited one appears raw.
//! - **Membership** follows git: paths in the index, and paths that are neither in the index nor ignored. Files marked
//!   assume-unchanged are read like any other. So are files marked skip-worktree; if one is missing in a sparse
//!   checkout, it counts as not checked out and keeps its content of the index.
//! - **Modes** follow git too: executable or not, symbolic link, nested repository. With `core.fileMode=false` the
//!   executable bit of the index is used.
//! - **Nested repositories**, submodules or not, are represented by the commit that they have checked out.

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
mod nested;
mod object;
mod object_store;
mod pack;
mod path;
mod process;
mod program;
mod remote;
mod repository;
mod snapshot;
mod stash;
mod stat_cache;
mod stat_time;
mod status;
mod sweep;
mod tree;
mod uncommitted;
mod verification;
mod worktree;
mod worktree_files;

pub use capture::Capture;
pub use error::GitError;
pub use head::Head;
pub use inspector::PermitAll;
pub use lookup::HeadInfo;
pub use nested::NestedRepository;
pub use object::{FileMode, ObjectFormat, ObjectId, ObjectIdError};
pub use object_store::ObjectStore;
pub use path::{RepoPath, RepoPathError};
pub use process::Limits;
pub use program::Git;
pub use remote::name_in_url;
pub use repository::Repository;
pub use snapshot::{Snapshot, StagedChange, TreeFile};
pub use stash::Stash;
pub use status::{Status, StatusCode, StatusEntry, StatusSide};
pub use verification::Verification;
