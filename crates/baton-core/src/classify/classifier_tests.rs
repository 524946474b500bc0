use super::*;
use proptest::prelude::*;
use serde_json::json;

fn classify(context: &Value) -> Classification<'_> {
    Classifier::builtin().classify(context.as_object().unwrap(), &[])
}

fn classify_with<'a>(rules: &Value, context: &'a Value) -> Classification<'a> {
    Classifier::with_rules(RulesFile::read(rules).unwrap()).classify(context.as_object().unwrap(), &[])
}

fn layer(classification: &Classification<'_>, path: &str) -> Layer {
    classification.explain(path).unwrap().layer
}

#[test]
fn nested_keys_belong_to_their_parent_unless_a_rule_says_otherwise() {
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
fn what_is_inside_something_critical_stays_with_it() {
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
fn an_override_wins_over_everything_and_reaches_down() {
    let context =
        json!({ "debug": { "log": "x", "timestamps": { "a": { "b": { "c": { "d": 1 } } } } }, "a.b": 1 });
    let rules =
        json!({ "patterns": { "EPHEMERAL": [{ "type": "key_regex", "pattern": ".", "priority": 1000 }] } });
    let classifier = Classifier::with_rules(RulesFile::read(&rules).unwrap());
    let overrides = ["debug.timestamps.a.b.c".to_owned(), "a.b".to_owned(), "gone".to_owned()];
    let found = classifier.classify(context.as_object().unwrap(), &overrides);
    assert_eq!(layer(&found, "debug.log"), Layer::Ephemeral);
    assert_eq!(layer(&found, "debug.timestamps.a.b"), Layer::Ephemeral);
    assert_eq!(layer(&found, "debug.timestamps.a.b.c"), Layer::Critical);
    assert_eq!(layer(&found, r#"["a.b"]"#), Layer::Critical);
    let all = classifier.classify(context.as_object().unwrap(), &["debug".to_owned()]);
    assert_eq!(layer(&all, "debug.timestamps.a.b"), Layer::Critical);
    assert_eq!(all.explain("debug.log").unwrap().why, "`debug` was marked as critical");
}

#[test]
fn users_outrank_built_in_rules_by_priority() {
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
    // Between equals, what matters more wins.
    assert_eq!(layer(&classify_with(&rule(Some(priority::KEY)), &context), "goal"), Layer::Critical);
}

#[test]
fn user_rules_see_keys_paths_and_values() {
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
fn values_are_not_read_without_heuristics() {
    let context = json!({ "x": "2024-01-01T00:00:00Z", "goal": "y" });
    let classifier = Classifier::builtin().without_heuristics();
    let found = classifier.classify(context.as_object().unwrap(), &[]);
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
    let bytes = found.bytes();
    assert_eq!((bytes.critical, bytes.important, bytes.ephemeral), (3, 5 + 2, 1 + 6));
}

#[test]
fn an_explanation_is_wire_ready() {
    let context = json!({ "userGoal": "x" });
    let found = classify(&context);
    assert_eq!(
        serde_json::to_value(found.explanations()).unwrap(),
        json!([{
            "path": "userGoal", "layer": "CRITICAL", "rule": "key:goal", "priority": 300,
            "why": "the key says that this is a goal (`goal`)", "sizeBytes": 3,
        }])
    );
}

/// Any JSON, with keys and texts that rules look at.
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
    fn any_context_is_classified_the_same_twice(context in any_context()) {
        let once = Classifier::builtin().classify(&context, &[]);
        prop_assert_eq!(&once, &Classifier::builtin().classify(&context, &[]));
        prop_assert_eq!(once.members().len(), context.len());
        let paths: std::collections::BTreeSet<_> =
            once.explanations().iter().map(|found| found.path.clone()).collect();
        prop_assert_eq!(paths.len(), once.explanations().len(), "two keys have one path");
        for found in once.explanations() {
            prop_assert_eq!(find_key(&context, &found.path), Some(found.path.clone()));
        }
    }

    #[test]
    fn whatever_is_marked_is_critical(context in any_context(), pick in any::<prop::sample::Index>()) {
        let found = Classifier::builtin().classify(&context, &[]);
        let paths = found.explanations();
        if paths.is_empty() {
            return Ok(());
        }
        let path = pick.get(&paths).path.clone();
        let marked = Classifier::builtin().classify(&context, std::slice::from_ref(&path));
        for found in marked.explanations().iter().filter(|found| found.path == path) {
            prop_assert_eq!(found.layer, Layer::Critical);
        }
    }
}
