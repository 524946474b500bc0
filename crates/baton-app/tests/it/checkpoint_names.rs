//! Workflow names, lists, access by venture, and invalid or unknown ids.

use baton_core::VentureScope;
use serde_json::{Value, json};

use crate::checkpoint::default_settings;
use crate::saving::id;
use crate::stage::{DAY, MILLISECOND, MINUTE, NOW, Stage, ok, operation, refused};

const UNKNOWN: &str = "ckpt_01HQXV3NK8ZZZZZZZZZZZZZZZZ";

fn workflow_of(stage: &Stage, params: Value) -> String {
    ok(&stage.call("checkpoint.save", params))["sessionId"].as_str().unwrap().to_owned()
}

#[test]
fn named_workflow_is_continued_within_a_day() {
    for stage in Stage::each_with(default_settings) {
        let save = |context: Value| workflow_of(&stage, json!({ "context": context }));
        let first = save(json!({ "workflowId": "auth", "step": 1 }));
        assert!(first.starts_with("wf-") && first.len() == 35, "{first}");
        assert_eq!(save(json!({ "workflow_id": "auth", "step": 2 })), first, "`workflow_id` is accepted too");
        assert_eq!(save(json!({ "workflow_id": "ignored", "workflowId": "auth", "step": 3 })), first);
        let named = json!({ "context": { "step": 4 }, "metadata": { "name": "auth" } });
        assert_eq!(workflow_of(&stage, named), first, "the name of the checkpoint is the fallback");
        assert_eq!(stage.workflow(&first).name.as_deref(), Some("auth"));
        assert_ne!(save(json!({ "workflowId": "Auth", "step": 1 })), first);
        stage.clock.set(NOW.plus(DAY));
        assert_eq!(save(json!({ "workflowId": "auth", "step": 5 })), first, "within a day of the last save");
        stage.clock.set(NOW.plus(2 * DAY));
        assert_eq!(save(json!({ "workflowId": "auth", "step": 6 })), first);
        stage.clock.set(NOW.plus(3 * DAY + MILLISECOND));
        let second = save(json!({ "workflowId": "auth", "step": 7 }));
        assert_ne!(second, first);
        assert_eq!(
            save(json!({ "workflowId": "auth", "step": 8 })),
            second,
            "the newer workflow is continued"
        );
        assert_eq!((stage.ids(&first).len(), stage.ids(&second).len()), (6, 2));
    }
}

#[test]
fn same_name_in_another_repository_is_another_workflow() {
    for stage in Stage::each_with(default_settings) {
        let save = |step: u32, more: Value| {
            let mut params = json!({ "context": { "workflowId": "auth", "step": step } });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            workflow_of(&stage, params)
        };
        let here = save(1, json!({ "repo": "o/r" }));
        let there = save(2, json!({ "repo": "o/q" }));
        let nowhere = save(3, json!({}));
        assert!(here != there && there != nowhere && here != nowhere);
        assert_eq!(save(4, json!({ "repo": "o/r" })), here);
        assert_eq!(save(5, json!({ "repo": "o/q" })), there);
        assert_eq!(save(6, json!({})), nowhere);
        assert_ne!(save(7, json!({ "repo": "o/r", "venture": "v" })), here);
        stage.clock.set(NOW.plus(MINUTE));
        assert_eq!(save(8, json!({ "repo": "o/r", "sessionId": "mine" })), "mine");
        assert_eq!(save(9, json!({ "repo": "o/r" })), "mine", "the workflow saved last is continued");
    }
}

#[test]
fn unnamed_context_is_identified_by_its_content() {
    for stage in Stage::each_with(default_settings) {
        let save = |context: Value| ok(&stage.call("checkpoint.save", json!({ "context": context })));
        let first = save(json!({ "step": 1 }));
        let again = save(json!({ "step": 1 }));
        assert_eq!(
            (&again["sessionId"], &again["status"]),
            (&first["sessionId"], &"SKIPPED_UNCHANGED".into())
        );
        assert_ne!(save(json!({ "step": 2 }))["sessionId"], first["sessionId"]);
        let empty = save(json!({}));
        assert_eq!(save(json!({ "_currentLoop": 1 }))["sessionId"], empty["sessionId"]);
        for odd in [json!({ "workflowId": 7, "s": 1 }), json!({ "workflowId": " ", "s": 2 })] {
            assert_eq!(stage.workflow(save(odd)["sessionId"].as_str().unwrap()).name, None);
        }
    }
}

#[test]
fn lists_are_paged_by_limit_and_offset() {
    for stage in Stage::each_with(default_settings) {
        let mut saved: Vec<String> = (0..25).map(|n| id(&stage.save("w", &json!({ "n": n })))).collect();
        saved.reverse();
        let list = |more: Value| {
            let mut params = json!({ "sessionId": "w" });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let listed = ok(&stage.call("checkpoint.list", params));
            listed["checkpoints"].as_array().unwrap().iter().map(id).collect::<Vec<_>>()
        };
        assert_eq!(list(json!({})), saved[..20]);
        assert_eq!(list(json!({ "limit": 100 })), saved);
        assert_eq!(list(json!({ "limit": 1 })), saved[..1]);
        assert_eq!(list(json!({ "limit": 10, "offset": 20 })), saved[20..]);
        assert_eq!(list(json!({ "limit": null, "offset": null })), saved[..20]);
        assert_eq!(list(json!({ "offset": 25 })), [""; 0]);
        assert_eq!(list(json!({ "offset": 4_294_967_295_u32 })), [""; 0]);
        for wrong in [
            json!({ "limit": 0 }),
            json!({ "limit": -1 }),
            json!({ "limit": 101 }),
            json!({ "offset": -1 }),
            json!({ "limit": 1.5 }),
            json!({ "limit": "ten" }),
            json!({ "offset": 4_294_967_296_u64 }),
            json!({ "page": 1 }),
        ] {
            let mut params = json!({ "sessionId": "w" });
            params.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
            refused(&stage.call("checkpoint.list", params), "invalid_request");
            refused(&stage.call("checkpoint.workflows", wrong), "invalid_request");
        }
    }
}

#[test]
fn workflows_are_listed_latest_saved_first() {
    for stage in Stage::each_with(default_settings) {
        for (since, id, repo) in [(1, "a", "o/r"), (2, "b", "o/q"), (3, "c", "o/r")] {
            let params = json!({ "sessionId": id, "context": { "workflowId": "auth" }, "repo": repo });
            ok(&stage.at(since * MINUTE, "checkpoint.save", params));
        }
        ok(&stage.at(4 * MINUTE, "checkpoint.save", json!({ "sessionId": "a", "context": { "n": 1 } })));
        ok(&stage.call("checkpoint.mark_critical", json!({ "sessionId": "a", "contextKey": "n" })));
        let list = |params: Value| ok(&stage.call("checkpoint.workflows", params))["workflows"].clone();
        let ids = |listed: Value| -> Vec<String> {
            listed
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["sessionId"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(ids(list(json!({}))), ["a", "c", "b"]);
        assert_eq!(ids(list(json!({ "repo": "o/r" }))), ["a", "c"]);
        assert_eq!(ids(list(json!({ "name": "auth", "limit": 1, "offset": 1 }))), ["c"]);
        assert_eq!(ids(list(json!({ "name": "billing" }))), [""; 0]);
        assert_eq!(ids(list(json!({ "venture": "v" }))), [""; 0]);
        let at = |minutes: u32| NOW.plus(minutes * MINUTE).to_string();
        let expected = json!({
            "sessionId": "a", "name": "auth", "venture": "local", "repo": "o/r", "createdAt": at(1),
            "lastSavedAt": at(4), "lastAccessedAt": at(4), "checkpointCount": 2,
            "storedBytes": r#"{"workflowId":"auth"}"#.len() + r#"{"n":1}"#.len(), "criticalKeys": ["n"],
        });
        assert_eq!(list(json!({}))[0], expected);
    }
}

#[test]
fn unknown_ids_are_not_found_and_invalid_ids_are_rejected() {
    for stage in Stage::each_with(default_settings) {
        stage.save("w", &json!({ "a": 1 }));
        for reader in ["checkpoint.load", "checkpoint.explain"] {
            for unknown in [UNKNOWN, "ckpt_1", "anything", "cp-2024", &"x".repeat(128)] {
                let body =
                    refused(&stage.call(reader, json!({ "checkpointId": unknown })), "checkpoint_not_found");
                assert_eq!(body["details"]["checkpointId"], unknown);
                assert!(body["hint"].as_str().unwrap().contains("checkpoint list"), "{body}");
            }
            let body = refused(&stage.call(reader, json!({ "sessionId": "other" })), "session_not_found");
            assert_eq!(body["details"]["sessionId"], "other");
            let both = json!({ "checkpointId": UNKNOWN, "sessionId": "w" });
            refused(&stage.call(reader, both), "invalid_request");
            refused(&stage.call(reader, json!({})), "invalid_request");
            for wrong in ["", "../x", "a/b", "%2e%2e", "a b", "a.b", "é", &"x".repeat(129)] {
                refused(&stage.call(reader, json!({ "checkpointId": wrong })), "invalid_request");
                refused(&stage.call(reader, json!({ "sessionId": wrong })), "invalid_request");
            }
        }
        refused(&stage.call("checkpoint.delete", json!({ "checkpointId": UNKNOWN })), "checkpoint_not_found");
        refused(&stage.call("checkpoint.delete", json!({})), "invalid_request");
        refused(&stage.call("checkpoint.list", json!({ "sessionId": "other" })), "session_not_found");
        refused(&stage.call("checkpoint.list", json!({})), "invalid_request");
        let mark = json!({ "sessionId": "other", "contextKey": "a" });
        refused(&stage.call("checkpoint.mark_critical", mark), "session_not_found");
        refused(&stage.call("checkpoint.diff", json!({ "sessionId": "other" })), "session_not_found");
        let saved = stage.ids("w")[0].clone();
        refused(
            &stage.call("checkpoint.diff", json!({ "from": saved, "to": UNKNOWN })),
            "checkpoint_not_found",
        );
        for wrong in [
            json!({}),
            json!({ "from": saved }),
            json!({ "to": saved }),
            json!({ "from": saved, "to": saved, "sessionId": "w" }),
            json!({ "from": saved, "sessionId": "w" }),
        ] {
            refused(&stage.call("checkpoint.diff", wrong), "invalid_request");
        }
    }
}

#[test]
fn invalid_saves_are_rejected_with_the_field_name() {
    for stage in Stage::each_with(default_settings) {
        let cases = [
            (json!({}), "context"),
            (json!({ "context": null }), "context"),
            (json!({ "context": [1] }), "context"),
            (json!({ "context": "text" }), "context"),
            (json!({ "context": { "a": { "b": [9_007_199_254_740_993_u64] } } }), "a.b[0]"),
            (json!({ "context": {}, "sessionId": "a/b" }), "sessionId"),
            (json!({ "context": {}, "sessionId": 7 }), "sessionId"),
            (json!({ "context": {}, "metadata": { "title": "x" } }), "title"),
            (json!({ "context": {}, "metadata": { "tags": "x" } }), "metadata.tags"),
            (json!({ "context": {}, "metadata": { "tags": vec!["t"; 33] } }), "metadata.tags"),
            (json!({ "context": {}, "metadata": { "name": "" } }), "metadata.name"),
            (json!({ "context": {}, "force": "yes" }), "force"),
            (json!({ "context": {}, "session": "w" }), "session"),
            (json!({ "context": {}, "agentSessionId": "w" }), "agentSessionId"),
        ];
        for (params, named) in cases {
            let body = refused(&stage.call("checkpoint.save", params.clone()), "invalid_request");
            assert!(body.to_string().contains(named), "{params}: {body}");
        }
        let listed = ok(&stage.call("checkpoint.workflows", json!({})));
        assert_eq!(listed["workflows"], json!([]), "nothing was stored");
    }
}

#[test]
fn credential_accesses_only_checkpoints_of_its_ventures() {
    for stage in Stage::each_with(default_settings) {
        let theirs = id(&ok(&stage.call(
            "checkpoint.save",
            json!({ "sessionId": "w", "context": { "a": 1 }, "venture": "theirs" }),
        )));
        let call = |name: &str, params: Value| {
            let mut call = stage.envelope(None);
            call.actor.ventures = VentureScope::Only(vec!["mine".parse().unwrap()]);
            stage.app.call_blocking(operation(name), call, params)
        };
        let mine = json!({ "sessionId": "w", "context": { "a": 2 }, "venture": "mine" });
        let mine = id(&ok(&call("checkpoint.save", mine)));
        let load = |checkpoint: &str| call("checkpoint.load", json!({ "checkpointId": checkpoint }));
        assert_eq!(ok(&load(&mine))["context"], json!({ "a": 2 }));
        for (name, params) in [
            ("checkpoint.load", json!({ "checkpointId": theirs })),
            ("checkpoint.explain", json!({ "checkpointId": theirs })),
            ("checkpoint.delete", json!({ "checkpointId": theirs })),
            ("checkpoint.diff", json!({ "from": mine, "to": theirs })),
        ] {
            refused(&call(name, params), "checkpoint_not_found");
        }
        for (name, params) in [
            ("checkpoint.save", json!({ "sessionId": "w", "context": {}, "venture": "theirs" })),
            ("checkpoint.load", json!({ "sessionId": "w", "venture": "theirs" })),
            ("checkpoint.list", json!({ "sessionId": "w", "venture": "theirs" })),
            ("checkpoint.mark_critical", json!({ "sessionId": "w", "contextKey": "a", "venture": "theirs" })),
            ("checkpoint.diff", json!({ "sessionId": "w", "venture": "theirs" })),
            ("checkpoint.workflows", json!({ "venture": "theirs" })),
        ] {
            refused(&call(name, params), "forbidden");
        }
        assert_eq!(stage.load(&theirs), json!({ "a": 1 }));
        assert_eq!(
            ok(&call("checkpoint.list", json!({ "sessionId": "w", "venture": "mine" })))["checkpoints"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
    }
}
