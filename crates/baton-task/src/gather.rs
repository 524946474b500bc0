//! Gathering what the frozen part of a task is made from, and whether that still says the same.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::task::{
    Capture, Captured, Citation, Immutable, LargeText, Role, Source, TaskContext, TaskId, capture, cite,
    default_pipeline, expand, scope_patterns, stale_citations, wanted,
};
use baton_core::{Fault, Sha256Hash};

use crate::config::TaskConfig;
use crate::inside::read_text;
use crate::place::TaskPlace;
use crate::task_file::{self, ReadTask};

/// Everything that a context begins with.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// The frozen part, its warnings and its summary.
    pub(crate) captured: Captured,
    /// The task file.
    pub(crate) read: ReadTask,
    /// Who works on it.
    pub(crate) pipeline: Vec<Role>,
    /// The files it came from, sorted.
    pub(crate) sources: Vec<Source>,
}

/// Reads the task file, the configuration and the standards, and makes the frozen part.
pub(crate) fn gather(place: &TaskPlace, id: &TaskId, large_text: LargeText) -> Result<Gathered, Fault> {
    let root = place.root();
    let read = task_file::read(root, id)?;
    read.task.check_in_progress(id, &read.path)?;
    let config = TaskConfig::read(root)?;
    let wanted = wanted(&read.task, &config.citations, &read.path)?;
    let standards = texts(root, wanted.iter().map(|wanted| wanted.file.as_str()))?;
    let citations = cite(&wanted, &standards)?;
    let mut scope =
        scope_patterns(read.task.scope_in(), &config.macros).map_err(|fault| fault.in_file(&read.path))?;
    let files = if scope.patterns.iter().any(|pattern| baton_core::task::Glob::is_pattern(pattern)) {
        place.tree().files()?
    } else {
        Vec::new()
    };
    let repo_paths = expand(&mut scope, &files);
    let mut captured = capture(Capture {
        task: &read.task,
        task_text: &read.text,
        task_path: &read.path,
        citations,
        qa: &config.qa(&read.task.area),
        repo_paths,
        scope_patterns: scope.patterns,
        large_text,
    })?;
    captured.warnings.extend(scope.warnings);
    captured.warnings.extend(read.warnings.iter().cloned());
    // A citation is at most 140 characters long; the reader must know that the section is longer.
    for citation in
        captured.immutable.standards_citations.iter().filter(|citation| citation.requirement.ends_with('…'))
    {
        captured
            .warnings
            .push(format!("the citation of {}#{} is cut: read the section", citation.file, citation.section));
    }
    let cited = &captured.immutable.standards_citations;
    let of_standard = |(path, text): (&String, &String)| Source {
        path: path.clone(),
        kind: "standard".into(),
        sha256: Sha256Hash::of(text.as_bytes()),
    };
    let mut sources: Vec<Source> = standards
        .iter()
        .filter(|(path, _)| cited.iter().any(|c| c.file == **path))
        .map(of_standard)
        .collect();
    sources.extend(config.sources.iter().cloned());
    sources.push(Source { path: read.path.clone(), kind: "task".into(), sha256: read.sha256 });
    sources.sort();
    let pipeline =
        read.task.pipeline.clone().or_else(|| config.pipeline.clone()).unwrap_or_else(default_pipeline);
    Ok(Gathered { captured, read, pipeline, sources })
}

/// Reads files as text; those that are not there are left out.
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

/// Says which citations do not say any more what they said.
pub(crate) fn stale(place: &TaskPlace, immutable: &Immutable) -> Vec<String> {
    let citations: &[Citation] = &immutable.standards_citations;
    match texts(place.root(), citations.iter().map(|citation| citation.file.as_str())) {
        Ok(texts) => stale_citations(citations, &texts),
        Err(fault) => vec![fault.message],
    }
}

/// Tells whether the task file is still the one that was captured.
pub(crate) fn task_file_is_unchanged(place: &TaskPlace, context: &TaskContext) -> bool {
    task_file::current_sha(place.root(), &context.task_file) == Some(context.git.task_file_sha)
}
