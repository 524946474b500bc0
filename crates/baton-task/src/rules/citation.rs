//! Citations: sections of standards that apply to a task, selected by the configuration (area and priority) or by the
//! task file.

use std::collections::BTreeMap;

use baton_core::{Fault, shorten};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::check_repo_path;
use super::section::{MAX_REQUIREMENT, Section, sections};
use super::task_file::{Priority, StandardRef, TaskFile};

/// Mapping rule: standards that apply to tasks of an area and priority.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CitationRule {
    /// Area, or `*` for all areas.
    pub area: String,
    /// Priorities. Defaults to all priorities.
    #[serde(default)]
    pub priorities: Vec<Priority>,
    /// Path of the file, relative to the root of the repository.
    pub file: String,
    /// Headings or their slugs.
    pub sections: Vec<String>,
}

impl CitationRule {
    fn applies(&self, task: &TaskFile) -> bool {
        (self.area == "*" || self.area == task.area.as_str())
            && (self.priorities.is_empty() || self.priorities.contains(&task.priority))
    }
}

/// A section of a standard that applies to a task, before it is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedSection {
    /// Path of the file.
    pub file: String,
    /// Heading or its slug.
    pub section: String,
    /// Requirement in the words of the task, if given.
    pub requirement: Option<String>,
    /// Source of the request, for messages.
    pub requested_by: String,
}

/// Reference to a section of a standard that applies to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Citation {
    /// Path of the file, relative to the root of the repository.
    pub file: String,
    /// Slug of the heading.
    pub section: String,
    /// Requirement, at most 140 characters.
    pub requirement: String,
    /// Lines, for example `L42-L89`.
    pub line_span: Option<String>,
    /// First 16 hex digits of the SHA-256 hash of these lines.
    pub content_sha: Option<String>,
}

/// Lists the sections that apply to a task: those of the configuration, then those of the task file.
///
/// # Errors
///
/// `invalid_request` if a path is outside the repository.
pub fn requested_sections(
    task: &TaskFile,
    rules: &[CitationRule],
    task_path: &str,
) -> Result<Vec<RequestedSection>, Fault> {
    let mut list = Vec::new();
    for rule in rules.iter().filter(|rule| rule.applies(task)) {
        for section in &rule.sections {
            list.push(RequestedSection {
                file: check_repo_path("task.citations.file", &rule.file)
                    .map_err(|fault| fault.in_file(".baton.toml"))?,
                section: section.clone(),
                requirement: None,
                requested_by: format!("the mapping for area {}", rule.area),
            });
        }
    }
    for StandardRef { file, section, requirement } in &task.standards {
        list.push(RequestedSection {
            file: check_repo_path("standards", file).map_err(|fault| fault.in_file(task_path))?,
            section: section.clone(),
            requirement: requirement.as_ref().map(|text| shorten(text.trim(), MAX_REQUIREMENT)),
            requested_by: task_path.to_owned(),
        });
    }
    Ok(list)
}

/// Finds every requested section in the texts of the files. If a section is requested twice, the later
/// request is used, which is the request of the task file. Sorted by file and section. Also returns a warning for every
/// missing file and section.
pub fn cite(
    requested: &[RequestedSection],
    texts: &BTreeMap<String, String>,
) -> (Vec<Citation>, Vec<String>) {
    let parsed: BTreeMap<&str, Vec<Section>> =
        texts.iter().map(|(file, text)| (file.as_str(), sections(text))).collect();
    let mut found = BTreeMap::new();
    let mut missing = Vec::new();
    for RequestedSection { file, section, requirement, requested_by } in requested {
        let Some(list) = parsed.get(file.as_str()) else {
            missing.push(format!("cannot cite {file}: it does not exist (requested by {requested_by})"));
            continue;
        };
        let Some(hit) = list.iter().find(|candidate| candidate.has_name(section)) else {
            let known: Vec<&str> = list.iter().map(|section| section.slug.as_str()).take(12).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            missing.push(format!(
                "cannot cite {file}: it has no section {section:?} (requested by {requested_by}); it has {known}"
            ));
            continue;
        };
        let citation = Citation {
            file: file.clone(),
            section: hit.slug.clone(),
            requirement: requirement.clone().unwrap_or_else(|| hit.summary.clone()),
            line_span: Some(hit.line_span()),
            content_sha: Some(hit.content_sha.clone()),
        };
        found.insert((file.clone(), hit.slug.clone()), citation);
    }
    missing.sort();
    missing.dedup();
    (found.into_values().collect(), missing)
}

/// Lists the citations whose file or section is missing or whose content changed. A section that only moved within its
/// file is not listed.
pub fn stale_citations(citations: &[Citation], texts: &BTreeMap<String, String>) -> Vec<String> {
    let mut stale = Vec::new();
    for citation in citations {
        let name = format!("{}#{}", citation.file, citation.section);
        let Some(text) = texts.get(&citation.file) else {
            stale.push(format!("{name}: the file is missing"));
            continue;
        };
        match sections(text).into_iter().find(|section| section.slug == citation.section) {
            None => stale.push(format!("{name}: the section is missing")),
            Some(section) if citation.content_sha.as_deref() != Some(section.content_sha.as_str()) => stale
                .push(format!(
                    "{name}: expected SHA {}, current SHA {}",
                    citation.content_sha.as_deref().unwrap_or("none"),
                    section.content_sha
                )),
            Some(_) => {}
        }
    }
    stale
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a task with standards, as `file#section` or with a requirement.
    fn task(standards: serde_json::Value) -> TaskFile {
        let parts =
            |standard: &serde_json::Value| match standard.as_str().and_then(|text| text.split_once('#')) {
                Some((file, section)) => json!({ "file": file, "section": section }),
                None => standard.clone(),
            };
        let standards: Vec<_> = standards.as_array().unwrap().iter().map(parts).collect();
        serde_json::from_value(
            json!({ "title": "t", "status": "in_progress", "priority": "P1", "area": "backend",
            "description": "d", "standards": standards }),
        )
        .unwrap()
    }

    fn rule(area: &str, priorities: &[Priority], file: &str, section: &str) -> CitationRule {
        CitationRule {
            area: area.into(),
            priorities: priorities.to_vec(),
            file: file.into(),
            sections: vec![section.into()],
        }
    }

    fn texts() -> BTreeMap<String, String> {
        BTreeMap::from([
            ("standards/backend.md".into(), "# B\n## Layering Rules\nLayers point down.\n".into()),
            ("standards/global.md".into(), "# G\n## Evidence\nKeep it. Always.\n## Other\n".into()),
        ])
    }

    #[test]
    fn rules_apply_by_area_and_priority_and_the_task_file_overrides_them() {
        let rules = [
            rule("backend", &[], "standards/backend.md", "Layering Rules"),
            rule("mobile", &[], "standards/nowhere.md", "x"),
            rule("*", &[Priority::P1], "standards/global.md", "evidence"),
            rule("*", &[Priority::P0], "standards/nowhere.md", "x"),
        ];
        let own = json!(["standards/global.md#other",
            { "file": "standards/global.md", "section": "Evidence", "requirement": "Own words" }]);
        let list = requested_sections(&task(own), &rules, "tasks/t").unwrap();
        let (cited, _) = cite(&list, &texts());
        let short: Vec<(&str, &str)> =
            cited.iter().map(|c| (c.section.as_str(), c.requirement.as_str())).collect();
        assert_eq!(
            short,
            [("layering-rules", "Layers point down."), ("evidence", "Own words"), ("other", "Other")]
        );
        assert_eq!(cited[0].line_span.as_deref(), Some("L2-L3"));
        assert!(stale_citations(&cited, &texts()).is_empty());
    }

    #[test]
    fn all_missing_sections_are_listed() {
        let own = json!(["standards/none.md#a", "standards/global.md#nothing"]);
        let (cited, missing) = cite(&requested_sections(&task(own), &[], "tasks/t").unwrap(), &texts());
        assert!(cited.is_empty() && missing.len() == 2, "{missing:?}");
        assert!(missing[0].contains("it has g, evidence, other"), "{missing:?}");
        assert!(missing[1].contains("standards/none.md: it does not exist"), "{missing:?}");
        assert!(requested_sections(&task(json!(["../x.md#a"])), &[], "t").is_err());
    }

    #[test]
    fn changed_section_is_stale_and_a_moved_one_is_not() {
        let list = requested_sections(&task(json!(["standards/global.md#evidence"])), &[], "t").unwrap();
        let (cited, _) = cite(&list, &texts());
        let with = |text: &str| BTreeMap::from([("standards/global.md".to_owned(), text.to_owned())]);
        assert!(stale_citations(&cited, &with("# G\n\n\n## Evidence\nKeep it. Always.\n")).is_empty());
        assert_eq!(stale_citations(&cited, &with("## Evidence\nDrop it.\n")).len(), 1);
        assert_eq!(
            stale_citations(&cited, &BTreeMap::new())[0],
            "standards/global.md#evidence: the file is missing"
        );
    }
}
