//! Branches that are not merged.

use super::store::{TestStore, read, write};

/// A report replaces the branches of its repository only.
pub fn reports_replace_the_branches_of_a_repository(store: &TestStore) {
    let put = |venture: &'static str, repo: &'static str, branches: &'static [&'static str]| {
        write(store, move |tx| {
            let branches: Vec<String> = branches.iter().map(ToString::to_string).collect();
            tx.put_unmerged_branches(&venture.parse().unwrap(), &repo.parse().unwrap(), &branches)
        });
    };
    let list = |ventures: &'static [&'static str]| -> Vec<String> {
        let ventures: Vec<_> = ventures.iter().map(|venture| venture.parse().unwrap()).collect();
        let found = read(store, move |tx| tx.unmerged_branches(&ventures));
        let mut found: Vec<String> = found.iter().map(|one| format!("{} {}", one.repo, one.branch)).collect();
        found.sort();
        found
    };
    put("v", "o/r", &["a", "b", "a"]);
    put("v", "o/other", &["c"]);
    put("w", "o/r", &["d"]);
    assert_eq!(list(&["v"]), ["o/other c", "o/r a", "o/r b"]);
    put("v", "o/r", &["b"]);
    put("v", "o/other", &[]);
    assert_eq!(list(&["v", "w"]), ["o/r b", "o/r d"]);
    assert!(list(&[]).is_empty());
}
