use baton_core::{JsonText, canonicalize};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

use super::*;
use crate::classify::{Classifier, any_context};

fn options(bytes: usize, level: Level) -> ViewOptions {
    ViewOptions { budget: Budget::Bytes(bytes), level, shares: Shares::default() }
}

fn view(context: &Value, bytes: usize) -> View {
    view_with(context, options(bytes, Level::Standard))
}

fn view_with(context: &Value, options: ViewOptions) -> View {
    let (classifier, text) = (Classifier::builtin(), canonicalize(context).unwrap());
    View::of(&classifier.classify(JsonText::new(&text), &[]), options)
}

/// Parses the context of a view.
fn shown_in(view: &View) -> Value {
    serde_json::from_str(&view.context).unwrap()
}

fn context() -> Value {
    let prose = |words: &str, times: usize| words.repeat(times);
    json!({
        "goal": "Ship the importer",
        "decisions": { "format": "CSV stays", "decided_at": "2024-01-01" },
        "plan": prose("First this, then that. ", 120),
        "reasoning": prose("It is cold, so it is slow. ", 20),
        "notes": prose("A note about nothing. ", 100),
        "examples": (0..60).map(|number| format!("example {number}")).collect::<Vec<_>>(),
        "build_log": prose("12:00:01 INFO ok\n", 200),
        "runtime": { "updated_at": "2024-01-01T00:00:00Z", "pid": 17 },
    })
}

#[test]
fn context_within_the_budget_is_unchanged() {
    let context = context();
    let size = context.to_string().len();
    let whole = view(&context, size);
    assert_eq!(whole.context, context.to_string());
    assert_eq!((whole.omissions, whole.overflow, whole.size_bytes), (vec![], None, size));
    assert!(!view(&context, size - 1).omissions.is_empty());
}

#[test]
fn ephemeral_keys_are_omitted_first_and_critical_keys_never() {
    let context = context();
    let all = context.to_string().len();
    let log = context["build_log"].to_string().len();
    let trimmed = view(&context, all - log);
    assert_eq!(trimmed.omissions.len(), 1, "{:?}", trimmed.omissions);
    assert_eq!(
        (trimmed.omissions[0].path.as_str(), trimmed.omissions[0].kind),
        ("build_log", OmissionKind::LeftOut)
    );
    assert_eq!((trimmed.omissions[0].original_bytes, trimmed.omissions[0].kept_bytes), (log, 0));

    let small = view(&context, 1500);
    let shown = shown_in(&small);
    assert_eq!(shown["goal"], context["goal"]);
    assert_eq!(shown["decisions"], context["decisions"]);
    assert!(shown.get("build_log").is_none());
    let gone: Vec<_> = small.omissions.iter().map(|omission| omission.path.as_str()).collect();
    assert!(gone.contains(&"plan") && gone.contains(&"runtime"), "{gone:?}");
}

#[test]
fn every_layer_gets_a_share_of_the_budget() {
    let context = context();
    let small = view(&context, 2000);
    let shown = shown_in(&small);
    let size = |key: &str| shown.get(key).map_or(0, |value| value.to_string().len());
    assert!(size("plan") + size("reasoning") >= 800, "{:?}", small.omissions);
    assert!(size("notes") + size("examples") >= 300, "{:?}", small.omissions);
    assert!(small.size_bytes > 1700, "{}", small.size_bytes);
}

#[test]
fn critical_keys_beyond_the_budget_are_shown_and_reported() {
    let context = json!({ "goal": "x".repeat(500), "plan": "y" });
    let shown = view(&context, 100);
    let critical = json!({ "goal": "x".repeat(500) });
    assert_eq!(shown.context, critical.to_string());
    let critical_bytes = critical.to_string().len();
    assert_eq!(shown.overflow, Some(Overflow { budget_bytes: 100, critical_bytes }));
    assert_eq!(
        view(&json!({ "plan": "y" }), 1).overflow,
        Some(Overflow { budget_bytes: 1, critical_bytes: 2 })
    );
}

#[test]
fn higher_compression_levels_keep_more_keys() {
    let context: Map<String, Value> =
        (0..40).map(|number| (format!("plan_{number}"), json!("step ".repeat(200)))).collect();
    let context = Value::Object(context);
    let [basic, standard, aggressive] = [Level::Basic, Level::Standard, Level::Aggressive]
        .map(|level| shown_in(&view_with(&context, options(6000, level))).as_object().unwrap().len());
    assert!(basic < standard && standard < aggressive, "{basic} {standard} {aggressive}");
}

fn view_in_tokens(context: &Value, tokens: usize) -> View {
    let budget = Budget::Tokens(tokens);
    view_with(context, ViewOptions { budget, level: Level::Standard, shares: Shares::default() })
}

/// Estimates the tokens of a view including its list of omissions.
fn tokens_with_omissions(view: &View) -> usize {
    let omissions = serde_json::to_string(&(&view.omissions, &view.unlisted)).unwrap();
    estimate_tokens(&view.context) + estimate_tokens(&omissions)
}

#[test]
fn token_budget_includes_the_omissions() {
    let context = context();
    for budget in [200, 400, 800, 1600] {
        let shown = view_in_tokens(&context, budget);
        let tokens = tokens_with_omissions(&shown);
        assert!(tokens <= budget && shown.overflow.is_none(), "{tokens} of {budget}");
        assert!(budget < 800 || tokens > budget * 6 / 10, "{tokens} of {budget}");
        assert_eq!(shown.tokens, estimate_tokens(&shown.context));
    }
    assert_eq!(view_in_tokens(&context, usize::MAX).context, context.to_string());
}

#[test]
fn dense_contexts_get_fewer_bytes_for_the_same_tokens() {
    let prose = json!({ "notes": "This is a plain sentence about the importer. ".repeat(200) });
    let numbers = json!({ "notes": (0..2000).map(|number| number * 7919).collect::<Vec<u32>>() });
    let bytes = |context| view_in_tokens(context, 500).size_bytes;
    assert!(bytes(&prose) > bytes(&numbers) * 3 / 2, "{} {}", bytes(&prose), bytes(&numbers));
}

#[test]
fn omissions_beyond_their_share_of_a_token_budget_are_counted() {
    let context: Value = (0..300)
        .map(|number| (format!("build_log_{number}"), json!(format!("INFO {number} ").repeat(20 + number))))
        .collect::<Map<String, Value>>()
        .into();
    let shown = view_in_tokens(&context, 600);
    let unlisted = shown.unlisted.unwrap();
    let missing = 300 - shown_in(&shown).as_object().unwrap().len();
    assert_eq!(shown.omissions.len() + unlisted.count, missing);
    assert!(unlisted.original_bytes > 0 && !shown.omissions.is_empty());
    let largest = shown.omissions.iter().map(|omission| omission.original_bytes).max();
    let all = context.as_object().unwrap().values().map(|value| value.to_string().len()).max();
    assert_eq!(largest, all, "the largest omissions are listed");
}

#[test]
fn byte_budget_lists_the_thousand_largest_omissions() {
    let context: Value = (0..3_000)
        .map(|number| (format!("k{number}"), json!({ "log": "x".repeat(20 + number % 1_500), "goal": "g" })))
        .collect::<Map<String, Value>>()
        .into();
    let shown = view(&context, 60_000);
    let unlisted = shown.unlisted.unwrap();
    assert_eq!(shown.omissions.len(), 1_000);
    let smallest = shown.omissions.iter().map(|omission| omission.original_bytes).min().unwrap();
    let largest_missing = (0..3_000).filter(|number| 22 + number % 1_500 >= smallest).count();
    assert!(largest_missing <= 1_001, "{largest_missing}");
    let paths: Vec<&str> = shown.omissions.iter().map(|omission| omission.path.as_str()).collect();
    assert!(paths.is_sorted() && paths.iter().all(|path| path.ends_with(".log")));
    let kept =
        shown_in(&shown).as_object().unwrap().values().filter(|value| value.get("log").is_some()).count();
    assert_eq!(kept + 1_000 + unlisted.count, 3_000);
}

#[test]
fn too_many_critical_tokens_are_shown_and_reported() {
    let context = json!({ "goal": "one two three four ".repeat(200), "plan": "y" });
    let shown = view_in_tokens(&context, 100);
    assert_eq!(shown_in(&shown)["goal"], context["goal"]);
    assert!(shown.overflow.is_some());
    assert!(shown.omissions.is_empty() && shown.unlisted.is_some_and(|unlisted| unlisted.count == 1));
}

#[test]
fn conversation_keeps_its_latest_messages() {
    let messages: Vec<Value> = (0..200).map(|number| json!(format!("message number {number}"))).collect();
    for key in ["messages", "log", "steps"] {
        let list = json!(messages).to_string();
        let list = JsonText::new(&list);
        let short: Vec<Value> =
            serde_json::from_str(&condense(list, 600, || Emphasis::of(key, list))).unwrap();
        let late = short.iter().filter(|item| messages[150..].contains(item)).count();
        assert_eq!(short.last(), messages.last());
        assert!(late * 2 > short.len(), "{short:?}");
    }
}

#[test]
fn long_list_of_prompts_fits_a_small_budget() {
    let prompts: Vec<String> =
        (0..100).map(|number| format!("Please change file {number}. ").repeat(4)).collect();
    let context = json!({ "goal": "Ship it", "userPrompts": prompts });
    let shown = view(&context, 1000);
    assert!(shown.overflow.is_none() && shown.size_bytes <= 1000);
    let shown = shown_in(&shown);
    let kept = shown["userPrompts"].as_array().unwrap();
    assert_eq!(kept.last().unwrap(), prompts.last().unwrap());
}

/// Returns the value of a key of a classification in a view.
fn at<'s>(classification: &Classification<'_>, index: usize, shown: &'s Value) -> Option<&'s Value> {
    let object = match classification.parent(index) {
        Some(parent) => at(classification, parent, shown)?,
        None => shown,
    };
    object.get(classification.key(index).decode().as_ref())
}

fn any_level() -> impl Strategy<Value = Level> {
    prop::sample::select(vec![Level::Basic, Level::Standard, Level::Aggressive])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn view_fits_its_budget_and_keeps_critical_keys(context in any_context(), budget in 0..3000_usize, level in any_level()) {
        let (classifier, text) = (Classifier::builtin(), canonicalize(&Value::Object(context)).unwrap());
        let classification = classifier.classify(JsonText::new(&text), &[]);
        let shown = View::of(&classification, options(budget, level));
        let (size, tree) = (shown.context.len(), shown_in(&shown));
        prop_assert_eq!(&canonicalize(&tree).unwrap(), &shown.context, "a view is canonical like its context");
        prop_assert_eq!(shown.size_bytes, size);
        prop_assert!(size <= budget || shown.overflow.is_some_and(|over| over.critical_bytes == size));
        prop_assert_eq!(&View::of(&classification, options(budget, level)), &shown);
        for index in 0..classification.len() {
            if classification.is_leaf(index) && classification.layer(index) == Layer::Critical {
                let value: Value = serde_json::from_str(classification.value(index).as_str()).unwrap();
                prop_assert_eq!(at(&classification, index, &tree), Some(&value), "{}", classification.path(index));
            }
        }
        prop_assert_eq!(shown.omissions.is_empty(), shown.context == text);
    }

    #[test]
    fn view_in_tokens_fits_or_reports_an_overflow(context in any_context(), budget in 100..3000_usize) {
        let value = Value::Object(context);
        let shown = view_in_tokens(&value, budget);
        prop_assert!(tokens_with_omissions(&shown) <= budget + 20 || shown.overflow.is_some() || shown.tokens <= budget);
        let critical_fits = shown.overflow.is_none_or(|_| shown.tokens > budget);
        prop_assert!(critical_fits);
        prop_assert_eq!(
            shown.omissions.is_empty() && shown.unlisted.is_none(),
            shown.context == canonicalize(&value).unwrap()
        );
    }

    #[test]
    fn larger_budget_keeps_all_keys_of_a_smaller_one(
        context in any_context(),
        budgets in (0..3000_usize, 0..600_usize),
        level in any_level(),
    ) {
        let (classifier, text) = (Classifier::builtin(), canonicalize(&Value::Object(context)).unwrap());
        let classification = classifier.classify(JsonText::new(&text), &[]);
        let (small, large) = (budgets.0, budgets.0 + budgets.1);
        let keys = |budget| -> BTreeSet<String> {
            let shown = shown_in(&View::of(&classification, options(budget, level)));
            let kept = (0..classification.len()).filter(|index| at(&classification, *index, &shown).is_some());
            kept.map(|index| classification.path(index)).collect()
        };
        let (few, many) = (keys(small), keys(large));
        prop_assert!(few.is_subset(&many), "{small} {:?} {large} {:?}", few, many);
    }
}
