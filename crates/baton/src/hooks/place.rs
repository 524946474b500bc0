//! Where an agent works: repository, branch, commit, machine, told by the folder that its hook names.

use std::path::{Path, PathBuf};

use baton_git::Repository;
use serde_json::{Map, Value};

use crate::checkout::{find_root, git};

/// Adds what can be seen of the place to a report that does not say it itself.
pub(crate) fn describe_place(report: &mut Map<String, Value>) {
    let named = report.get("cwd").and_then(Value::as_str).map(PathBuf::from);
    let Some(folder) = named.or_else(|| std::env::current_dir().ok()) else {
        // The folder that the agent worked in is gone.
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
    let name = glance.name.or_else(|| asked(&root));
    add(report, "repo", name.map(Into::into));
}

/// Asks git for the name, where its configuration cannot be read at a glance.
fn asked(root: &Path) -> Option<baton_core::Repo> {
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
