//! Task configuration of a repository: `[task]` in `.baton.toml`, and `docs/templates/scope-globs.json`.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::task::{Area, Role};
use baton_core::{ErrorCode, Fault, Sha256Hash};
use serde::Deserialize;

use crate::named_file::read_text;
use crate::rules::{CitationRule, QaDefaults, ScopeMacros, Source, check_pipeline};

const PROJECT_FILE: &str = ".baton.toml";
const SCOPE_GLOBS_FILE: &str = "docs/templates/scope-globs.json";

#[derive(Debug, Default, Deserialize)]
struct ProjectFile {
    #[serde(default)]
    task: Option<TaskTable>,
}

/// `[task]` of a project file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskTable {
    /// Roles of tasks that do not name their own.
    pub(crate) pipeline: Option<Vec<Role>>,
    /// Rules that select the cited sections of a task.
    #[serde(default)]
    pub(crate) citations: Vec<CitationRule>,
    #[serde(default)]
    qa: QaTable,
    #[serde(default)]
    scope_globs: BTreeMap<String, Patterns>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct QaTable {
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    area: BTreeMap<Area, Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Patterns {
    One(String),
    Many(Vec<String>),
}

impl Patterns {
    fn into_list(self) -> Vec<String> {
        match self {
            Self::One(pattern) => vec![pattern],
            Self::Many(patterns) => patterns,
        }
    }
}

/// Task configuration of a repository.
#[derive(Debug, Default)]
pub(crate) struct TaskConfig {
    /// `[task]` of the project file.
    pub(crate) table: TaskTable,
    /// Patterns of the scope macros.
    pub(crate) macros: ScopeMacros,
    /// Files that the configuration was read from.
    pub(crate) sources: Vec<Source>,
}

impl TaskConfig {
    /// Reads both files. If both define a macro, the project file takes precedence.
    pub(crate) fn read(root: &Path) -> Result<Self, Fault> {
        let mut config = Self::default();
        if let Some(text) = read_text(root, "scope globs", SCOPE_GLOBS_FILE)? {
            let mut table: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text)
                .map_err(|error| invalid_setting(SCOPE_GLOBS_FILE, &error.to_string()))?;
            // The macros may be in a member `globs`, next to a version and a description.
            if let Some(serde_json::Value::Object(globs)) = table.get_mut("globs") {
                table = std::mem::take(globs).into_iter().collect();
            }
            for (name, value) in table.into_iter().filter(|(name, _)| !name.starts_with(['$', '_'])) {
                let patterns: Patterns = serde_json::from_value(value).map_err(|_| {
                    invalid_setting(
                        SCOPE_GLOBS_FILE,
                        &format!("{name:?} must be a pattern or a list of them"),
                    )
                })?;
                config.macros.insert(bare(&name), patterns.into_list());
            }
            config.sources.push(source(SCOPE_GLOBS_FILE, "scope_globs", &text));
        }
        if let Some(text) = read_text(root, "configuration", PROJECT_FILE)? {
            let file: ProjectFile = toml::from_str(&text).map_err(|error| {
                let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                invalid_setting(&format!("{PROJECT_FILE}:{line}"), error.message())
            })?;
            if let Some(mut table) = file.task {
                if let Some(pipeline) = &table.pipeline {
                    check_pipeline(pipeline).map_err(|problem| {
                        invalid_setting(PROJECT_FILE, &format!("task.pipeline {problem}"))
                    })?;
                }
                let macros = std::mem::take(&mut table.scope_globs).into_iter();
                config.macros.extend(macros.map(|(name, list)| (bare(&name), list.into_list())));
                config.table = table;
                config.sources.push(source(PROJECT_FILE, "configuration", &text));
            }
        }
        Ok(config)
    }

    /// Returns the QA commands of an area and of the repository.
    pub(crate) fn qa(&self, area: &Area) -> QaDefaults {
        QaDefaults {
            area: self.table.qa.area.get(area).cloned().unwrap_or_default(),
            repository: self.table.qa.commands.clone(),
        }
    }
}

fn bare(name: &str) -> String {
    name.trim_start_matches(':').to_owned()
}

/// Describes a file that the frozen part is created from.
pub(crate) fn source(path: &str, kind: &str, text: &str) -> Source {
    Source { path: path.into(), kind: kind.into(), sha256: Sha256Hash::of(text.as_bytes()) }
}

fn invalid_setting(location: &str, problem: &str) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("{location}: {}", problem.replace('\n', " ")))
        .hint("see docs/task-context.md for the allowed settings")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: Option<&str>, globs: Option<&str>) -> Result<TaskConfig, Fault> {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("docs/templates")).unwrap();
        if let Some(text) = toml {
            std::fs::write(root.path().join(PROJECT_FILE), text).unwrap();
        }
        if let Some(text) = globs {
            std::fs::write(root.path().join(SCOPE_GLOBS_FILE), text).unwrap();
        }
        TaskConfig::read(root.path())
    }

    #[test]
    fn both_files_are_read_and_the_project_file_takes_precedence() {
        let toml = "[session]\nventure = 'x'\n[task]\npipeline = ['writer', 'editor']\n\
            [[task.citations]]\narea = '*'\nfile = 'standards/a.md'\nsections = ['B']\n\
            [task.qa]\ncommands = ['make']\n[task.qa.area]\nbackend = ['cargo test']\n\
            [task.scope_globs]\nui = 'ui/**'\n";
        let config = read(Some(toml), Some(r#"{":ui":["old/**"],":api":["api/**"],"$schema":"x"}"#)).unwrap();
        assert_eq!(config.macros["ui"], ["ui/**"]);
        assert_eq!(config.macros["api"], ["api/**"]);
        assert_eq!(config.sources.len(), 2);
        let qa = config.qa(&"backend".parse().unwrap());
        assert_eq!((qa.area, qa.repository), (vec!["cargo test".into()], vec!["make".into()]));
        assert_eq!(config.table.pipeline.unwrap().len(), 2);
    }

    #[test]
    fn macros_are_read_from_the_globs_member() {
        let globs = r#"{"version":1,"description":"macros","globs":{":ui":["ui/**/*.{ts,tsx}"],":api":["api/*.ts"]}}"#;
        let config = read(None, Some(globs)).unwrap();
        assert_eq!(config.macros.keys().collect::<Vec<_>>(), ["api", "ui"]);
        let config = read(None, Some(r#"{"globs":["globs/**"],"api":"api/*.ts"}"#)).unwrap();
        assert_eq!(config.macros["globs"], ["globs/**"]);
        assert_eq!(config.macros.keys().collect::<Vec<_>>(), ["api", "globs"]);
    }

    #[test]
    fn the_documented_example_is_valid() {
        let text = include_str!("../../../docs/task-context.md");
        let example = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let config = read(Some(example), None).unwrap();
        let sections: usize = config.table.citations.iter().map(|rule| rule.sections.len()).sum();
        assert_eq!((config.table.citations.len(), sections), (15, 26));
    }

    #[test]
    fn missing_files_are_accepted_and_invalid_files_are_rejected() {
        let empty = read(None, None).unwrap();
        assert!(empty.sources.is_empty() && empty.table.pipeline.is_none());
        assert!(read(Some("[session]\n"), None).unwrap().sources.is_empty());
        for (toml, globs) in [
            (Some("[task]\nnonsense = 1\n"), None),
            (Some("[task]\npipeline = ['a', 'a']\n"), None),
            (Some("[task]\npipeline = ['../x']\n"), None),
            (Some("[task\n"), None),
            (None, Some("[]")),
            (None, Some(r#"{"a":1}"#)),
        ] {
            assert_eq!(read(toml, globs).unwrap_err().code, ErrorCode::InvalidRequest, "{toml:?} {globs:?}");
        }
        let fault = read(Some("[task]\n\nnonsense = 1\n"), None).unwrap_err();
        assert!(fault.message.starts_with(".baton.toml:3: "), "{}", fault.message);
    }
}
