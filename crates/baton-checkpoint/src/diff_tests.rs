use baton_core::canonicalize;
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn diff(old: &Value, new: &Value) -> Diff {
    diff_within(old, new, DiffLimits::default())
}

fn diff_within(old: &Value, new: &Value, limits: DiffLimits) -> Diff {
    let (old, new) = (canonicalize(old).unwrap(), canonicalize(new).unwrap());
    Diff::between(JsonText::new(&old), JsonText::new(&new), limits)
}

fn listed(diff: &Diff) -> Vec<(&str, ChangeKind)> {
    diff.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect()
}

#[test]
fn members_are_added_removed_and_changed() {
    let old = json!({ "a": 1, "b": { "c": "x", "d e": null }, "gone": [1] });
    let new = json!({ "a": 1, "b": { "c": "y", "d e": null, "f": 2 }, "z": {} });
    let found = diff(&old, &new);
    assert_eq!(
        listed(&found),
        [
            ("b.c", ChangeKind::Changed),
            ("b.f", ChangeKind::Added),
            ("gone", ChangeKind::Removed),
            ("z", ChangeKind::Added)
        ]
    );
    assert_eq!((found.added, found.removed, found.changed, found.unlisted), (2, 1, 1, 0));
    assert_eq!(
        (found.changes[0].old.clone(), found.changes[0].new.clone()),
        (Some(json!("x")), Some(json!("y")))
    );
}

#[test]
fn item_inserted_in_the_middle_is_one_change() {
    let old = json!({ "steps": ["a", "b", "c", "d"] });
    let new = json!({ "steps": ["a", "x", "b", "c"] });
    assert_eq!(
        listed(&diff(&old, &new)),
        [("steps[1]", ChangeKind::Added), ("steps[3]", ChangeKind::Removed)]
    );
}

#[test]
fn changed_item_is_compared_member_by_member() {
    let old = json!({ "steps": [{ "title": "a", "done": false }, { "title": "b", "done": false }] });
    let new = json!({ "steps": [{ "title": "a", "done": true }, { "title": "b", "done": false }] });
    assert_eq!(listed(&diff(&old, &new)), [("steps[0].done", ChangeKind::Changed)]);
}

#[test]
fn long_arrays_are_compared_item_by_item() {
    let old: Vec<u32> = (0..1500).collect();
    let mut new = old.clone();
    new[3] = 99_999;
    new[1200] = 99_998;
    let found = diff(&json!({ "a": old }), &json!({ "a": new }));
    assert_eq!(listed(&found), [("a[3]", ChangeKind::Changed), ("a[1200]", ChangeKind::Changed)]);
}

#[test]
fn type_change_is_one_change() {
    let found = diff(&json!({ "a": [1] }), &json!({ "a": { "b": 1 } }));
    assert_eq!(listed(&found), [("a", ChangeKind::Changed)]);
}

#[test]
fn long_values_and_long_lists_are_clipped() {
    let old = json!({ "text": "word ".repeat(1000) });
    let found = diff(&old, &json!({}));
    assert!(found.changes[0].old.as_ref().unwrap().to_string().len() <= 512);
    let many: Map<String, Value> = (0..30).map(|number| (format!("k{number}"), json!(number))).collect();
    let limits = DiffLimits { max_value_bytes: 10, max_changes: 20 };
    let found = diff_within(&json!({}), &many.into(), limits);
    assert_eq!((found.changes.len(), found.added, found.unlisted), (20, 30, 10));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn only_equal_contexts_have_no_differences(
        old in crate::classify::any_context(),
        new in crate::classify::any_context(),
    ) {
        let (old, new) = (Value::Object(old), Value::Object(new));
        prop_assert!(diff(&old, &old).is_empty());
        let forth = diff(&old, &new);
        prop_assert_eq!(forth.is_empty(), old == new);
        prop_assert_eq!(forth.changes.len() + forth.unlisted, forth.added + forth.removed + forth.changed);
    }

    #[test]
    fn alignment_pairs_equal_items_in_order(
        old in prop::collection::vec(0..5_u8, 0..30),
        new in prop::collection::vec(0..5_u8, 0..30),
    ) {
        let texts = ["0", "1", "2", "3", "4"];
        let values =
            |items: &[u8]| items.iter().map(|item| JsonText::new(texts[usize::from(*item)])).collect::<Vec<_>>();
        let pairs = alignment(&values(&old), &values(&new));
        for (i, j) in &pairs {
            prop_assert_eq!(old[*i], new[*j]);
        }
        prop_assert!(pairs.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
    }
}
