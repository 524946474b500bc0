//! File names and paths in a query.

use std::sync::LazyLock;

use regex::Regex;

/// A name with an extension, with or without folders: `common.go`, `src/store/rows.rs`.
static FILE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:[\w@.-]+/)*[\w@-][\w@.-]*\.[A-Za-z][A-Za-z0-9]{0,7}\b").ok());
/// Two folders or more: `crates/store`.
static FOLDER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?:[\w@.-]+/)+[\w@.-]+").ok());
/// Maximum number of files that are looked for.
const MAX_MENTIONS: usize = 16;

/// Returns the file names and paths that a text mentions, without repetitions.
pub(super) fn find_files(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for pattern in [&FILE, &FOLDER] {
        let Some(pattern) = pattern.as_ref() else { continue };
        for one in pattern.find_iter(text) {
            let path = one.as_str().trim_start_matches("./").trim_matches('.').to_owned();
            let is_known = found.iter().any(|known| ends_with_path(known, &path));
            if path.len() > 2 && !is_known && found.len() < MAX_MENTIONS {
                found.push(path);
            }
        }
    }
    found
}

/// Returns true if a file is the mentioned one (the same path, or one ends with the other at a folder boundary), or is in
/// the mentioned folder.
pub(super) fn is_mentioned(file: &str, mention: &str) -> bool {
    let is_in_folder = || format!("/{file}").contains(&format!("/{mention}/"));
    ends_with_path(file, mention) || ends_with_path(mention, file) || is_in_folder()
}

/// Returns true if a path is `end`, or ends with it at a folder boundary.
pub fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_and_paths_are_found() {
        assert_eq!(
            find_files("in common.go:296 we call ./src/store/rows.rs."),
            ["common.go", "src/store/rows.rs"]
        );
        assert_eq!(find_files("look at cmd/entire/cli and README.md"), ["README.md", "cmd/entire/cli"]);
        assert_eq!(
            find_files("domain.rs and main.rs, then src/main.rs"),
            ["domain.rs", "main.rs", "src/main.rs"]
        );
        assert_eq!(find_files("src/main.rs, that is main.rs"), ["src/main.rs"]);
        assert!(find_files("version 1.2.3 of the tests").is_empty());
    }

    #[test]
    fn mentions_match_at_folder_boundaries() {
        assert!(is_mentioned("src/store/rows.rs", "rows.rs"));
        assert!(is_mentioned("rows.rs", "src/rows.rs"));
        assert!(is_mentioned("cmd/cli/main.go", "cmd/cli"));
        assert!(!is_mentioned("src/arrows.rs", "rows.rs"));
        assert!(is_mentioned("/home/me/app/src/x.rs", "app/src"));
        assert!(!is_mentioned("schema/src/x.rs", "a/src"));
    }
}
