use baton_core::canonicalize;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn condensed(value: &Value, target: usize) -> Value {
    let text = canonicalize(value).unwrap();
    serde_json::from_str(&condense(JsonText::new(&text), target, || Emphasis::Start)).unwrap()
}

#[test]
fn text_is_cut_at_lines_and_counts_the_omitted_bytes() {
    let lines: String = (1..=40).map(|number| format!("line number {number}\n")).collect();
    let short = condensed(&json!(lines), 200);
    let short = short.as_str().unwrap();
    assert!(short.starts_with("line number 1\nline number 2\n"), "{short}");
    assert!(short.ends_with("line number 40\n"), "{short}");
    let (head, rest) = short.split_once("\n[… ").unwrap();
    let (count, tail) = rest.split_once(" bytes left out …]\n").unwrap();
    assert_eq!(count.parse::<usize>().unwrap(), lines.len() - head.len() - tail.len());
    assert!(lines.starts_with(&format!("{head}\n")) && lines.ends_with(tail));
}

#[test]
fn single_line_text_is_cut_at_sentences() {
    let text = "The first sentence is here. The second one follows it. ".repeat(20);
    let short = condensed(&json!(text), 240);
    let short = short.as_str().unwrap();
    assert!(short.contains(". [… ") && short.contains(" …] The "), "{short}");
}

#[test]
fn array_keeps_its_ends_and_counts_the_omitted_items() {
    let items: Vec<String> = (0..100).map(|number| format!("item {number}")).collect();
    let short = condensed(&json!(items), 200);
    let short = short.as_array().unwrap();
    assert_eq!(short[0], "item 0");
    assert_eq!(short[short.len() - 1], "item 99");
    let marker = format!("[… {} of 100 items left out …]", 100 - (short.len() - 1));
    assert!(short.contains(&json!(marker)), "{short:?}");
}

#[test]
fn single_long_item_is_cut_instead_of_omitted() {
    let short = condensed(&json!(["word ".repeat(400)]), 200);
    let item = short[0].as_str().unwrap();
    assert_eq!(short.as_array().unwrap().len(), 1);
    assert!(item.starts_with("word word") && item.contains("bytes left out"), "{item}");
}

#[test]
fn object_keeps_as_many_keys_as_possible() {
    let value = json!({ "long": "word ".repeat(100), "longer": "word ".repeat(200), "n": 1 });
    let short = condensed(&value, 300);
    assert_eq!(short["n"], 1);
    assert!(short["long"].as_str().unwrap().contains("left out"));
    assert!(short["longer"].as_str().unwrap().contains("left out"));
    let tiny = condensed(&value, 40);
    assert_eq!(tiny, json!({ "n": 1, "…": "2 more left out" }));
}

#[test]
fn key_equal_to_the_marker_is_not_overwritten() {
    let value = json!({ "…": 1, "a": "x".repeat(100) });
    assert_eq!(condensed(&value, 40)["…"], 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn shortened_value_fits_and_keeps_its_type(
        context in crate::classify::any_context(),
        target in 0..900_usize,
    ) {
        let value = Value::Object(context);
        let text = canonicalize(&value).unwrap();
        let json = JsonText::new(&text);
        let short = condense(json, target, || Emphasis::Start);
        prop_assert!(short.len() <= target.max(min_size(json)), "{} {target}", short);
        if text.len() <= target {
            prop_assert_eq!(short.as_ref(), &text);
        }
        let short: Value = serde_json::from_str(&short).unwrap();
        prop_assert_eq!(&condensed(&value, target), &short);
        for (key, member) in short.as_object().unwrap() {
            if let Some(original) = value.get(key) {
                prop_assert_eq!(std::mem::discriminant(member), std::mem::discriminant(original));
            }
        }
    }

    #[test]
    fn any_text_fits_the_target(text in "(\\PC|\n|\"|\\x01){0,300}", target in 30..400_usize) {
        let text = canonicalize(&Value::from(text)).unwrap();
        let json = JsonText::new(&text);
        prop_assert!(condense(json, target, || Emphasis::Start).len() <= target.max(min_size(json)));
    }
}
