//! The sources of the configuration, collected from the process or built by a test, and the paths of its two files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::base_strategy::{BaseStrategy, choose_base_strategy};

use super::problem::{ConfigError, Origin};
use super::settings::{USER_FILE_ENV, env_names, find};
use super::value::Folders;

const PROJECT_FILE: &str = ".baton.toml";

/// Prefix of Baton's environment variables.
pub(super) const ENV_PREFIX: &str = "BATON_";

/// All sources of settings. Holds secrets, so it has no `Debug`.
#[derive(Clone, Default)]
pub(crate) struct Sources {
    /// Environment variables that Baton reads.
    pub(crate) environment: BTreeMap<String, OsString>,
    /// Working folder; `None` if it was removed.
    pub(crate) cwd: Option<PathBuf>,
    /// Folders of the user; `None` if there is no home folder.
    pub(crate) places: Option<UserFolders>,
    /// Flags of the command line.
    pub(crate) flags: Vec<Flag>,
    /// Invalid settings that a hook ignores in every layer, so that its report is stored nevertheless.
    pub(crate) ignored_settings: Vec<&'static str>,
    /// Whether a hook ignores the project file as well.
    pub(crate) ignores_project_file: bool,
}

/// Settings that determine the store, credential, venture and agent of a hook report.
const CAPTURE_SETTINGS: [&str; 6] = [
    "data_dir",
    "store.database_url",
    "client.server",
    "server.relay_key",
    "session.venture",
    "session.agent",
];

/// Folders of the user, as defined by the platform.
#[derive(Debug, Clone)]
pub(crate) struct UserFolders {
    /// The home folder.
    pub(crate) home: PathBuf,
    /// The folder of Baton's configuration.
    pub(crate) config: PathBuf,
    /// The folder of Baton's data.
    pub(crate) data: PathBuf,
}

/// A flag that overrides a setting.
#[derive(Clone)]
pub(crate) struct Flag {
    /// The flag with its dashes: `--listen`.
    pub(crate) name: &'static str,
    /// The key of the setting: `server.listen`.
    pub(crate) key: &'static str,
    pub(crate) value: OsString,
}

impl Flag {
    /// Creates a flag, if the argument was given.
    pub(crate) fn given(
        name: &'static str,
        key: &'static str,
        value: Option<impl Into<OsString>>,
    ) -> Option<Self> {
        value.map(|value| Self { name, key, value: value.into() })
    }
}

impl Sources {
    /// Reads the environment of the process.
    pub(crate) fn from_process(flags: Vec<Flag>) -> Self {
        let own = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with(ENV_PREFIX))?;
            Some((name, value))
        });
        let others = env_names()
            .filter(|name| !name.starts_with(ENV_PREFIX))
            .filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?)));
        let environment = own.chain(others).collect();
        let places = choose_base_strategy().ok().map(|base| UserFolders {
            home: base.home_dir().to_owned(),
            config: base.config_dir().join("baton"),
            data: base.data_dir().join("baton"),
        });
        Self { environment, cwd: std::env::current_dir().ok(), places, flags, ..Self::default() }
    }

    /// Returns an environment variable; an empty one counts as not set.
    pub(super) fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.get(name).filter(|value| !value.is_empty())
    }

    /// Returns the data folder without reading a configuration file. A hook uses it to record that a file is
    /// unreadable.
    pub(crate) fn data_dir_without_files(&self) -> Option<PathBuf> {
        let setting = find("data_dir")?;
        let flag = self.flags.iter().find(|flag| flag.key == setting.key).map(|flag| &flag.value);
        let named = flag.or_else(|| setting.env.iter().find_map(|name| self.variable(name)));
        match named {
            Some(path) => Some(self.folders().resolve(Path::new(path))),
            None => Some(self.places.as_ref()?.data.clone()),
        }
    }

    /// Ignores the invalid source of an error. Returns false if the source decides where a report is stored, or is
    /// ignored already.
    pub(super) fn ignore_source_of(&mut self, error: &ConfigError) -> bool {
        let project_file = self.project_file();
        let keys: &[&'static str] = match error {
            ConfigError::Unreadable { path, .. } | ConfigError::Syntax { path, .. } => {
                self.ignores_project_file |= project_file.as_ref() == Some(path);
                return self.ignores_project_file && project_file.is_some();
            }
            ConfigError::Invalid { origin: Origin::ProjectFile(_), .. } => {
                self.ignores_project_file = true;
                return project_file.is_some();
            }
            ConfigError::Invalid { key, .. } | ConfigError::NoModel { key, .. } => std::slice::from_ref(key),
            ConfigError::Jitter { .. } => &["heartbeat.jitter_seconds", "heartbeat.interval_seconds"],
            ConfigError::Unset { .. } | ConfigError::UnknownKey { .. } => return false,
        };
        if keys.iter().any(|key| CAPTURE_SETTINGS.contains(key) || self.ignored_settings.contains(key)) {
            return false;
        }
        self.ignored_settings.extend(keys);
        true
    }

    /// Returns the base folders for paths that are not in a file.
    pub(super) fn folders(&self) -> Folders<'_> {
        Folders { base: self.cwd.as_deref(), home: self.home() }
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.places.as_ref().map(|places| places.home.as_path())
    }

    /// Returns the user file named by the environment.
    pub(super) fn named_user_file(&self) -> Option<PathBuf> {
        self.variable(USER_FILE_ENV).map(|path| self.folders().resolve(Path::new(path)))
    }

    /// Returns the default path of the user file.
    pub(super) fn usual_user_file(&self) -> Option<PathBuf> {
        self.places.as_ref().map(|places| places.config.join("config.toml"))
    }

    /// Finds the nearest project file, from the working folder upward. The search stops at the first folder that is a
    /// repository, the home folder or the root.
    pub(super) fn project_file(&self) -> Option<PathBuf> {
        if self.ignores_project_file {
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

/// Returns true if the path exists, including a broken link: reading that must be an error and not be ignored.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
