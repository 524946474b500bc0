//! Candidates of a search: which documents are selected, and how many.

use baton_core::recall::{Document, DocumentText};
use baton_store::{MatchPlan, RecallFilter};

use super::fixture::{self, NOW, later};
use super::store::{TestStore, read, write};

fn document(number: u64, repo: &str, text: &str) -> Document {
    Document {
        repo: Some(repo.parse().unwrap()),
        created_at: later(number),
        ..fixture::document(&format!("note_{number:02}"), text)
    }
}

/// The newest matches are selected whether or not the newest documents are read first, and however few of those match.
pub fn newest_matches_are_selected(store: &TestStore) {
    let mut documents = Vec::new();
    for number in 0..40 {
        let text = if number < 30 && number % 2 == 0 { "apple" } else { "melon" };
        documents.push(document(number, if number < 20 { "o/old" } else { "o/new" }, text));
    }
    write(store, move |tx| tx.put_documents(&documents));
    let any = RecallFilter { ventures: vec!["v".parse().unwrap()], ..RecallFilter::default() };
    let old = RecallFilter { repo: Some("o/old".parse().unwrap()), ..any.clone() };
    let since = RecallFilter { since: Some(later(26)), ..any.clone() };
    let until = RecallFilter { since: Some(NOW), until: Some(later(25)), ..any.clone() };
    for newest in [None, Some(5), Some(15), Some(1_000)] {
        for (filter, expected) in [
            (&any, ["note_28", "note_26", "note_24"].as_slice()),
            (&old, &["note_18", "note_16", "note_14"]),
            (&since, &["note_28", "note_26"]),
            (&until, &["note_24", "note_22", "note_20"]),
        ] {
            let single = DocumentText::of("", &["apple"], &[]).terms().map(str::to_owned).collect();
            let plan = MatchPlan { single, newest, ..MatchPlan::default() };
            let asked = filter.clone();
            let found = read(store, move |tx| tx.candidates(&asked, &plan, 3));
            let found: Vec<&str> = found.iter().map(|one| one.document.item.as_str()).collect();
            assert_eq!(found, expected, "newest {newest:?}, {filter:?}");
        }
    }
}
