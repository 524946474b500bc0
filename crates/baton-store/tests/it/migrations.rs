//! The migration folders: the same files for both databases.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use baton_store::LATEST_VERSION;

fn names(engine: &str) -> BTreeSet<String> {
    let folder = Path::new("migrations").join(engine);
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn both_databases_have_the_same_migrations_and_all_are_used() {
    assert_eq!(names("sqlite"), names("postgres"));
    assert_eq!(names("sqlite").len() as i64, LATEST_VERSION);
}
