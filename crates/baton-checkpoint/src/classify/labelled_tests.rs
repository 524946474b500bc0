//! Accuracy of the built-in rules on labelled contexts: those used for tuning and held-out ones.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use baton_core::JsonText;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Classifier, Layer};

#[derive(Deserialize)]
struct Labelled {
    context: Map<String, Value>,
    labels: BTreeMap<String, Layer>,
}

struct Score {
    labels: usize,
    right: usize,
    wrong: String,
}

fn score(part: &str) -> Score {
    let folder = Path::new("tests/data/contexts").join(part);
    let mut score = Score { labels: 0, right: 0, wrong: String::new() };
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let labelled: Labelled = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let (classifier, text) = (Classifier::builtin(), Value::Object(labelled.context).to_string());
        let classification = classifier.classify(JsonText::new(&text), &[]);
        for (path, layer) in labelled.labels {
            let found =
                classification.explain(&path).unwrap_or_else(|| panic!("{}: no {path}", file.display()));
            score.labels += 1;
            if found.layer == layer {
                score.right += 1;
            } else {
                let name = file.file_stem().unwrap().to_string_lossy();
                writeln!(score.wrong, "{name} {path}: {layer:?} expected, {found:?}").unwrap();
            }
        }
    }
    score
}

fn assert_accuracy(part: &str, labels_at_least: usize, percent: usize) {
    let Score { labels, right, wrong } = score(part);
    assert!(labels >= labels_at_least, "{part}: only {labels} labels");
    assert!(right * 100 >= labels * percent, "{part}: {right} of {labels} right\n{wrong}");
}

#[test]
fn classifies_tuning_contexts_accurately() {
    assert_accuracy("tune", 180, 95);
}

#[test]
fn classifies_held_out_contexts_accurately() {
    assert_accuracy("held-out", 120, 85);
}
