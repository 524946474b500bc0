use baton_core::canonicalize;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// Layer and reason of each key of a context.
struct Found(Vec<Explanation>);

impl Found {
    fn with(classifier: &Classifier, context: &Value, overrides: &[String]) -> Self {
        let text = canonicalize(context).unwrap();
        Self(classifier.classify(JsonText::new(&text), overrides).explanations(None).collect())
    }

    fn explain(&self, path: &str) -> Option<&Explanation> {
        self.0.iter().find(|found| found.path == path)
    }
}

fn classify(context: &Value) -> Found {
    Found::with(&Classifier::builtin(), context, &[])
}

fn classify_with(rules: &Value, context: &Value) -> Found {
    Found::with(&Classifier::with_rules(RulesFile::read(rules).unwrap()), context, &[])
}

fn layer(found: &Found, path: &str) -> Layer {
    found.explain(path).unwrap().layer
}

#[test]
fn nested_keys_inherit_the_layer_of_their_parent_unless_a_rule_matches() {
    let context = json!({
        "plan": { "first": "paint", "updatedAt": "2024-01-01T00:00:00Z", "deep": { "er": { "still": { "x": 1 } } } },
    });
    let found = classify(&context);
    assert_eq!(layer(&found, "plan.first"), Layer::Important);
    assert_eq!(found.explain("plan.first").unwrap().rule, "inherited");
    assert_eq!(layer(&found, "plan.updatedAt"), Layer::Ephemeral);
    assert_eq!(layer(&found, "plan.deep.er.still"), Layer::Important);
    assert!(found.explain("plan.deep.er.still.x").is_none());
}

#[test]
fn details_of_critical_values_are_critical() {
    let context = json!({
        "constraints": { "deadline": "2024-09-01", "timeout_ms": 500, "debug_log": "x", "ticket_id": "T-1" },
    });
    let found = classify(&context);
    assert_eq!(layer(&found, "constraints.deadline"), Layer::Critical);
    assert_eq!(layer(&found, "constraints.timeout_ms"), Layer::Critical);
    assert_eq!(layer(&found, "constraints.ticket_id"), Layer::Critical);
    assert_eq!(layer(&found, "constraints.debug_log"), Layer::Ephemeral);
}

#[test]
fn overrides_take_precedence_and_apply_to_nested_keys() {
    let context =
        json!({ "debug": { "log": "x", "timestamps": { "a": { "b": { "c": { "d": 1 } } } } }, "a.b": 1 });
    let rules =
        json!({ "patterns": { "EPHEMERAL": [{ "type": "key_regex", "pattern": ".", "priority": 1000 }] } });
    let classifier = Classifier::with_rules(RulesFile::read(&rules).unwrap());
    let overrides = ["debug.timestamps.a.b.c".to_owned(), "a.b".to_owned(), "gone".to_owned()];
    let found = Found::with(&classifier, &context, &overrides);
    assert_eq!(layer(&found, "debug.log"), Layer::Ephemeral);
    assert_eq!(layer(&found, "debug.timestamps.a.b"), Layer::Ephemeral);
    assert_eq!(layer(&found, "debug.timestamps.a.b.c"), Layer::Critical);
    assert_eq!(layer(&found, r#"["a.b"]"#), Layer::Critical);
    let all = Found::with(&classifier, &context, &["debug".to_owned()]);
    assert_eq!(layer(&all, "debug.timestamps.a.b"), Layer::Critical);
    assert_eq!(all.explain("debug.log").unwrap().why, "`debug` was marked as critical");
}

#[test]
fn user_rules_outrank_built_in_rules_by_priority() {
    let rule = |priority: Option<u16>| {
        let mut rule = json!({ "type": "key_regex", "pattern": "^goal$", "id": "mine", "why": "we say so" });
        if let Some(priority) = priority {
            rule["priority"] = priority.into();
        }
        json!({ "patterns": { "USEFUL": [rule] } })
    };
    let context = json!({ "goal": "x" });
    let found = classify_with(&rule(None), &context);
    assert_eq!(found.explain("goal").unwrap().rule, "mine");
    assert_eq!(found.explain("goal").unwrap().why, "we say so (the key matches /^goal$/)");
    assert_eq!(layer(&classify_with(&rule(Some(10)), &context), "goal"), Layer::Critical);
    // On equal priority the more important layer wins.
    assert_eq!(layer(&classify_with(&rule(Some(priority::KEY)), &context), "goal"), Layer::Critical);
}

#[test]
fn user_rules_match_keys_paths_and_values() {
    let rules = json!({ "patterns": {
        "CRITICAL": [
            { "type": "key_regex", "pattern": r"^meta\.sla$", "id": "path" },
            { "type": "content_heuristic", "pattern": "/(?i)pager ?duty/", "id": "text" },
            { "type": "content_heuristic", "pattern": "url", "id": "shape" },
        ],
    } });
    let context = json!({ "meta": { "sla": 1 }, "sla": 1, "x": "call PagerDuty", "y": "https://a.b/c", "z": ["pager duty"] });
    let found = classify_with(&rules, &context);
    let rule = |path: &str| found.explain(path).unwrap().rule.to_string();
    assert_eq!(["meta.sla", "sla", "x", "y", "z"].map(rule), ["path", "default", "text", "shape", "text"]);
}

#[test]
fn values_are_not_inspected_without_heuristics() {
    let context = json!({ "x": "2024-01-01T00:00:00Z", "goal": "y" });
    let classifier = Classifier::builtin().without_heuristics();
    let found = Found::with(&classifier, &context, &[]);
    assert_eq!(found.explain("x").unwrap().rule, "default");
    assert_eq!(layer(&found, "goal"), Layer::Critical);
}

#[test]
fn sizes_and_totals_add_up() {
    let context = json!({ "goal": "x", "plan": { "a": [1, 2], "updated_at": 5, "empty": {} }, "log": "é\n" });
    let found = classify(&context);
    for (key, value) in context.as_object().unwrap() {
        assert_eq!(found.explain(key).unwrap().size_bytes, value.to_string().len(), "{key}");
    }
    let (classifier, text) = (Classifier::builtin(), context.to_string());
    let bytes = classifier.classify(JsonText::new(&text), &[]).bytes();
    assert_eq!((bytes.critical, bytes.important, bytes.ephemeral), (3, 5 + 2, 1 + 6));
}

#[test]
fn explanation_serializes_to_the_wire_format() {
    assert_eq!(
        serde_json::to_value(classify(&json!({ "userGoal": "x" })).0).unwrap(),
        json!([{
            "path": "userGoal", "layer": "CRITICAL", "rule": "key:goal", "priority": 300,
            "why": "the key says that this is a goal (`goal`)", "sizeBytes": 3,
        }])
    );
}

/// Generates JSON objects with keys and texts that match rules.
pub(crate) fn any_context() -> impl Strategy<Value = Map<String, Value>> {
    let texts = prop_oneof![
        Just("2024-01-01T00:00:00Z".to_owned()),
        Just("We decided to stay. It must not change.".to_owned()),
        Just("1. a\n2. b\n3. c\n".to_owned()),
        "\\PC{0,80}",
        "[a-z .\n]{0,400}",
        "[0-9a-f]{0,40}",
    ];
    let keys = prop_oneof![
        prop::sample::select(
            "goal plan log notes updatedAt example constraints debug x reasoning 目的 a.b id"
                .split(' ')
                .collect::<Vec<_>>()
        )
        .prop_map(str::to_owned),
        "\\PC{0,12}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f32>().prop_map(|number| Value::from(f64::from(number))),
        texts.prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(6, 60, 8, {
        let keys = keys.clone();
        move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(keys.clone(), inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        }
    });
    prop::collection::btree_map(keys, value, 0..8).prop_map(|members| members.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn classification_is_deterministic(context in any_context()) {
        let keys = context.len();
        let text = canonicalize(&Value::Object(context)).unwrap();
        let (context, classifier) = (JsonText::new(&text), Classifier::builtin());
        let once = classifier.classify(context, &[]);
        let explanations: Vec<Explanation> = once.explanations(None).collect();
        prop_assert_eq!(&explanations, &classifier.classify(context, &[]).explanations(None).collect::<Vec<_>>());
        prop_assert_eq!((0..once.len()).filter(|index| once.parent(*index).is_none()).count(), keys);
        let paths: std::collections::BTreeSet<_> = explanations.iter().map(|found| &found.path).collect();
        prop_assert_eq!(paths.len(), explanations.len(), "two keys have one path");
        for (index, found) in explanations.iter().enumerate() {
            prop_assert_eq!(find_key(context, &found.path), Some(found.path.clone()));
            prop_assert_eq!((found.layer, found.size_bytes), (once.layer(index), once.value(index).size()));
            let below = once.explanations(Some(&found.path));
            prop_assert_eq!(below.len(), once.next(index) - index);
        }
    }

    #[test]
    fn marked_keys_are_critical(context in any_context(), pick in any::<prop::sample::Index>()) {
        let context = Value::Object(context);
        let found = classify(&context);
        if found.0.is_empty() {
            return Ok(());
        }
        let path = pick.get(&found.0).path.clone();
        let marked = Found::with(&Classifier::builtin(), &context, std::slice::from_ref(&path));
        prop_assert_eq!(layer(&marked, &path), Layer::Critical);
    }
}
