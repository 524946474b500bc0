//! Checks the dependencies of `ARCHITECTURE.md`: between our crates, and on libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crates of ours that a crate may use. A new edge must be added to `ARCHITECTURE.md` too.
const EDGES: &[(&str, &[&str])] = &[
    ("baton-core", &[]),
    ("baton-files", &[]),
    ("baton-store", &["baton-core", "baton-files"]),
    ("baton-git", &["baton-core", "baton-files"]),
    ("baton-secrets", &[]),
    ("baton-qa", &["baton-core"]),
    ("baton-checkpoint", &["baton-core", "baton-secrets"]),
    ("baton-observation", &["baton-core", "baton-secrets"]),
    ("baton-llm", &["baton-core", "baton-observation", "baton-qa", "baton-secrets"]),
    (
        "baton-app",
        &["baton-checkpoint", "baton-core", "baton-llm", "baton-observation", "baton-secrets", "baton-store"],
    ),
    (
        "baton-web",
        &["baton-app", "baton-checkpoint", "baton-core", "baton-observation", "baton-qa", "baton-task"],
    ),
    ("baton-mcp", &["baton-app", "baton-core", "baton-observation"]),
    ("baton-server", &["baton-app", "baton-checkpoint", "baton-core", "baton-mcp", "baton-web"]),
    ("baton-worker", &["baton-app", "baton-core", "baton-llm", "baton-secrets", "baton-store"]),
    ("baton-task", &["baton-core", "baton-files", "baton-qa", "baton-secrets"]),
    (
        "baton",
        &[
            "baton-app",
            "baton-checkpoint",
            "baton-core",
            "baton-files",
            "baton-git",
            "baton-llm",
            "baton-mcp",
            "baton-observation",
            "baton-qa",
            "baton-secrets",
            "baton-server",
            "baton-store",
            "baton-task",
            "baton-worker",
        ],
    ),
    ("baton-testkit", &["baton-core", "baton-store"]),
    (
        "baton-benches",
        &[
            "baton-checkpoint",
            "baton-core",
            "baton-git",
            "baton-llm",
            "baton-observation",
            "baton-qa",
            "baton-secrets",
            "baton-store",
            "baton-testkit",
        ],
    ),
];

/// Libraries that only these crates may use.
const LIBRARY_USERS: &[(&str, &[&str])] = &[
    ("rusqlite", &["baton-store", "baton-testkit", "baton-benches"]),
    ("postgres", &["baton-testkit"]),
    ("tokio-postgres", &["baton-store"]),
    ("axum", &["baton-server"]),
    ("hyper", &["baton-server"]),
    ("rmcp", &["baton-mcp"]),
    ("maud", &["baton-server", "baton-web"]),
    ("clap", &["baton"]),
    ("tokio", &["baton-store", "baton-app", "baton-mcp", "baton-server", "baton"]),
    ("getrandom", &["baton-store", "baton-app", "baton-llm", "baton", "baton-testkit"]),
    ("chacha20poly1305", &["baton-store"]),
    ("keyring-core", &["baton"]),
    ("tempfile", &["baton-files", "baton-git", "baton-task", "baton", "baton-testkit", "baton-benches"]),
    ("zstd", &["baton-store"]),
    ("ureq", &["baton", "baton-llm", "baton-testkit"]),
    ("tree-sitter", &["baton-llm"]),
    ("granit-parser", &["baton-task"]),
    ("percent-encoding", &["baton-app", "baton-observation", "baton-store"]),
    ("flate2", &["baton-git", "baton-task"]),
    ("sha1", &["baton-git"]),
    ("fuser", &["baton-testkit"]),
];

/// The only crate that may start git, apart from tests and benches.
const GIT_STARTS_IN: &str = "baton-git";

/// Returns the direct, non-development dependencies of our crates.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = |package: &Value| {
        let used = package["dependencies"].as_array().unwrap().iter().filter(|used| used["kind"] != "dev");
        used.map(|used| used["name"].as_str().unwrap().to_owned()).collect()
    };
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (package["name"].as_str().unwrap().to_owned(), names(package))).collect()
}

#[test]
fn crates_depend_only_on_those_below_them() {
    let dependencies = dependencies();
    let known: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(found, known, "a crate was added or removed");
    for (name, allowed) in EDGES {
        let ours = dependencies[*name].iter().map(String::as_str).filter(|used| known.contains(used));
        let extra: Vec<&str> = ours.filter(|used| !allowed.contains(used)).collect();
        assert!(extra.is_empty(), "{name} must not depend on {extra:?}");
    }
}

#[test]
fn libraries_are_used_only_by_allowed_crates() {
    let dependencies = dependencies();
    for (library, allowed) in LIBRARY_USERS {
        let users =
            dependencies.iter().filter(|(_, used)| used.contains(*library)).map(|(name, _)| name.as_str());
        let extra: Vec<&str> = users.filter(|user| !allowed.contains(user)).collect();
        assert!(extra.is_empty(), "{library} must not be used by {extra:?}");
    }
}

#[test]
fn only_one_crate_starts_git() {
    let crates = std::path::Path::new("..");
    let mut folders: Vec<_> = EDGES
        .iter()
        .filter(|(name, _)| *name != GIT_STARTS_IN)
        .map(|(name, _)| crates.join(name).join("src"))
        .collect();
    let mut offenders = Vec::new();
    while let Some(folder) = folders.pop() {
        // The benches have no such folder and may start what they measure against.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs")
                && std::fs::read_to_string(&path).unwrap().contains("Command::new(\"git\")")
            {
                offenders.push(path);
            }
        }
    }
    assert!(offenders.is_empty(), "git is started in {offenders:?}");
}
