//! Scope of a task: macros, patterns and paths, and matching of files.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::{Fault, Sha256Hash, shorten};

use super::glob::Glob;

/// Macros, such as `:mobile-shared-ui`, and their patterns.
pub type ScopeMacros = BTreeMap<String, Vec<String>>;

/// Patterns and paths of the scope of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopePatterns {
    /// Patterns and plain paths, sorted and unique.
    pub patterns: Vec<String>,
    /// Warnings, for example about items without a path or patterns that match no file.
    pub warnings: Vec<String>,
}

/// Checks that a path is inside the repository, and normalizes it.
///
/// # Errors
///
/// `invalid_request` for `field` if the path is empty, absolute, outside the repository or contains control characters.
pub fn check_repo_path(field: &str, path: &str) -> Result<String, Fault> {
    let plain = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let problem = if plain.is_empty() {
        "is empty"
    } else if plain.starts_with('/') || plain.starts_with('~') || plain.as_bytes().get(1) == Some(&b':') {
        "must be relative to the repository"
    } else if plain.split('/').any(|name| name == "..") {
        "must not leave the repository with `..`"
    } else if plain.split('/').any(|name| name.is_empty() || name == ".") {
        "has an empty or `.` part"
    } else if plain.chars().any(char::is_control) {
        "contains a control character"
    } else if plain.len() > 4096 {
        "is longer than 4096 bytes"
    } else {
        return Ok(plain.to_owned());
    };
    Err(Fault::invalid(field, format!("the path {path:?} {problem}")))
}

/// Finds the patterns and paths in the items of a scope. An item is a macro (`:name`), a path, a pattern, or prose with
/// paths in backquotes or before a dash, colon or bracket.
///
/// # Errors
///
/// `invalid_request` for an invalid path or pattern in a macro of the configuration. Invalid items of the task file are
/// warnings.
pub fn scope_patterns(items: &[String], macros: &ScopeMacros) -> Result<ScopePatterns, Fault> {
    let mut found = BTreeSet::new();
    let mut warnings = Vec::new();
    for item in items {
        let paths = paths_in(item.trim());
        if paths.is_empty() {
            warnings.push(format!("scope item {:?} contains no path", shorten(item.trim(), 80)));
        }
        for path in paths {
            if let Some(name) = path.strip_prefix(':') {
                let Some(patterns) = macros.get(name) else {
                    warnings.push(unknown_macro(name, macros));
                    continue;
                };
                for pattern in patterns {
                    let checked = check_pattern("task.scope_globs", pattern);
                    let defined =
                        "the file that defines macros, .baton.toml or docs/templates/scope-globs.json";
                    found.insert(
                        checked.map_err(|fault| fault.hint(format!("correct :{name} in {defined}")))?,
                    );
                }
            } else {
                match check_pattern("scope.in", path) {
                    Ok(pattern) => {
                        found.insert(pattern);
                    }
                    Err(fault) => warnings.push(fault.message),
                }
            }
        }
    }
    Ok(ScopePatterns { patterns: found.into_iter().collect(), warnings })
}

fn check_pattern(field: &str, pattern: &str) -> Result<String, Fault> {
    let path = check_repo_path(field, pattern)?;
    Glob::new(&path).map_err(|error| Fault::invalid(field, format!("the pattern {pattern:?}: {error}")))?;
    Ok(path)
}

fn unknown_macro(name: &str, macros: &ScopeMacros) -> String {
    let known: Vec<String> = macros.keys().map(|name| format!(":{name}")).collect();
    let known =
        if known.is_empty() { "there are none".into() } else { format!("there are {}", known.join(", ")) };
    format!(
        "scope.in: the macro :{name} is not known; {known}; define it under [task.scope_globs] in .baton.toml or in \
         docs/templates/scope-globs.json"
    )
}

fn paths_in(item: &str) -> Vec<&str> {
    if !item.is_empty() && !item.contains(char::is_whitespace) {
        let bare = item.trim_matches('`');
        return if bare.starts_with(':') || looks_like_path(bare) || !bare.contains('`') {
            vec![bare]
        } else {
            vec![]
        };
    }
    let quoted: Vec<&str> = item.split('`').skip(1).step_by(2).filter(|text| is_named(text)).collect();
    if !quoted.is_empty() {
        return quoted;
    }
    let first = item.split_whitespace().next().unwrap_or_default();
    let rest = item.get(first.len()..).unwrap_or_default().trim_start();
    let introduces = first.ends_with(':') || rest.starts_with(['-', '–', '—', '(', ':']);
    let bare = first.trim_end_matches(':');
    if introduces && is_named(bare) { vec![bare] } else { Vec::new() }
}

fn is_named(text: &str) -> bool {
    !text.contains(char::is_whitespace) && (looks_like_path(text) || text.len() > 1 && text.starts_with(':'))
}

/// Returns true for text with a folder, a pattern or an extension. A single word is not assumed to be a path.
fn looks_like_path(text: &str) -> bool {
    let has_extension = text.rsplit_once('.').is_some_and(|(stem, extension)| {
        !extension.is_empty()
            && extension.len() <= 12
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
            && !stem.is_empty()
    });
    text.contains('/') || Glob::is_pattern(text) || has_extension
}

/// Expands patterns to the matching paths in `files`. Plain paths are kept even if they do not exist yet. Sorted and
/// unique.
pub fn expand(scope: &mut ScopePatterns, files: &[String]) -> Vec<String> {
    let mut paths = BTreeSet::new();
    for pattern in &scope.patterns {
        let Some(glob) = Glob::new(pattern).ok().filter(|_| Glob::is_pattern(pattern)) else {
            paths.insert(pattern.clone());
            continue;
        };
        let mut any = false;
        for file in files.iter().filter(|file| glob.matches(file)) {
            any = true;
            paths.insert(file.clone());
        }
        if !any {
            scope.warnings.push(format!("scope pattern {pattern:?} matches no file yet"));
        }
    }
    paths.into_iter().collect()
}

/// Matches files against a scope. It uses the patterns, so files created later match too.
#[derive(Debug, Clone)]
pub struct ScopeMatcher {
    globs: Vec<(String, Option<Glob>)>,
}

impl ScopeMatcher {
    /// Creates a matcher from patterns and paths. An empty scope contains all files.
    pub fn new(patterns: &[String]) -> Self {
        let glob = |pattern: &String| Glob::is_pattern(pattern).then(|| Glob::new(pattern).ok()).flatten();
        Self { globs: patterns.iter().map(|pattern| (pattern.clone(), glob(pattern))).collect() }
    }

    /// Returns true if a file is in scope.
    pub fn contains(&self, path: &str) -> bool {
        self.globs.is_empty()
            || self.globs.iter().any(|(pattern, glob)| match glob {
                Some(glob) => glob.matches(path),
                None => {
                    path == pattern || path.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('/'))
                }
            })
    }
}

/// Hashes the existing paths of a scope. The 16 digits change when a file is added, renamed or removed.
pub fn scope_hash<'a>(present: impl IntoIterator<Item = &'a str>) -> String {
    let mut paths: Vec<&str> = present.into_iter().collect();
    paths.sort_unstable();
    paths.dedup();
    let mut text = paths.join("\n");
    text.push('\n');
    short_sha(text.as_bytes())
}

/// Returns the first 16 hex digits of the SHA-256 hash.
pub(super) fn short_sha(bytes: &[u8]) -> String {
    let mut digits = Sha256Hash::of(bytes).to_string();
    digits.truncate(16);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(items: &[&str]) -> Result<ScopePatterns, Fault> {
        let macros =
            ScopeMacros::from([("ui".to_owned(), vec!["mobile/ui/**".into(), "shared/*.ts".into()])]);
        let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
        scope_patterns(&items, &macros)
    }

    #[test]
    fn paths_are_found_in_prose() {
        let found = patterns(&[
            ":ui",
            "src/store/settings.ts",
            "Update `src/a.rs` and `src/b/`, not `this`",
            "docs/x.md - explain it",
            "lib/y.rs: the parser",
            "make it faster",
            "`Makefile`",
        ])
        .unwrap();
        assert_eq!(
            found.patterns,
            [
                "Makefile",
                "docs/x.md",
                "lib/y.rs",
                "mobile/ui/**",
                "shared/*.ts",
                "src/a.rs",
                "src/b",
                "src/store/settings.ts"
            ]
        );
        assert_eq!(found.warnings, ["scope item \"make it faster\" contains no path"]);
    }

    #[test]
    fn paths_outside_the_repository_and_unknown_macros_are_warnings() {
        for bad in ["../x", "/etc/passwd", "a/../../b", "~/x", "a//b", "c:/x", "./../x", "a/./b"] {
            let found = patterns(&[bad]).unwrap();
            assert!(found.patterns.is_empty() && found.warnings.len() == 1, "{bad}: {found:?}");
            assert!(check_repo_path("path", bad).is_err(), "{bad}");
        }
        assert!(check_repo_path("path", "a\nb").is_err() && check_repo_path("path", "").is_err());
        assert_eq!(check_repo_path("path", "./a/b/").unwrap(), "a/b");
        let found = patterns(&[":nope"]).unwrap();
        assert!(found.warnings[0].contains("there are :ui"), "{found:?}");
    }

    #[test]
    fn patterns_are_expanded_and_plain_paths_kept() {
        let mut scope = patterns(&[":ui", "new/file.rs"]).unwrap();
        let files = ["mobile/ui/a.ts", "mobile/ui/x/b.ts", "other.ts"].map(str::to_owned);
        assert_eq!(expand(&mut scope, &files), ["mobile/ui/a.ts", "mobile/ui/x/b.ts", "new/file.rs"]);
        assert_eq!(scope.warnings, ["scope pattern \"shared/*.ts\" matches no file yet"]);
    }

    #[test]
    fn a_path_with_brackets_is_in_its_own_scope() {
        let mut scope = patterns(&["app/[id]/page.tsx"]).unwrap();
        assert!(ScopeMatcher::new(&scope.patterns).contains("app/[id]/page.tsx"));
        let path = "app/[id]/page.tsx".to_owned();
        assert_eq!(expand(&mut scope, std::slice::from_ref(&path)), [path]);
        assert_eq!(scope.warnings, Vec::<String>::new());
    }

    #[test]
    fn files_created_later_are_in_scope() {
        let scope = ScopeMatcher::new(&["src/**/*.rs".into(), "docs".into()]);
        assert!(scope.contains("src/new.rs") && scope.contains("docs/a/b.md") && scope.contains("docs"));
        assert!(!scope.contains("docsx") && !scope.contains("Cargo.lock"));
        assert!(ScopeMatcher::new(&[]).contains("anything"));
    }

    #[test]
    fn scope_hash_follows_the_documented_algorithm() {
        let expected = &Sha256Hash::of(b"a\nb\n").to_string()[..16];
        assert_eq!(scope_hash(["b", "a", "b"]), expected);
    }
}
