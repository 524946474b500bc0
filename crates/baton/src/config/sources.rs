//! What configuration is made of, gathered from the process or made up by a test; and which two files it may lie in.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::base_strategy::{BaseStrategy, choose_base_strategy};

use super::problem::{ConfigError, Origin};
use super::settings::{USER_FILE_ENV, env_names, find};
use super::value::Folders;

/// The name of a project file.
const PROJECT_FILE: &str = ".baton.toml";

/// What our own environment variables begin with.
pub(super) const ENV_PREFIX: &str = "BATON_";

/// Everything that can set something. Holds secrets, so it has no `Debug`.
#[derive(Clone, Default)]
pub(crate) struct Sources {
    /// The environment, as far as it concerns Baton.
    pub(crate) environment: BTreeMap<String, OsString>,
    /// The working folder; `None` when it was removed.
    pub(crate) cwd: Option<PathBuf>,
    /// The person's folders; `None` when there is no home.
    pub(crate) places: Option<Places>,
    /// The flags that were given.
    pub(crate) flags: Vec<Flag>,
    /// What is left out.
    pub(crate) left_out: LeftOut,
}

/// What decides where a report goes, and as whose.
const CONCERNS_CAPTURE: [&str; 6] = [
    "data_dir",
    "store.database_url",
    "client.server",
    "server.relay_key",
    "session.venture",
    "session.agent",
];

/// What is left out of the layers, because it is wrong and there is no time to mend it.
#[derive(Clone, Default)]
pub(crate) struct LeftOut {
    /// Settings, whichever layer sets them.
    pub(super) keys: Vec<&'static str>,
    /// The project file.
    pub(super) project_file: bool,
}

/// The person's folders, by the rules of the platform.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The home folder.
    pub(crate) home: PathBuf,
    /// The folder of Baton's configuration.
    pub(crate) config: PathBuf,
    /// The folder of Baton's data.
    pub(crate) data: PathBuf,
}

/// A flag that sets something.
#[derive(Clone)]
pub(crate) struct Flag {
    /// The flag with its dashes: `--listen`.
    pub(crate) name: &'static str,
    /// The key of the setting: `server.listen`.
    pub(crate) key: &'static str,
    /// What was given.
    pub(crate) value: OsString,
}

impl Flag {
    /// Makes a flag of an argument, if that was given.
    pub(crate) fn given(
        name: &'static str,
        key: &'static str,
        value: Option<impl Into<OsString>>,
    ) -> Option<Self> {
        value.map(|value| Self { name, key, value: value.into() })
    }
}

impl Sources {
    /// Looks at the process.
    pub(crate) fn from_process(flags: Vec<Flag>) -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| name.starts_with(ENV_PREFIX) || env_names().any(|known| known == name))
            .collect();
        let places = choose_base_strategy().ok().map(|base| Places {
            home: base.home_dir().to_owned(),
            config: base.config_dir().join("baton"),
            data: base.data_dir().join("baton"),
        });
        Self { environment, cwd: std::env::current_dir().ok(), places, flags, left_out: LeftOut::default() }
    }

    /// Gives an environment variable; an empty one counts as not set.
    pub(super) fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.get(name).filter(|value| !value.is_empty())
    }

    /// Gives the data folder as far as it can be told without reading a file: for whoever has to leave word there that a
    /// file cannot be read.
    pub(crate) fn data_dir_without_files(&self) -> Option<PathBuf> {
        let setting = find("data_dir")?;
        let flag = self.flags.iter().find(|flag| flag.key == setting.key).map(|flag| &flag.value);
        let named = flag.or_else(|| setting.env.iter().find_map(|name| self.variable(name)));
        match named {
            Some(path) => Some(self.folders().resolve(Path::new(path))),
            None => Some(self.places.as_ref()?.data.clone()),
        }
    }

    /// Leaves out what is wrong, for whoever only captures; false when that decides where a report goes, or is left out
    /// already.
    pub(super) fn leave_out(&mut self, error: &ConfigError) -> bool {
        let project_file = self.project_file();
        let keys: &[&'static str] = match error {
            ConfigError::Unreadable { path, .. } | ConfigError::Syntax { path, .. } => {
                self.left_out.project_file |= project_file.as_ref() == Some(path);
                return self.left_out.project_file && project_file.is_some();
            }
            ConfigError::Invalid { origin: Origin::ProjectFile(_), .. } => {
                self.left_out.project_file = true;
                return project_file.is_some();
            }
            ConfigError::Invalid { key, .. } => std::slice::from_ref(key),
            ConfigError::Jitter { .. } => &["heartbeat.jitter_seconds", "heartbeat.interval_seconds"],
            ConfigError::NoModel { .. } => &["compressor.kind"],
            ConfigError::Unset { .. } | ConfigError::UnknownKey { .. } => return false,
        };
        if keys.iter().any(|key| CONCERNS_CAPTURE.contains(key) || self.left_out.keys.contains(key)) {
            return false;
        }
        self.left_out.keys.extend(keys);
        true
    }

    /// Gives what relative paths outside of files are relative to.
    pub(super) fn folders(&self) -> Folders<'_> {
        Folders { base: self.cwd.as_deref(), home: self.home() }
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.places.as_ref().map(|places| places.home.as_path())
    }

    /// Gives the user file that the environment names.
    pub(super) fn named_user_file(&self) -> Option<PathBuf> {
        self.variable(USER_FILE_ENV).map(|path| self.folders().resolve(Path::new(path)))
    }

    /// Gives the user file where the platform has it.
    pub(super) fn usual_user_file(&self) -> Option<PathBuf> {
        self.places.as_ref().map(|places| places.config.join("config.toml"))
    }

    /// Finds the nearest project file, from the working folder upward. The last folder to be searched is the first one
    /// that is a repository, the home folder or the root.
    pub(super) fn project_file(&self) -> Option<PathBuf> {
        if self.left_out.project_file {
            return None;
        }
        for folder in self.cwd.as_deref()?.ancestors() {
            let file = folder.join(PROJECT_FILE);
            if is_there(&file) {
                return Some(file);
            }
            if Some(folder) == self.home() || is_there(&folder.join(".git")) {
                return None;
            }
        }
        None
    }
}

/// Tells whether there is anything of this name, if only a link to nowhere: to read that is an error, not a silence.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
