//! Exports of the frozen part for each role (`context-<role>.json`), and the manifest of derived files.

use std::collections::BTreeMap;

use baton_core::task::{Role, TaskId};
use baton_core::{Fault, Sha256Hash};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::context::{Source, TaskContext, canonical_line, unwritable};
use super::normalize::NORMALIZER_VERSION;

/// Name of the serializer in manifests: RFC 8785 canonical JSON in UTF-8 with one LF at the end.
pub const SERIALIZER: &str = "baton-canonical-json";

pub const SERIALIZER_VERSION: &str = "1.0.0";

pub const MANIFEST_FILE: &str = "context.manifest";

/// Returns the fields of the frozen part that a role does not need. Reviewers do not need the test baseline, validators
/// do not need the standards. Other roles get every field.
fn omitted_fields(role: &Role) -> &'static [&'static str] {
    match role.as_str() {
        "reviewer" => &["validation_baseline", "scope_patterns"],
        "validator" => &["standards_citations", "scope_patterns"],
        "implementer" => &["scope_patterns"],
        _ => &[],
    }
}

/// Returns the file name of a role's export.
pub fn export_file(role: &Role) -> String {
    format!("context-{role}.json")
}

/// Returns the export of a role: the fields of the frozen part that the role needs.
///
/// # Errors
///
/// `internal` if the context cannot be serialized.
pub fn role_export(context: &TaskContext, role: &Role) -> Result<Value, Fault> {
    let mut immutable = serde_json::to_value(&context.immutable).map_err(unwritable)?;
    if let Value::Object(fields) = &mut immutable {
        omitted_fields(role).iter().for_each(|field| {
            fields.remove(*field);
        });
    }
    Ok(with_frozen_part(context, role, immutable))
}

/// Returns the text of a role's export before and after the frozen part, which may have megabytes.
///
/// # Errors
///
/// `internal` if the context cannot be serialized.
pub fn export_edges(context: &TaskContext, role: &Role) -> Result<(String, String), Fault> {
    let text = canonical_line(&with_frozen_part(context, role, Value::Null))?;
    let (before, after) =
        text.split_once("\"immutable\":null").ok_or_else(|| unwritable("an export has a frozen part"))?;
    Ok((format!("{before}\"immutable\":"), after.to_owned()))
}

fn with_frozen_part(context: &TaskContext, role: &Role, immutable: Value) -> Value {
    json!({
        "version": context.version,
        "task_id": context.task_id,
        "role": role,
        "git": { "base_commit": context.git.base_commit, "head": context.git.head },
        "pipeline": context.pipeline,
        "immutable": immutable,
        "immutable_revision": context.immutable_revision.number,
    })
}

/// Sources and derived files of a task context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this document.
    pub version: u32,
    pub task_id: TaskId,
    /// Revision of the frozen part.
    pub immutable_revision: u64,
    /// SHA-256 hash of the frozen part.
    pub immutable_sha256: Sha256Hash,
    /// Serializer of the files.
    pub serializer: Tool,
    /// Normalization of text.
    pub normalizer: Tool,
    /// Sources of the frozen part.
    pub sources: Vec<Source>,
    /// Derived files, by file name.
    pub derived: BTreeMap<String, Sha256Hash>,
}

/// Name and version of a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub version: String,
}

/// Creates all files that are derived from the context: the exports, then the manifest.
///
/// # Errors
///
/// `internal` if the context cannot be serialized.
pub fn derive(context: &TaskContext) -> Result<Vec<(String, String)>, Fault> {
    let mut files = Vec::new();
    let mut derived = BTreeMap::new();
    for role in &context.pipeline {
        let text = canonical_line(&role_export(context, role)?)?;
        derived.insert(export_file(role), Sha256Hash::of(text.as_bytes()));
        files.push((export_file(role), text));
    }
    let tool = |name: &str, version: &str| Tool { name: name.into(), version: version.into() };
    let manifest = Manifest {
        version: context.version,
        task_id: context.task_id.clone(),
        immutable_revision: context.immutable_revision.number,
        immutable_sha256: context.immutable_revision.sha256,
        serializer: tool(SERIALIZER, SERIALIZER_VERSION),
        normalizer: tool("normalize_multiline", NORMALIZER_VERSION),
        sources: context.sources.clone(),
        derived,
    };
    let value = serde_json::to_value(&manifest).map_err(unwritable)?;
    files.push((MANIFEST_FILE.into(), canonical_line(&value)?));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::context::tests::sample;

    #[test]
    fn export_contains_the_fields_of_the_role() {
        let context = sample();
        let export = |name: &str| role_export(&context, &name.parse().unwrap()).unwrap()["immutable"].clone();
        assert!(export("implementer").get("validation_baseline").is_some());
        assert!(export("reviewer").get("validation_baseline").is_none());
        assert!(export("reviewer").get("standards_citations").is_some());
        assert!(export("validator").get("standards_citations").is_none());
        assert!(export("security").get("scope_patterns").is_some());
    }

    #[test]
    fn text_around_the_frozen_part_matches_the_export() {
        let context = sample();
        for role in &context.pipeline {
            let text = canonical_line(&role_export(&context, role).unwrap()).unwrap();
            let (before, after) = export_edges(&context, role).unwrap();
            assert!(text.starts_with(&before) && text.ends_with(&after), "{before} {after}");
        }
    }

    #[test]
    fn manifest_lists_every_derived_file_with_its_hash() {
        let context = sample();
        let files = derive(&context).unwrap();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "context-implementer.json",
                "context-reviewer.json",
                "context-validator.json",
                "context.manifest"
            ]
        );
        let manifest: Manifest = serde_json::from_str(&files[3].1).unwrap();
        for (name, text) in &files[..3] {
            assert_eq!(manifest.derived[name], Sha256Hash::of(text.as_bytes()));
        }
        assert_eq!(manifest.normalizer.version, "1.0.0");
        assert_eq!(derive(&context).unwrap(), files);
    }
}
