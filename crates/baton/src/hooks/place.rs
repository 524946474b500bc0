//! Location of an agent's work: repository, branch, commit and machine, derived from the working folder of its hook.

use std::path::{Path, PathBuf};

use baton_git::Repository;
use serde_json::{Map, Value};

use crate::checkout::{find_root, git};

/// Adds the working folder, machine, repository, branch and commit to a report, unless it has them.
pub(crate) fn describe_place(report: &mut Map<String, Value>) {
    let named = report.get("cwd").and_then(Value::as_str).map(PathBuf::from);
    let Some(folder) = named.or_else(|| std::env::current_dir().ok()) else {
        // The working folder was deleted.
        return add(report, "repo", Some("local/unknown".to_owned()));
    };
    if !report.get("cwd").is_some_and(Value::is_string) {
        report.remove("cwd");
        add(report, "cwd", folder.to_str().map(str::to_owned));
    }
    add(report, "host", host());
    let Some(root) = find_root(&folder) else { return };
    let Some(glance) = Repository::glance(&root) else { return };
    add(report, "root", root.to_str().map(str::to_owned));
    add(report, "branch", glance.branch);
    add(report, "commit_sha", glance.commit);
    let name = glance.name.or_else(|| name_from_git(&root));
    add(report, "repo", name.map(Into::into));
}

/// Runs git to get the name of the repository, for configurations that `Repository::glance` cannot read.
fn name_from_git(root: &Path) -> Option<baton_core::Repo> {
    Repository::name_at(&git().ok()?, root).ok().flatten()
}

fn host() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn add(report: &mut Map<String, Value>, field: &str, value: Option<String>) {
    if let Some(value) = value {
        report.entry(field).or_insert(Value::String(value));
    }
}
