//! Builds the frozen part of a task from its sources, and detects changed sources.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::Fault;
use baton_core::task::{Role, TaskId, default_pipeline};

use crate::config::{TaskConfig, source};
use crate::environment::TaskEnvironment;
use crate::named_file::read_text;
use crate::rules::{
    Capture, Captured, Citation, Immutable, LargeText, Source, TaskContext, capture, cite, expand,
    requested_sections, scope_patterns, stale_citations,
};
use crate::task_file::{self, ReadTask};

/// Initial content of a context.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// The frozen part, its warnings and its summary.
    pub(crate) captured: Captured,
    /// The task file.
    pub(crate) read: ReadTask,
    /// Roles, in order.
    pub(crate) pipeline: Vec<Role>,
    /// Source files, sorted.
    pub(crate) sources: Vec<Source>,
}

/// Reads the task file, the configuration and the standards, and builds the frozen part.
pub(crate) fn gather(
    environment: &TaskEnvironment,
    id: &TaskId,
    large_text: LargeText,
) -> Result<Gathered, Fault> {
    let root = environment.root();
    let read = task_file::read(root, id)?;
    read.task.check_in_progress(id, &read.path)?;
    let config = TaskConfig::read(root)?;
    let requested = requested_sections(&read.task, &config.table.citations, &read.path)?;
    let standards = texts(root, requested.iter().map(|section| section.file.as_str()))?;
    let (citations, missing) = cite(&requested, &standards);
    let mut scope =
        scope_patterns(&read.task.scope_in, &config.macros).map_err(|fault| fault.in_file(&read.path))?;
    let files = if scope.patterns.iter().any(|pattern| crate::rules::Glob::is_pattern(pattern)) {
        environment.tree().files()?
    } else {
        Vec::new()
    };
    let repo_paths = expand(&mut scope, &files);
    let mut captured = capture(Capture {
        task: &read.task,
        task_text: &read.text,
        task_path: &read.path,
        citations,
        cites_standards: !requested.is_empty(),
        qa: &config.qa(&read.task.area),
        repo_paths,
        scope_patterns: scope.patterns,
        large_text,
    })?;
    captured.warnings.extend(missing);
    captured.warnings.extend(scope.warnings);
    captured.warnings.extend(read.warnings.iter().cloned());
    // A citation is at most 140 characters long; the reader must know that the section is longer.
    for citation in
        captured.immutable.standards_citations.iter().filter(|citation| citation.requirement.ends_with('…'))
    {
        captured.warnings.push(format!(
            "the citation of {}#{} is truncated; read the section",
            citation.file, citation.section
        ));
    }
    let cited = &captured.immutable.standards_citations;
    let mut sources: Vec<Source> = standards
        .iter()
        .filter(|(path, _)| cited.iter().any(|c| c.file == **path))
        .map(|(path, text)| source(path, "standard", text))
        .collect();
    sources.extend(config.sources.iter().cloned());
    sources.push(Source { path: read.path.clone(), kind: "task".into(), sha256: read.sha256 });
    sources.sort();
    let pipeline =
        read.task.pipeline.clone().or_else(|| config.table.pipeline.clone()).unwrap_or_else(default_pipeline);
    Ok(Gathered { captured, read, pipeline, sources })
}

/// Reads files as text and skips missing ones.
fn texts<'a>(root: &Path, files: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, String>, Fault> {
    let mut found = BTreeMap::new();
    for file in files {
        if !found.contains_key(file)
            && let Some(text) = read_text(root, "standards", file)?
        {
            found.insert(file.to_owned(), text);
        }
    }
    Ok(found)
}

/// Lists citations whose section changed or is missing.
pub(crate) fn stale_standards(environment: &TaskEnvironment, immutable: &Immutable) -> Vec<String> {
    let citations: &[Citation] = &immutable.standards_citations;
    match texts(environment.root(), citations.iter().map(|citation| citation.file.as_str())) {
        Ok(texts) => stale_citations(citations, &texts),
        Err(fault) => vec![fault.message],
    }
}

/// Returns true if the task file has the hash that was captured.
pub(crate) fn task_file_is_unchanged(environment: &TaskEnvironment, context: &TaskContext) -> bool {
    task_file::current_sha(environment.root(), &context.task_file) == Some(context.git.task_file_sha)
}
