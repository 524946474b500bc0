//! A model that returns unusable answers: the item fails immediately, keeps its raw output, and can be retried
//! manually.

use baton_core::observation::QueueStatus;
use baton_testkit::model_server::Behaviour;
use serde_json::json;

use crate::stage::{Stage, done, failed};

/// Returns unusable behaviours, and whether the model counts tokens for them.
fn unusable() -> Vec<(Behaviour, bool)> {
    vec![
        (Behaviour::Garbage, false),
        (Behaviour::Body(String::new()), false),
        (Behaviour::Body(r#"{"content":[],"choices":[]}"#.into()), false),
        (Behaviour::Says("I would rather not say.".into()), true),
        (Behaviour::Says(String::new()), true),
        (Behaviour::Says("[1, 2]".into()), true),
        (Behaviour::Says(r#"{"title":"   ","summary":"s"}"#.into()), true),
        (Behaviour::Says(r#"{"title":"t"}"#.into()), true),
        (Behaviour::MissingTitle, true),
        (Behaviour::WrongTypes, true),
        (Behaviour::TruncatedJson, true),
        (Behaviour::MaxTokens, true),
        (Behaviour::Refusal, true),
        (Behaviour::BadRequest, false),
        (Behaviour::Status(413), false),
        (Behaviour::Status(422), false),
    ]
}

#[test]
fn unusable_answer_fails_only_its_item_immediately() {
    for stage in Stage::each() {
        for (behaviour, counted) in unusable() {
            let before: u64 = stage.usage().iter().map(|usage| usage.tokens_in).sum();
            let bad = stage.capture(1);
            stage.model.behave(behaviour.clone());
            assert_eq!(stage.step(), failed(1), "{behaviour:?}");

            let item = stage.item(bad);
            assert_eq!((item.status, item.attempts), (QueueStatus::Error, 1), "{behaviour:?}");
            assert!(item.last_error.as_ref().is_some_and(|error| !error.is_empty()), "{behaviour:?}");
            assert_eq!(item.settled_at, Some(stage.clock_now()), "{behaviour:?}");
            assert!(stage.raw(bad).contains("what item-1 said"), "{behaviour:?}");
            let after: u64 = stage.usage().iter().map(|usage| usage.tokens_in).sum();
            assert_eq!(after > before, counted, "{behaviour:?}: {before} and {after} tokens");

            // The next item is processed without a pause.
            let good = stage.capture(2);
            stage.model.behave(Behaviour::Good);
            assert_eq!(stage.step(), done(1), "{behaviour:?}");
            stage.observation(good);
        }
        let stats = stage.stats();
        assert_eq!((stats.error, stats.done), (unusable().len() as u64, unusable().len() as u64));
        assert_eq!(stage.observations().len(), unusable().len(), "failed items have no observation");
    }
}

#[test]
fn code_fences_and_surrounding_text_are_ignored() {
    for stage in Stage::each() {
        let object =
            r#"{"title":"Said item-9","summary":"s","detail":"d","files_touched":[],"functions_changed":[]}"#;
        for (behaviour, title) in [
            (Behaviour::Fenced, "Compressed item-4"),
            (Behaviour::Says(format!("```json\n{object}\n```")), "Said item-9"),
            (Behaviour::Says(format!("```\n{object}\n```")), "Said item-9"),
            (Behaviour::Says(format!("\n\n  {object}  \n")), "Said item-9"),
        ] {
            let id = stage.capture(4);
            stage.model.behave(behaviour.clone());
            assert_eq!(stage.step(), done(1), "{behaviour:?}");
            assert_eq!(stage.observation(id).compressed.title, title, "{behaviour:?}");
        }
    }
}

#[test]
fn failed_items_can_be_retried() {
    for stage in Stage::each() {
        stage.model.behave(Behaviour::Garbage);
        let items = [1, 2, 3].map(|number| stage.capture(number));
        assert_eq!(stage.step(), failed(3));
        stage.model.behave(Behaviour::Good);
        assert_eq!(stage.step(), done(0), "no retry was requested");

        let listed = stage.ok("queue.list", json!({ "status": "error" }));
        let ids: Vec<i64> =
            listed["items"].as_array().unwrap().iter().map(|item| item["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, [items[2], items[1], items[0]], "newest first");
        assert_eq!(stage.ok("queue.retry", json!({ "id": items[1] }))["retried"], 1);
        assert_eq!(
            stage.call("queue.retry", json!({ "id": items[1] })).status,
            404,
            "the item is already due"
        );
        assert_eq!(stage.call("queue.retry", json!({ "id": 1_000_000 })).status, 404);
        assert_eq!(stage.step(), done(1));
        let item = stage.item(items[1]);
        assert_eq!((item.status, item.attempts, item.last_error), (QueueStatus::Done, 1, None));

        assert_eq!(stage.ok("queue.retry", json!({}))["retried"], 2);
        assert_eq!(stage.step(), done(2));
        for (number, id) in (1..).zip(items) {
            assert_eq!(stage.observation(id).compressed.title, format!("Compressed item-{number}"));
        }
    }
}

#[test]
fn damaged_raw_output_fails_only_its_item() {
    for stage in Stage::each() {
        let items = [1, 2, 3].map(|number| stage.capture(number));
        let damage = format!("UPDATE pending_queue SET raw_output = {{}} WHERE id = {}", items[1]);
        let (sqlite, postgres) = (damage.replace("{}", "x'00ff'"), damage.replace("{}", "'\\x00ff'"));
        stage.store.place().execute(&sqlite, &postgres);
        let drained = stage.step();
        assert_eq!((drained.done, drained.failed), (2, 1));
        let item = stage.item(items[1]);
        assert_eq!(item.status, QueueStatus::Error);
        assert!(item.last_error.unwrap().contains("damaged"));
        assert_eq!(stage.model.received(), 2, "the model is not called for it");
    }
}
