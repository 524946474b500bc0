//! Reads the layers in order of precedence, lowest first; each overrides the previous ones.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use toml::Table;

use super::problem::{ConfigError, Origin, Warning};
use super::settings::{Preset, ProjectFile, SETTINGS, Setting, USER_FILE_ENV, env_names, find};
use super::sources::{ENV_PREFIX, Sources};
use super::value::{Folders, Raw, Value, without_controls};

/// Maximum size of a configuration file; protects against a link to an endless device.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Minimum similarity of two names for a suggestion.
const MIN_SIMILARITY: f64 = 0.7;

/// Table of a project file that configures tasks. It holds no settings and is read by the task operations.
const TASK_TABLE: &str = "task.";

/// Prefixes of variables used by builds, tests and benchmarks. They set nothing and cause no warning.
const FOREIGN_PREFIXES: [&str; 3] = ["BATON_TEST_", "BATON_BENCH_", "BATON_COMMIT"];

/// All settings with their effective values.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    pub(super) settings: Box<[Effective; SETTINGS.len()]>,
    warnings: Vec<Warning>,
}

/// A setting with its effective value and the origin of the value.
#[derive(Debug, Clone)]
pub(super) struct Effective {
    pub(super) setting: &'static Setting,
    /// `None` if no layer sets a value.
    pub(super) value: Option<(Value, Origin)>,
    /// True if only the default is used.
    is_ignored: bool,
}

impl Effective {
    fn set(&mut self, raw: Raw<'_>, origin: Origin, folders: Folders<'_>) -> Result<(), ConfigError> {
        if origin != Origin::Default && self.is_ignored {
            return Ok(());
        }
        match self.setting.kind.read(raw, folders) {
            Some(value) => {
                self.value = Some((value, origin));
                Ok(())
            }
            None => Err(ConfigError::invalid(self.setting, origin, self.setting.kind.found(raw))),
        }
    }
}

impl Layers {
    /// Reads every layer. An invalid value is an error even if a layer with higher precedence overrides it.
    pub(super) fn read(sources: &Sources) -> Result<Self, ConfigError> {
        let settings = SETTINGS.each_ref().map(|setting| {
            let is_ignored = sources.ignored_settings.contains(&setting.key);
            Effective { setting, value: None, is_ignored }
        });
        let mut layers = Self { settings: Box::new(settings), warnings: Vec::new() };
        layers.read_defaults(sources)?;
        layers.read_user_file(sources)?;
        layers.read_project_file(sources)?;
        layers.read_environment(sources)?;
        layers.read_flags(sources)?;
        Ok(layers)
    }

    pub(super) fn get(&self, key: &str) -> Option<&(Value, Origin)> {
        self.settings.iter().find(|effective| effective.setting.key == key)?.value.as_ref()
    }

    fn find_mut(&mut self, key: &str) -> Option<&mut Effective> {
        self.settings.iter_mut().find(|effective| effective.setting.key == key)
    }

    /// Removes and returns the warnings.
    pub(super) fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn read_defaults(&mut self, sources: &Sources) -> Result<(), ConfigError> {
        for effective in self.settings.iter_mut() {
            let raw = match effective.setting.default {
                Preset::Nothing => None,
                Preset::DataFolder => sources.places.as_ref().map(|places| places.data.as_os_str()),
                Preset::Text(text) => Some(text.as_ref()),
            };
            if let Some(raw) = raw {
                effective.set(Raw::Os(raw), Origin::Default, Folders::default())?;
            }
        }
        Ok(())
    }

    fn read_user_file(&mut self, sources: &Sources) -> Result<(), ConfigError> {
        let named = sources.named_user_file();
        let Some(path) = named.clone().or_else(|| sources.usual_user_file()) else {
            return Ok(());
        };
        // The user chose this file, so it may also be `/dev/null` or a pipe.
        let table = match File::open(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                self.warnings.extend(named.map(|path| Warning::NoUserFile { env: USER_FILE_ENV, path }));
                return Ok(());
            }
            file => parse(&path, file)?,
        };
        self.read_table(&table, &Origin::UserFile(path), sources)
    }

    fn read_project_file(&mut self, sources: &Sources) -> Result<(), ConfigError> {
        let Some(path) = sources.project_file() else {
            return Ok(());
        };
        let table = parse(&path, open_regular(&path))?;
        self.read_table(&table, &Origin::ProjectFile(path), sources)
    }

    fn read_table(&mut self, table: &Table, origin: &Origin, sources: &Sources) -> Result<(), ConfigError> {
        let (Origin::UserFile(path) | Origin::ProjectFile(path)) = origin else {
            return Ok(());
        };
        let folders = Folders { base: path.parent(), home: sources.home() };
        for (key, value) in flatten(table) {
            if matches!(origin, Origin::ProjectFile(_)) && key.starts_with(TASK_TABLE) {
                continue;
            }
            let Some(effective) = self.find_mut(&key) else {
                let nearest = nearest(&key, SETTINGS.iter().map(|setting| setting.key));
                self.warnings.push(Warning::UnknownKey { key, path: path.clone(), nearest });
                continue;
            };
            let setting = effective.setting;
            match (origin, setting.project_file) {
                (Origin::ProjectFile(_), ProjectFile::MayNot(reason)) => {
                    let (path, env) = (path.clone(), setting.env_name());
                    self.warnings.push(Warning::NotForProjects { key: setting.key, path, reason, env });
                }
                _ => effective.set(Raw::Toml(value), origin.clone(), folders)?,
            }
        }
        Ok(())
    }

    fn read_environment(&mut self, sources: &Sources) -> Result<(), ConfigError> {
        for effective in self.settings.iter_mut() {
            let mut names = effective.setting.env.iter();
            if let Some((name, value)) = names.find_map(|name| Some((*name, sources.variable(name)?))) {
                effective.set(Raw::Os(value), Origin::Environment(name), sources.folders())?;
            }
        }
        for name in sources.environment.keys() {
            let ours = name.starts_with(ENV_PREFIX)
                && !FOREIGN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                && sources.variable(name).is_some();
            if ours && !env_names().any(|known| known == name) {
                let known = env_names().filter(|known| known.starts_with(ENV_PREFIX));
                self.warnings
                    .push(Warning::UnknownVariable { name: name.clone(), nearest: nearest(name, known) });
            }
        }
        Ok(())
    }

    fn read_flags(&mut self, sources: &Sources) -> Result<(), ConfigError> {
        for flag in &sources.flags {
            let Some(effective) = self.find_mut(flag.key) else {
                return Err(ConfigError::UnknownKey { flag: flag.name, key: flag.key });
            };
            effective.set(Raw::Os(&flag.value), Origin::Flag(flag.name), sources.folders())?;
        }
        Ok(())
    }
}

/// Opens a file of a repository. Only regular files are accepted: a device or pipe behind a link could block forever.
fn open_regular(path: &Path) -> io::Result<File> {
    if path.metadata()?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

fn parse(path: &Path, file: io::Result<File>) -> Result<Table, ConfigError> {
    let text = file
        .and_then(read_text)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    text.parse().map_err(|error| syntax(path.to_owned(), &text, &error))
}

fn read_text(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let problem = format!("it is longer than {MAX_FILE_BYTES} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

/// Returns the position of a syntax error. The text itself is not repeated, because it may contain a key.
fn syntax(path: PathBuf, text: &str, error: &toml::de::Error) -> ConfigError {
    let end = error.span().map_or(0, |span| span.start);
    let before = text.get(..end).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    ConfigError::Syntax { path, line, column, message: without_controls(error.message()) }
}

/// Returns the dotted keys of a table. A table where a setting is expected is not expanded, so that it is rejected.
fn flatten(table: &Table) -> Vec<(String, &toml::Value)> {
    let mut found = Vec::new();
    let mut open: Vec<(String, &Table)> = vec![(String::new(), table)];
    while let Some((prefix, table)) = open.pop() {
        for (name, value) in table {
            let key = format!("{prefix}{name}");
            match value {
                toml::Value::Table(inner) if find(&key).is_none() => open.push((format!("{key}."), inner)),
                _ => found.push((key, value)),
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// Finds a suggestion for an unknown name: a similar name, or one that ends with it.
fn nearest(written: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let bare = |name: &str| name.strip_prefix(ENV_PREFIX).unwrap_or(name).to_ascii_lowercase();
    let written = bare(written);
    let alike = |name: &str| {
        let name = bare(name);
        match name.strip_suffix(&written) {
            Some(before) if before.ends_with(['.', '_']) => 1.0,
            _ => strsim::normalized_damerau_levenshtein(&name, &written),
        }
    };
    known
        .map(|name| (alike(name), name))
        .filter(|(alike, _)| *alike >= MIN_SIMILARITY)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
