//! Vectors: which documents need one, which are nearest, and when they are deleted.

use baton_core::recall::{Candidate, Document, DocumentText, Embedding, ItemKind, Vector};
use baton_store::RecallFilter;

use super::fixture::{self, later};
use super::store::{TestStore, read, write};

const MODEL: &str = "small";

fn document(item: &str, venture: &str, text: &str) -> Document {
    let files = vec![format!("src/{item}.rs")];
    Document {
        venture: venture.parse().unwrap(),
        text: DocumentText::of("", &[text], &files),
        files,
        ..fixture::document(item, text)
    }
}

fn put(store: &TestStore, documents: &[Document]) {
    let documents = documents.to_vec();
    write(store, move |tx| tx.put_documents(&documents));
}

/// Returns the documents without a vector of a model, newest first.
fn missing(store: &TestStore, model: &'static str) -> Vec<Candidate> {
    read(store, move |tx| tx.documents_without_vector(model, i64::MAX, 100))
}

fn items(candidates: &[Candidate]) -> Vec<&str> {
    candidates.iter().map(|candidate| candidate.document.item.as_str()).collect()
}

fn embed(store: &TestStore, model: &'static str, made: &[(Candidate, &[f32])]) {
    let vector = |numbers: &[f32]| Vector::from_numbers(numbers).unwrap_or_default();
    let made: Vec<(Candidate, Vector)> =
        made.iter().map(|(candidate, numbers)| (candidate.clone(), vector(numbers))).collect();
    write(store, move |tx| tx.put_vectors(model, &made));
}

/// Stores the same vector for all documents that need one.
fn embed_all(store: &TestStore, numbers: &[f32]) {
    let made: Vec<(Candidate, &[f32])> =
        missing(store, MODEL).into_iter().map(|candidate| (candidate, numbers)).collect();
    embed(store, MODEL, &made);
}

/// Returns the items nearest to a vector.
fn nearest(store: &TestStore, filter: RecallFilter, numbers: &[f32]) -> Vec<String> {
    let to = Embedding { model: MODEL.to_owned(), vector: Vector::from_numbers(numbers).unwrap() };
    read(store, move |tx| {
        let found = tx.nearest(&filter, &to, 2)?;
        let numbers: Vec<i64> = found.iter().map(|(number, _)| *number).collect();
        let candidates = tx.documents_numbered(&numbers)?;
        let item = |number: &i64| candidates.iter().find(|candidate| candidate.number == *number).unwrap();
        Ok(numbers.iter().map(|number| item(number).document.item.clone()).collect())
    })
}

fn of_ventures(ventures: &[&str]) -> RecallFilter {
    let ventures = ventures.iter().map(|venture| venture.parse().unwrap()).collect();
    RecallFilter { ventures, ..RecallFilter::default() }
}

/// The nearest documents are found within every filter, best first.
pub fn nearest_documents_are_filtered(store: &TestStore) {
    let documents = ["a", "b", "c", "d"].map(|item| document(item, "v", item));
    put(store, &documents);
    put(store, &[Document { created_at: later(60), ..document("e", "w", "e") }]);
    let vectors: [&[f32]; 5] = [&[1.0, 0.0], &[0.9, 0.1], &[0.5, 0.5], &[-1.0, 0.0], &[1.0, 0.01]];
    let found = missing(store, MODEL);
    assert_eq!(items(&found), ["e", "d", "c", "b", "a"]);
    let made: Vec<(Candidate, &[f32])> = found.into_iter().rev().zip(vectors).collect();
    embed(store, MODEL, &made);
    assert!(missing(store, MODEL).is_empty());
    let v = of_ventures(&["v"]);
    assert_eq!(nearest(store, v.clone(), &[2.0, 0.0]), ["a", "b"]);
    assert_eq!(nearest(store, of_ventures(&["v", "w"]), &[1.0, 0.0]), ["a", "e"]);
    assert!(nearest(store, of_ventures(&[]), &[1.0, 0.0]).is_empty());
    assert!(nearest(store, of_ventures(&["x"]), &[1.0, 0.0]).is_empty());
    assert_eq!(nearest(store, v.clone(), &[-1.0, 0.0]), ["d"], "opposite directions are not similar");
    assert!(nearest(store, v.clone(), &[1.0, 0.0, 0.0]).is_empty(), "another dimension");
    for (filter, expected) in [
        (RecallFilter { file: Some("c.rs".into()), ..v.clone() }, &["c"][..]),
        (RecallFilter { file: Some("x.rs".into()), ..v.clone() }, &[]),
        (RecallFilter { kind: Some(ItemKind::Turn), ..v.clone() }, &[]),
        (RecallFilter { repo: Some("o/other".parse().unwrap()), ..v.clone() }, &[]),
        (RecallFilter { branch: Some("b".into()), ..v.clone() }, &[]),
        (RecallFilter { agent: Some("a".into()), ..v.clone() }, &[]),
        (RecallFilter { since: Some(later(1)), ..v.clone() }, &[]),
        (RecallFilter { since: Some(later(1)), ..of_ventures(&["v", "w"]) }, &["e"]),
    ] {
        assert_eq!(nearest(store, filter.clone(), &[1.0, 0.0]), expected, "{filter:?}");
    }
}

/// More vectors than are read at a time are all compared.
pub fn all_vectors_are_compared(store: &TestStore) {
    let documents: Vec<Document> =
        (1..=4_100).map(|number| document(&number.to_string(), "v", "word")).collect();
    put(store, &documents);
    let found = read(store, |tx| tx.documents_without_vector(MODEL, i64::MAX, 5_000));
    assert_eq!(found.len(), documents.len());
    let vector = |candidate: &Candidate| match candidate.document.item.as_str() {
        "1" | "4100" => [1.0, 0.0].as_slice(),
        _ => [1.0, 1.0].as_slice(),
    };
    let made: Vec<(Candidate, &[f32])> =
        found.into_iter().map(|candidate| (candidate.clone(), vector(&candidate))).collect();
    embed(store, MODEL, &made);
    assert_eq!(nearest(store, of_ventures(&["v"]), &[1.0, 0.0]), ["4100", "1"]);
}

/// A vector is deleted with its document and when the words of the document change, and is not stored afterwards.
pub fn vectors_follow_their_documents(store: &TestStore) {
    put(store, &[document("a", "v", "one"), document("b", "v", "two"), document("c", "v", "three")]);
    let read_before = missing(store, MODEL);
    embed_all(store, &[1.0]);
    put(store, &[Document { files: vec!["src/new.rs".into()], ..document("a", "v", "one") }]);
    assert!(missing(store, MODEL).is_empty(), "the words are the same");
    put(store, &[document("a", "v", "changed")]);
    assert_eq!(items(&missing(store, MODEL)), ["a"]);
    write(store, |tx| tx.delete_documents(ItemKind::Note, &["b".to_owned()]));
    let filter = of_ventures(&["v"]);
    assert_eq!(nearest(store, filter.clone(), &[1.0]), ["c"]);
    // Vectors that were requested before the changes.
    let late: Vec<(Candidate, &[f32])> =
        read_before.into_iter().map(|candidate| (candidate, [1.0].as_slice())).collect();
    embed(store, MODEL, &late);
    assert_eq!(nearest(store, filter.clone(), &[1.0]), ["c"]);
    assert_eq!(items(&missing(store, MODEL)), ["a"]);
    write(store, |tx| tx.clear_index());
    assert!(nearest(store, filter, &[1.0]).is_empty());
}

/// Vectors of another model, or of the same model with another dimension, are ignored and replaced.
pub fn vectors_of_another_model_are_replaced(store: &TestStore) {
    put(store, &["a", "b", "c"].map(|item| document(item, "v", item)));
    embed_all(store, &[1.0, 0.0]);
    assert_eq!(missing(store, "large").len(), 3);
    let mut found = missing(store, "large");
    embed(store, "large", &[(found.remove(0), &[1.0, 0.0])]);
    assert_eq!(items(&missing(store, MODEL)), ["c"], "a document has one vector");
    assert_eq!(nearest(store, of_ventures(&["v"]), &[1.0, 0.0]), ["b", "a"]);
    let found = read(store, |tx| tx.documents_without_vector("large", 2, 1));
    assert_eq!(items(&found), ["a"], "below a number");
    let rejected = missing(store, MODEL).remove(0);
    embed(store, MODEL, &[(rejected, &[])]);
    assert!(missing(store, MODEL).is_empty(), "a rejected text is not tried again");
    put(store, &[document("d", "v", "d")]);
    embed_all(store, &[1.0, 0.0, 0.0]);
    assert_eq!(items(&missing(store, MODEL)), ["c", "b", "a"]);
    assert_eq!(nearest(store, of_ventures(&["v"]), &[1.0, 0.0, 0.0]), ["d"]);
}
