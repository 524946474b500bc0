//! Configuration: which settings there are, where their values come from, and which value wins.
//!
//! Layers, weakest first: defaults, the user file, the project file, the environment, flags. Owns reading and checking
//! them. Does not act on any setting. [`Sources::from_process`] is the one place that looks at the process; all else
//! works on what it is given, and reads no more than the two files.

mod layers;
mod loaded;
mod problem;
mod settings;
mod sources;
mod value;

pub(crate) use loaded::{CompressorKind, Config, Entry, LogFormat};
pub(crate) use problem::ConfigError;
pub(crate) use sources::{Flag, Sources};
