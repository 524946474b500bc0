//! Filters of documents: the terms by which the full-text index applies them, and the conditions on columns. Names have
//! no spaces; the columns are compared as well, because SQLite folds case.

use baton_core::recall::{Document, ItemKind, ends_with_path};
use baton_core::{Repo, SessionId, Timestamp, Venture};

use crate::column::Param;
use crate::sql::QueryBuilder;

/// Maximum number of files per document that filters find.
const MAX_FILES: usize = 500;

/// Filter for documents. Absent conditions match every document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecallFilter {
    /// Ventures, any of these.
    pub ventures: Vec<Venture>,
    pub repo: Option<Repo>,
    pub branch: Option<String>,
    pub session_id: Option<SessionId>,
    pub agent: Option<String>,
    pub kind: Option<ItemKind>,
    /// File: a whole path or the last components of one.
    pub file: Option<String>,
    /// Earliest time, inclusive.
    pub since: Option<Timestamp>,
    /// Latest time, exclusive.
    pub until: Option<Timestamp>,
}

impl RecallFilter {
    pub(super) const fn has_period(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }
}

fn venture_term(name: &str) -> String {
    format!("v={name}")
}
fn repo_term(name: &str) -> String {
    format!("r={name}")
}
fn session_term(id: &str) -> String {
    format!("s={id}")
}
fn agent_term(name: &str) -> String {
    format!("a={name}")
}
fn branch_term(name: &str) -> String {
    format!("b={}", name.replace(char::is_whitespace, "_"))
}
fn kind_term(kind: ItemKind) -> String {
    format!("k={}", kind.as_str())
}
fn file_term(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut name = name.replace(|letter: char| letter.is_whitespace() || letter.is_control(), "_");
    name.truncate(name.floor_char_boundary(200));
    format!("f={}", name.to_lowercase())
}

pub(super) fn scope_of(document: &Document) -> String {
    let mut terms = vec![venture_term(document.venture.as_str()), kind_term(document.kind)];
    terms.extend(document.repo.as_ref().map(|name| repo_term(name.as_str())));
    terms.extend(document.session_id.map(|id| session_term(&id.to_string())));
    terms.extend(document.agent.as_deref().map(agent_term));
    terms.extend(document.branch.as_deref().map(branch_term));
    let mut files: Vec<String> = document.files.iter().take(MAX_FILES).map(|path| file_term(path)).collect();
    files.sort_unstable();
    files.dedup();
    terms.extend(files);
    terms.join(" ")
}

/// Returns the terms that every match must contain because of the filter; of each group any one.
pub(super) fn required_terms(filter: &RecallFilter) -> Vec<Vec<String>> {
    let mut groups = vec![filter.ventures.iter().map(|name| venture_term(name.as_str())).collect::<Vec<_>>()];
    let mut one = |term: Option<String>| groups.extend(term.map(|term| vec![term]));
    one(filter.repo.as_ref().map(|name| repo_term(name.as_str())));
    one(filter.session_id.map(|id| session_term(&id.to_string())));
    one(filter.agent.as_deref().map(agent_term));
    one(filter.branch.as_deref().map(branch_term));
    one(filter.kind.map(kind_term));
    one(filter.file.as_deref().map(file_term));
    groups
}

/// Adds the conditions of a filter on columns. The file is compared by the caller. `no_index_prefix` is written
/// before each column: a plus keeps SQLite from using an index for it.
pub(super) fn conditions<'a>(query: &mut QueryBuilder<'a>, filter: &'a RecallFilter, no_index_prefix: &str) {
    query.text(" AND ").text(no_index_prefix).among("venture", &filter.ventures);
    let mut condition = |column: &str, value: Option<Param<'a>>| {
        if let Some(value) = value {
            query.text(" AND ").text(no_index_prefix).text(column).with(" $?", value);
        }
    };
    condition("repo =", filter.repo.as_ref().map(Into::into));
    condition("branch =", filter.branch.as_ref().map(Into::into));
    condition("session_id =", filter.session_id.map(Into::into));
    condition("agent =", filter.agent.as_ref().map(Into::into));
    condition("kind =", filter.kind.map(|kind| kind.into()));
    condition("created_at >=", filter.since.map(Into::into));
    condition("created_at <", filter.until.map(Into::into));
}

/// Returns true if the files of a document contain the file of a filter.
pub(super) fn touches(files: &[String], file: Option<&String>) -> bool {
    let Some(file) = file else { return true };
    let file = file.trim_start_matches("./");
    files.iter().any(|path| ends_with_path(path, file))
}
