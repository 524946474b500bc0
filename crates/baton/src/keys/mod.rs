//! Sources of encryption keys: a key file or the keychain of the desktop.
//!
//! Owns the text format of keys, reading, creating and replacing them, and the decision what to do without a key. Does
//! not own encryption itself (`baton_store::KeyRing`), settings or output.
//!
//! - `text` is the text format, used by both sources.
//! - `file` and `keychain` are the sources; `source` is the configured one.
//! - `decision` is the rule that prevents encryption with a key that is not stored, and silent writes of plain text.

mod decision;
mod file;
mod keychain;
mod lock;
mod source;
mod text;

pub(crate) use decision::{Mode, decide};
pub(crate) use file::KeyFile;
pub(crate) use keychain::Keychain;
pub(crate) use source::{KeySource, SourceError};
