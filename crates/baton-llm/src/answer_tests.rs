use baton_observation::{redact_observation, redact_summary};
use proptest::prelude::*;

use super::*;

const GOOD: &str = r#"{"title":"Add JWT middleware","summary":"Added it because sessions leaked.","detail":null,
  "files_touched":["src/auth.rs"],"functions_changed":[{"file":"src/auth.rs","name":"verify","action":"new"}]}"#;

fn good() -> CompressedObservation {
    CompressedObservation {
        title: "Add JWT middleware".to_owned(),
        summary: "Added it because sessions leaked.".to_owned(),
        detail: None,
        files_touched: vec!["src/auth.rs".to_owned()],
        functions_changed: vec![FunctionChange {
            file: "src/auth.rs".to_owned(),
            name: "verify".to_owned(),
            action: FunctionAction::New,
        }],
    }
}

/// Returns the good answer with one field replaced.
fn with(field: &str, value: Value) -> String {
    let mut answer: Map<String, Value> = serde_json::from_str(GOOD).unwrap();
    answer.insert(field.to_owned(), value);
    Value::Object(answer).to_string()
}

fn problem(answer: &str) -> String {
    read_observation(answer).unwrap_err().to_string()
}

#[test]
fn reads_an_object_with_text_and_fences_around_it() {
    for answer in [
        GOOD.to_owned(),
        format!("\u{feff}\n  {GOOD}\n"),
        format!("```json\n{GOOD}\n```"),
        format!("```\n{GOOD}\n```\n"),
        format!("```json\n{GOOD}"),
        format!("```{GOOD}```"),
        format!("Here is the observation:\n\n```JSON\n{GOOD}\n```\nI hope this helps."),
        format!("Here it is: {GOOD}"),
        format!("{GOOD}\n\nI hope this helps."),
        format!("<think>A {{set}} of things.</think>\n{GOOD}"),
    ] {
        assert_eq!(read_observation(&answer), Ok(good()), "{answer}");
    }
}

#[test]
fn fences_inside_the_object_are_text() {
    let answer = with("detail", json!("run ```cargo test``` and\n```\nsee\n```"));
    let expected = Some("run ```cargo test``` and\n```\nsee\n```".to_owned());
    assert_eq!(read_observation(&answer).unwrap().detail, expected);
    assert_eq!(read_observation(&format!("```json\n{answer}\n```")).unwrap().detail, expected);
}

#[test]
fn truncates_long_fields_on_character_boundaries() {
    let observation = read_observation(&with("title", json!("ä".repeat(300)))).unwrap();
    assert_eq!(observation.title, format!("{}…", "ä".repeat(MAX_TITLE_CHARS - 1)));
    let observation = read_observation(&with("summary", json!("👩‍💻".repeat(1_000)))).unwrap();
    assert_eq!(observation.summary.chars().count(), MAX_SUMMARY_CHARS);
    let observation = read_observation(&with("detail", json!("d".repeat(9_000)))).unwrap();
    assert_eq!(observation.detail.unwrap().len(), MAX_DETAIL_CHARS);
    let many: Vec<String> = (0..1_000).map(|number| format!("file-{number}")).collect();
    assert_eq!(
        read_observation(&with("files_touched", json!(many))).unwrap().files_touched.len(),
        MAX_ENTRIES
    );
}

#[test]
fn control_characters_are_removed() {
    let observation = read_observation(&with("title", json!("a\u{1b}[31m b\0\nc"))).unwrap();
    assert_eq!(observation.title, "a b c");
    let observation = read_observation(&with("summary", json!("a\u{7}\nb"))).unwrap();
    assert_eq!(observation.summary, "a\nb");
}

#[test]
fn lists_and_detail_may_be_missing() {
    let expected = CompressedObservation {
        title: "t".to_owned(),
        summary: "s".to_owned(),
        ..CompressedObservation::default()
    };
    assert_eq!(read_observation(r#"{"title":"t","summary":"s"}"#), Ok(expected.clone()));
    let nulls =
        r#"{"title":"t","summary":"s","files_touched":null,"functions_changed":null,"detail":" ","extra":1}"#;
    assert_eq!(read_observation(nulls), Ok(expected));
}

#[test]
fn errors_name_missing_fields_and_wrong_types() {
    for (answer, expected) in [
        (r#"{"summary":"s"}"#.to_owned(), "`title` is missing"),
        (r#"{"title":"t"}"#.to_owned(), "`summary` is missing"),
        (with("title", json!(null)), "`title` is missing"),
        (with("title", json!(" \u{7} ")), "`title` is empty"),
        (with("title", json!(42)), "`title` is not a string but a number"),
        (with("summary", json!(["s"])), "`summary` is not a string but a list"),
        (with("detail", json!({})), "`detail` is not a string but an object"),
        (with("files_touched", json!("a.rs")), "`files_touched` is not a list but a string"),
        (with("files_touched", json!(["a.rs", true])), "`files_touched[1]` is not a string but a boolean"),
        (with("functions_changed", json!({})), "`functions_changed` is not a list but an object"),
        (with("functions_changed", json!(["f"])), "`functions_changed[0]` is not an object but a string"),
        (
            with("functions_changed", json!([{ "file": "a", "action": "new" }])),
            "functions_changed[0]: `name` is missing",
        ),
        (
            with("functions_changed", json!([{ "file": "a", "name": "b", "action": "renamed" }])),
            "`functions_changed[0].action` is not new, modified or deleted",
        ),
        ("[1]".to_owned(), "the answer is JSON but not an object"),
        ("I cannot do that.".to_owned(), "the answer is not a JSON object: "),
        (GOOD[..100].to_owned(), "the answer is not a JSON object: "),
        (r#"{"title":"a","title":"b","summary":"s"}"#.to_owned(), "the answer is not a JSON object: "),
        (String::new(), "the answer is not a JSON object: "),
    ] {
        let problem = problem(&answer);
        assert!(problem.starts_with(expected), "{problem} for {answer}");
    }
}

#[test]
fn errors_show_the_first_200_characters_without_control_characters() {
    let error = problem(&format!("\u{1b}[2J{}SECRET", "é".repeat(198)));
    assert!(error.ends_with(&"é".repeat(190)) && !error.contains("SECRET"), "{error}");
    assert!(!error.contains('\u{1b}'));
    assert!(problem("").ends_with("begins: (nothing)"));
}

#[test]
fn reads_a_session_summary() {
    let answer = r#"```json
        {"summary":"Built it.","key_files":["a.rs","a.rs"],"key_decisions":[]}
        ```"#;
    let expected = SessionSummary {
        summary: "Built it.".to_owned(),
        key_files: vec!["a.rs".to_owned()],
        ..Default::default()
    };
    assert_eq!(read_summary(answer), Ok(expected));
    let error = read_summary(r#"{"summary":"s","key_files":"a"}"#).unwrap_err().to_string();
    assert!(error.starts_with("`key_files` is not a list but a string"), "{error}");
    assert!(read_summary(r#"{"key_files":[]}"#).unwrap_err().to_string().starts_with("`summary` is missing"));
}

#[test]
fn schemas_accept_valid_answers_only() {
    let validator = jsonschema::validator_for(&observation_schema()).unwrap();
    assert!(validator.is_valid(&serde_json::from_str(GOOD).unwrap()));
    assert!(!validator.is_valid(&json!({ "title": "t", "summary": "s" })));
    let validator = jsonschema::validator_for(&summary_schema()).unwrap();
    assert!(validator.is_valid(&json!({ "summary": "s", "key_files": [], "key_decisions": ["d"] })));
    assert_eq!(summary_schema()["additionalProperties"], false);
}

proptest! {
    #[test]
    fn any_answer_is_parsed_or_rejected(answer in "(\\PC|[`{}\":\\[\\]\n]){0,80}") {
        if let Ok(observation) = read_observation(&answer) {
            prop_assert!(!observation.title.is_empty() && !observation.summary.is_empty());
        }
    }

    #[test]
    fn serialized_observations_are_read_back(title in "[a-z]{1,20}", summary in "\\PC{0,40}x", fence in any::<bool>()) {
        let written = json!({ "title": title, "summary": summary }).to_string();
        let answer = if fence { format!("```json\n{written}\n```") } else { written };
        let observation = read_observation(&answer);
        prop_assert!(observation.is_ok(), "{:?}", observation);
    }
}

#[test]
fn redacts_secrets_before_truncating() {
    let secret = format!("ghp_{}", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A");
    let title = format!("{} {secret}", "x".repeat(MAX_TITLE_CHARS - 20));
    let answer = json!({
        "title": title, "summary": secret, "files_touched": [secret],
        "functions_changed": [{ "file": secret, "name": secret, "action": "new" }],
    });
    let mut observation = read_observation(&answer.to_string()).unwrap();
    redact_observation(&mut observation);
    let seen = format!("{observation:?}");
    assert!(!seen.contains("ghp_") && seen.contains("[redacted:"), "{seen}");
    let answer = json!({ "summary": secret, "key_files": [secret], "key_decisions": [secret] });
    let mut summary = read_summary(&answer.to_string()).unwrap();
    redact_summary(&mut summary);
    let seen = format!("{summary:?}");
    assert!(!seen.contains("ghp_"), "{seen}");
    let cut = format!("{} {secret} is no JSON", "y".repeat(SHOWN_CHARS - 20));
    assert!(!read_observation(&cut).unwrap_err().to_string().contains("ghp_"));
}
