//! Configuration: the settings, the sources of their values, and which source takes precedence.
//!
//! Layers, lowest precedence first: defaults, the user file, the project file, the environment, flags. Owns reading and
//! checking them. Does not act on any setting. Only [`Sources::from_process`] reads the process environment; everything
//! else works on its arguments and reads only the two files.

mod convert;
mod layers;
mod loaded;
mod problem;
mod settings;
mod sources;
mod value;

pub(crate) use convert::{CompressorKind, LogFormat};
pub(crate) use loaded::{Config, Entry};
pub(crate) use problem::ConfigError;
pub(crate) use sources::{Flag, Sources};
