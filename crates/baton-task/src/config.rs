//! What a repository says about its tasks: `[task]` in `.baton.toml`, and `docs/templates/scope-globs.json`.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::task::{Area, CitationRule, QaDefaults, Role, ScopeMacros, Source, check_pipeline};
use baton_core::{ErrorCode, Fault, Sha256Hash};
use serde::Deserialize;

use crate::inside::read_text;

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
struct TaskTable {
    pipeline: Option<Vec<Role>>,
    #[serde(default)]
    citations: Vec<CitationRule>,
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

/// What a repository says about its tasks.
#[derive(Debug, Default)]
pub(crate) struct TaskConfig {
    /// Who works on a task that does not say it.
    pub(crate) pipeline: Option<Vec<Role>>,
    /// Which sections bind which tasks.
    pub(crate) citations: Vec<CitationRule>,
    /// What macros in a scope stand for.
    pub(crate) macros: ScopeMacros,
    /// The files that said so.
    pub(crate) sources: Vec<Source>,
    commands: Vec<String>,
    by_area: BTreeMap<Area, Vec<String>>,
}

impl TaskConfig {
    /// Reads both files. Where they name the same macro the project file wins.
    pub(crate) fn read(root: &Path) -> Result<Self, Fault> {
        let mut config = Self::default();
        if let Some(text) = read_text(root, "scope globs", SCOPE_GLOBS_FILE)? {
            let mut table: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text)
                .map_err(|error| unreadable(SCOPE_GLOBS_FILE, &error.to_string()))?;
            // The macros may stand below `globs`, beside a version and a description.
            if let Some(serde_json::Value::Object(globs)) = table.remove("globs") {
                table = globs.into_iter().collect();
            }
            for (name, value) in table.into_iter().filter(|(name, _)| !name.starts_with(['$', '_'])) {
                let patterns: Patterns = serde_json::from_value(value).map_err(|_| {
                    unreadable(SCOPE_GLOBS_FILE, &format!("{name:?} must be a pattern or a list of them"))
                })?;
                config.macros.insert(bare(&name), patterns.into_list());
            }
            config.sources.push(source(SCOPE_GLOBS_FILE, "scope_globs", &text));
        }
        if let Some(text) = read_text(root, "configuration", PROJECT_FILE)? {
            let file: ProjectFile = toml::from_str(&text).map_err(|error| {
                let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                unreadable(&format!("{PROJECT_FILE}:{line}"), error.message())
            })?;
            if let Some(table) = file.task {
                config.take(table)?;
                config.sources.push(source(PROJECT_FILE, "configuration", &text));
            }
        }
        Ok(config)
    }

    fn take(&mut self, table: TaskTable) -> Result<(), Fault> {
        if let Some(pipeline) = &table.pipeline {
            check_pipeline(pipeline)
                .map_err(|problem| unreadable(PROJECT_FILE, &format!("task.pipeline {problem}")))?;
        }
        self.pipeline = table.pipeline;
        self.citations = table.citations;
        self.commands = table.qa.commands;
        self.by_area = table.qa.area;
        self.macros.extend(table.scope_globs.into_iter().map(|(name, list)| (bare(&name), list.into_list())));
        Ok(())
    }

    /// The quality commands of an area and of the repository.
    pub(crate) fn qa(&self, area: &Area) -> QaDefaults {
        QaDefaults {
            area: self.by_area.get(area).cloned().unwrap_or_default(),
            repository: self.commands.clone(),
        }
    }
}

fn bare(name: &str) -> String {
    name.trim_start_matches(':').to_owned()
}

fn source(path: &str, kind: &str, text: &str) -> Source {
    Source { path: path.into(), kind: kind.into(), sha256: Sha256Hash::of(text.as_bytes()) }
}

fn unreadable(place: &str, problem: &str) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("{place}: {}", problem.replace('\n', " ")))
        .hint("docs/task-context.md shows what may stand there")
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
    fn both_files_count_and_the_project_file_wins() {
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
        assert_eq!(config.pipeline.unwrap().len(), 2);
    }

    #[test]
    fn macros_may_stand_below_globs() {
        let globs = r#"{"version":1,"description":"macros","globs":{":ui":["ui/**/*.{ts,tsx}"],":api":["api/*.ts"]}}"#;
        let config = read(None, Some(globs)).unwrap();
        assert_eq!(config.macros.keys().collect::<Vec<_>>(), ["api", "ui"]);
    }

    #[test]
    fn the_documented_example_can_be_read() {
        let text = include_str!("../../../docs/task-context.md");
        let example = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let config = read(Some(example), None).unwrap();
        let sections: usize = config.citations.iter().map(|rule| rule.sections.len()).sum();
        assert_eq!((config.citations.len(), sections), (15, 26));
    }

    #[test]
    fn nothing_is_fine_and_nonsense_is_not() {
        let empty = read(None, None).unwrap();
        assert!(empty.sources.is_empty() && empty.pipeline.is_none());
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
