//! Files that survive crashes and are shared by processes.
//!
//! Owns durable writes ([`DurableFile`], [`write_durably`], [`make_folder`]) and locks between processes ([`LockFile`]).
//! New files have mode 0600 and new folders 0700, unless the caller chooses a mode; files are created with their mode.
//! Does not own paths, file formats or error texts: every function returns the plain [`std::io::Error`].

mod durable;
mod lock;

pub use durable::{
    DurableFile, TEMPORARY_PREFIX, folder_of, make_folder, open_or_create, sync_folder, write_durably,
};
pub use lock::LockFile;
