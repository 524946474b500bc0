//! Location of an agent's work: repository, branch, commit and machine, derived from the working folder of its hook.

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use baton_core::Sha256Hash;
use baton_git::{Limits, Repository};
use baton_observation::files_of;
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
    let Some(head_info) = Repository::read_head_info(&root) else { return };
    add(report, "root", root.to_str().map(str::to_owned));
    add(report, "branch", head_info.branch);
    add(report, "commit_sha", head_info.commit);
    let name = head_info.name.or_else(|| name_from_git(&root));
    add(report, "repo", name.map(Into::into));
}

/// Time limit of each call of git for the list of branches. Agents stop a hook at the end of a chat early.
const BRANCHES_TIME_LIMIT: Duration = Duration::from_millis(100);
/// Maximum number of branches in a report.
const MAX_BRANCHES: usize = 500;

/// Adds the branches that are not merged into the main branch. Runs git, so it is only for events that may take time.
pub(crate) fn describe_branches(report: &mut Map<String, Value>) {
    let Some(root) = report.get("root").and_then(Value::as_str) else { return };
    let Ok(git) = git() else { return };
    let git = git.with_limits(Limits { time: BRANCHES_TIME_LIMIT, ..Limits::default() });
    if let Ok(Some(branches)) = Repository::unmerged_branches(&git, Path::new(root)) {
        let branches: Vec<Value> = branches.into_iter().take(MAX_BRANCHES).map(Value::from).collect();
        report.insert("unmerged_branches".into(), branches.into());
    }
}

/// Maximum number of files of a tool use that are hashed.
const MAX_HASHED_FILES: usize = 10;
/// Maximum size of a file that is hashed, in bytes.
const MAX_HASHED_BYTES: u64 = 1024 * 1024;

/// Adds the hashes of the files that the input of a tool names, as far as they are in the checkout and not large.
pub(crate) fn describe_files(report: &mut Map<String, Value>) {
    let (Some(input), Some(root)) = (report.get("tool_input"), report.get("root").and_then(Value::as_str))
    else {
        return;
    };
    let files = files_of(input, Some(root)).into_iter().take(MAX_HASHED_FILES);
    let hashed = files.filter_map(|path| {
        let hash = hash_inside(Path::new(root), Path::new(&path))?;
        Some((path, Value::from(hash.to_string())))
    });
    let hashes: Map<String, Value> = hashed.collect();
    if !hashes.is_empty() {
        report.insert("file_hashes".into(), hashes.into());
    }
}

/// Returns the hash of a file below a folder; `None` if it is elsewhere, large or not readable.
pub(crate) fn hash_inside(folder: &Path, path: &Path) -> Option<Sha256Hash> {
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let path = folder.join(path);
    let facts = path.symlink_metadata().ok()?;
    if !facts.is_file() || facts.len() > MAX_HASHED_BYTES {
        return None;
    }
    Sha256Hash::of_all(File::open(path).ok()?).ok()
}

/// Runs git to get the name of the repository, for configurations that `Repository::read_head_info` cannot read.
fn name_from_git(root: &Path) -> Option<baton_core::Repo> {
    Repository::name_at(&git().ok()?, root).ok().flatten()
}

fn host() -> Option<String> {
    Some(crate::host::host()).filter(|name| !name.is_empty())
}

fn add(report: &mut Map<String, Value>, field: &str, value: Option<String>) {
    if let Some(value) = value {
        report.entry(field).or_insert(Value::String(value));
    }
}
