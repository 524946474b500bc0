//! Views within a budget, critical keys, explanations and differences.

use baton_core::estimate_tokens;
use baton_testkit::contract::fixture::Dice;
use serde_json::{Value, json};

use crate::checkpoint::default_settings;
use crate::saving::{id, prose, text};
use crate::stage::{Stage, ok, refused};

/// Returns a long context; `zebra` is a long value that no rule classifies as critical.
fn long() -> Value {
    let mut dice = Dice::new(4);
    json!({
        "goal": "Move the login to OAuth", "zebra": prose(&mut dice, 6_000), "debugLog": prose(&mut dice, 9_000),
        "plan": { "steps": ["one", "two"], "notes": prose(&mut dice, 4_000) },
    })
}

fn view(stage: &Stage, checkpoint: &str, budget: Value) -> Value {
    let mut params = json!({ "checkpointId": checkpoint });
    params.as_object_mut().unwrap().extend(budget.as_object().unwrap().clone());
    ok(&stage.call("checkpoint.load", params))
}

#[test]
fn budget_limits_the_view_and_not_the_checkpoint() {
    for stage in Stage::each_with(default_settings) {
        let context = long();
        let saved = id(&stage.save("w", &context));
        for budget in [json!({ "maxBytes": 4_000 }), json!({ "maxTokens": 1_000 })] {
            for level in ["basic", "standard", "aggressive"] {
                let mut params = budget.clone();
                params["level"] = level.into();
                let shown = view(&stage, &saved, params);
                let shown_text = text(&shown["context"]);
                assert!(budget["maxBytes"].as_u64().is_none_or(|bytes| shown_text.len() as u64 <= bytes));
                assert_eq!(shown["context"]["goal"], context["goal"], "critical values are complete");
                let report = &shown["view"];
                assert_eq!(report["overflow"], Value::Null);
                assert_eq!(
                    (&report["budgetBytes"], &report["budgetTokens"]),
                    (&budget["maxBytes"], &budget["maxTokens"])
                );
                assert_eq!(report["shownBytes"], shown_text.len());
                assert_eq!(report["shownTokens"], estimate_tokens(&shown_text));
                if let Some(tokens) = budget["maxTokens"].as_u64() {
                    let answer = json!({ "context": shown["context"], "view": report });
                    assert!(estimate_tokens(&text(&answer)) as u64 <= tokens, "{report}");
                }
                let omitted: Vec<&str> = report["omissions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| one["path"].as_str().unwrap())
                    .collect();
                assert!(omitted.contains(&"debugLog") && !omitted.contains(&"goal"), "{omitted:?}");
                assert!(report["more"].as_str().unwrap().contains(&saved), "{report}");
            }
        }
        let whole = view(&stage, &saved, json!({ "maxBytes": 1_000_000 }));
        assert_eq!(whole["context"], context);
        assert_eq!((&whole["view"]["omissions"], &whole["view"]["more"]), (&json!([]), &Value::Null));
        let tight = view(&stage, &saved, json!({ "maxBytes": 1 }));
        assert_eq!(tight["context"]["goal"], context["goal"]);
        let critical = text(&tight["context"]).len();
        assert_eq!(tight["view"]["overflow"], json!({ "budgetBytes": 1, "criticalBytes": critical }));
        assert_eq!(stage.load(&saved), context, "the stored context is unchanged");
        for wrong in [
            json!({ "maxBytes": 0 }),
            json!({ "maxBytes": -1 }),
            json!({ "maxTokens": 0 }),
            json!({ "maxTokens": -1 }),
            json!({ "maxBytes": 10, "maxTokens": 10 }),
            json!({ "maxBytes": "10" }),
            json!({ "maxBytes": 10, "level": "extreme" }),
        ] {
            let mut params = json!({ "checkpointId": saved });
            params.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
            refused(&stage.call("checkpoint.load", params), "invalid_request");
        }
        let huge = view(&stage, &saved, json!({ "maxTokens": i64::MAX }));
        assert_eq!(huge["context"], context);
    }
}

#[test]
fn marked_key_is_complete_in_all_views_of_the_workflow() {
    for stage in Stage::each_with(default_settings) {
        let (early, mut later) = (long(), long());
        let early_id = id(&stage.save("w", &early));
        let budget = json!({ "maxBytes": 8_000 });
        assert_ne!(view(&stage, &early_id, budget.clone())["context"]["zebra"], early["zebra"]);
        let mark = |key: &str| {
            ok(&stage.call("checkpoint.mark_critical", json!({ "sessionId": "w", "contextKey": key })))
        };
        let marked = mark("zebra");
        assert_eq!(marked["status"], "SUCCESS");
        assert!(marked["message"].as_str().unwrap().contains("`zebra`"), "{marked}");
        assert_eq!(mark("zebra"), marked, "marking twice gives the same result");
        later["goal"] = "other".into();
        let later_id = id(&stage.save("w", &later));
        for (id, context) in [(&early_id, &early), (&later_id, &later)] {
            assert_eq!(view(&stage, id, budget.clone())["context"]["zebra"], context["zebra"]);
        }
        assert_eq!(mark("plan.notes")["status"], "SUCCESS");
        assert_eq!(stage.workflow("w").critical_keys, ["zebra", "plan.notes"]);
        let missing = mark("plan.absent");
        assert_eq!(missing["status"], "KEY_NOT_FOUND");
        let message = missing["message"].as_str().unwrap();
        assert!(message.contains("`plan.absent`") && message.contains("zebra"), "{message}");
        assert_eq!(stage.workflow("w").critical_keys.len(), 2);
        for wrong in ["", &"k".repeat(1_025)] {
            let params = json!({ "sessionId": "w", "contextKey": wrong });
            refused(&stage.call("checkpoint.mark_critical", params), "invalid_request");
        }
        let other = id(&stage.save("other", &early));
        assert_ne!(
            view(&stage, &other, budget.clone())["context"]["zebra"],
            early["zebra"],
            "the mark applies to one workflow only"
        );
    }
}

#[test]
fn explanations_contain_layer_rule_and_reason() {
    for stage in Stage::each_with(default_settings) {
        let saved = id(&stage.save("w", &long()));
        ok(&stage.call("checkpoint.mark_critical", json!({ "sessionId": "w", "contextKey": "zebra" })));
        let explain = |params: Value| ok(&stage.call("checkpoint.explain", params));
        let by_id = explain(json!({ "checkpointId": saved }));
        assert_eq!(explain(json!({ "sessionId": "w" })), by_id);
        let key = |path: &str| {
            by_id["keys"].as_array().unwrap().iter().find(|key| key["path"] == path).cloned().unwrap()
        };
        assert_eq!(key("goal")["layer"], "CRITICAL");
        assert_eq!((&key("zebra")["layer"], &key("zebra")["rule"]), (&"CRITICAL".into(), &"override".into()));
        assert_eq!(key("debugLog")["layer"], "EPHEMERAL");
        for one in by_id["keys"].as_array().unwrap() {
            assert!(
                !one["rule"].as_str().unwrap().is_empty() && !one["why"].as_str().unwrap().is_empty(),
                "{one}"
            );
        }
        assert_eq!((&by_id["criticalKeys"], &by_id["unlisted"]), (&json!(["zebra"]), &0.into()));
        let part = explain(json!({ "checkpointId": saved, "contextKey": "plan" }));
        let paths: Vec<_> = part["keys"].as_array().unwrap().iter().map(|one| one["path"].clone()).collect();
        assert!(
            !paths.is_empty() && paths.iter().all(|path| path.as_str().unwrap().starts_with("plan")),
            "{paths:?}"
        );
        assert!(paths.contains(&"plan.notes".into()));
        assert_eq!(part["layers"], by_id["layers"]);
        let none = json!({ "checkpointId": saved, "contextKey": "absent" });
        refused(&stage.call("checkpoint.explain", none), "not_found");
        let empty = id(&stage.save("empty", &json!({})));
        assert_eq!(explain(json!({ "checkpointId": empty }))["keys"], json!([]));
        let wide: serde_json::Map<String, Value> = (0..1_003).map(|n| (format!("k{n}"), n.into())).collect();
        let wide = explain(json!({ "checkpointId": id(&stage.save("wide", &wide.into())) }));
        assert_eq!((wide["keys"].as_array().unwrap().len(), &wide["unlisted"]), (1_000, &3.into()));
    }
}

#[test]
fn diff_compares_two_ids_or_the_last_two_checkpoints() {
    for stage in Stage::each_with(default_settings) {
        let first = id(&stage.save("w", &json!({ "a": 1, "b": { "c": [1, 2] }, "d": null })));
        let alone =
            refused(&stage.call("checkpoint.diff", json!({ "sessionId": "w" })), "checkpoint_not_found");
        assert!(alone["message"].as_str().unwrap().contains("two checkpoints"), "{alone}");
        let second = id(&stage.save("w", &json!({ "a": 2, "b": { "c": [1, 2], "e": "ü" } })));
        let third = id(&stage.save("w", &json!({ "a": 2, "b": { "c": [1, 2], "e": "ü" }, "f": true })));
        let diff = |params: Value| ok(&stage.call("checkpoint.diff", params));
        let named = diff(json!({ "from": first, "to": second }));
        let expected = json!({
            "from": first, "to": second, "added": 1, "removed": 1, "changed": 1, "unlisted": 0, "changes": [
                { "path": "a", "kind": "changed", "old": 1, "new": 2 },
                { "path": "b.e", "kind": "added", "old": null, "new": "ü" },
                { "path": "d", "kind": "removed", "old": null, "new": null },
            ],
        });
        assert_eq!(named, expected);
        let last = diff(json!({ "sessionId": "w" }));
        assert_eq!((&last["from"], &last["to"]), (&second.clone().into(), &third.clone().into()));
        assert_eq!((&last["added"], &last["changes"][0]["path"]), (&1.into(), &"f".into()));
        let back = diff(json!({ "from": third, "to": second }));
        assert_eq!((&back["removed"], &back["added"]), (&1.into(), &0.into()));
        assert_eq!(diff(json!({ "from": first, "to": first }))["changes"], json!([]));
        let other = id(&stage.save("other", &json!({ "a": 2 })));
        assert_eq!(diff(json!({ "from": third, "to": other }))["removed"], 2, "across workflows");
        ok(&stage.call("checkpoint.delete", json!({ "checkpointId": second })));
        let last = diff(json!({ "sessionId": "w" }));
        assert_eq!(
            (&last["from"], &last["to"]),
            (&first.into(), &third.into()),
            "deleted checkpoints are skipped"
        );
    }
}
