//! File versions: which content was seen when.

use baton_core::{Repo, Sha256Hash, Timestamp, Venture};
use baton_store::{FileOf, ForgetFilter};

use super::fixture::{AWKWARD, NOW, earlier, later};
use super::store::{TestStore, read, write};

fn place() -> (Venture, Repo) {
    ("v".parse().unwrap(), "o/r".parse().unwrap())
}

fn see(store: &TestStore, path: &'static str, content: &'static str, at: Timestamp) {
    let (venture, repo) = place();
    write(store, move |tx| {
        let file = FileOf { venture: &venture, repo: &repo, path };
        tx.record_file_version(file, Sha256Hash::of(content.as_bytes()), at)
    });
}

fn version(store: &TestStore, path: &'static str, at: Timestamp) -> Option<Sha256Hash> {
    let (venture, repo) = place();
    read(store, move |tx| tx.file_version(FileOf { venture: &venture, repo: &repo, path }, at))
}

/// The last version at or before a time is found, for each path on its own.
pub fn versions_are_found_by_time(store: &TestStore) {
    see(store, AWKWARD, "one", NOW);
    see(store, AWKWARD, "one", later(1));
    see(store, AWKWARD, "two", later(2));
    see(store, "other", "three", later(1));
    let hash = |content: &str| Some(Sha256Hash::of(content.as_bytes()));
    assert_eq!(version(store, AWKWARD, earlier(1)), None);
    assert_eq!(version(store, AWKWARD, NOW), hash("one"));
    assert_eq!(version(store, AWKWARD, later(1)), hash("one"));
    assert_eq!(version(store, AWKWARD, later(9)), hash("two"));
    assert_eq!(version(store, "other", later(9)), hash("three"));
    assert_eq!(version(store, "unknown", later(9)), None);
}

/// Versions of a repository or a period can be deleted.
pub fn versions_are_forgotten(store: &TestStore) {
    see(store, "a", "one", NOW);
    see(store, "a", "two", later(5));
    let forget = |filter: ForgetFilter| write(store, move |tx| tx.forget_file_versions(&filter));
    forget(ForgetFilter { repo: Some("o/other".parse().unwrap()), ..ForgetFilter::default() });
    forget(ForgetFilter { ventures: Some(Vec::new()), ..ForgetFilter::default() });
    forget(ForgetFilter { before: Some(later(1)), ..ForgetFilter::default() });
    assert_eq!((version(store, "a", NOW).is_some(), version(store, "a", later(5)).is_some()), (false, true));
    forget(ForgetFilter { repo: Some("o/r".parse().unwrap()), ..ForgetFilter::default() });
    assert_eq!(version(store, "a", later(5)), None);
}
