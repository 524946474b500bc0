//! Where encryption keys come from: a key file or the keychain of the desktop.
//!
//! Owns how keys are written down, found, made and replaced, and the decision what to do when they are not to be had.
//! Does not own sealing itself (`baton_store::KeyRing`), settings, or what is printed.
//!
//! - `text` is how keys are written down, in both places.
//! - `file` and `keychain` are the places; `source` is whichever of them is configured.
//! - `decision` is the rule that keeps data from being sealed with a key nobody has, or left plain unnoticed.

mod decision;
mod file;
mod keychain;
mod lock;
mod source;
mod text;

pub(crate) use decision::{Decision, Mode, Sealed};
pub(crate) use file::KeyFile;
pub(crate) use keychain::Keychain;
pub(crate) use source::{KeySource, SourceError, obtain};
