//! Access of tokens with limited ventures or read access to reports, observations and the queue.

use baton_core::{Access, SessionStatus};
use baton_testkit::contract::read;
use serde_json::json;

use crate::observing::{bash, edit, holder, report};
use crate::stage::{Stage, ok, refused};

#[test]
fn token_reports_only_in_its_ventures() {
    for stage in Stage::each() {
        let (mine, other) = (holder(Access::Write, &["v"]), holder(Access::Write, &["w", "x"]));
        for event in
            ["session-start", "user-prompt-submit", "post-tool-use", "pre-compact", "stop", "session-end"]
        {
            let mut fields = bash("ls", "a");
            fields["prompt"] = "p".into();
            let reply = stage.as_holder(&other, "hook.report", report(event, fields));
            assert_eq!(reply.status, 403, "{event}: {}", reply.body);
            refused(&reply, "forbidden");
        }
        let without = json!({ "event": "stop", "repo": "o/r" });
        let reply = stage.as_holder(&other, "hook.report", without);
        assert_eq!(reply.status, 403, "no access to the configured venture: {}", reply.body);
        assert!(stage.active().is_empty());
        assert_eq!(stage.queue(), [0; 4]);
        let reply = stage.as_holder(&holder(Access::Read, &["v"]), "hook.report", report("stop", json!({})));
        assert_eq!(reply.status, 403, "{}", reply.body);
        assert!(stage.active().is_empty());
        ok(&stage.as_holder(&mine, "hook.report", report("post-tool-use", bash("ls", "a"))));
        assert_eq!(stage.queue(), [1, 0, 0, 0]);
    }
}

#[test]
fn token_reads_only_its_ventures() {
    for stage in Stage::each() {
        let (mine, other) = (holder(Access::Write, &["v", "x"]), holder(Access::Write, &["w"]));
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        let session = stage.only_session();
        stage.work();
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        let id = stage.observations()[0]["id"].clone();
        let count = |actor, name, list: &str, params| {
            ok(&stage.as_holder(actor, name, params))[list].as_array().unwrap().len()
        };
        assert_eq!(count(&mine, "observation.list", "observations", json!({})), 1);
        assert_eq!(
            count(&mine, "observation.list", "observations", json!({ "venture": "v", "file": "lib.rs" })),
            1
        );
        assert_eq!(count(&mine, "observation.list", "observations", json!({ "venture": "x" })), 0);
        assert_eq!(count(&other, "observation.list", "observations", json!({})), 0);
        let by_session = json!({ "session_id": session.id });
        assert_eq!(count(&other, "observation.list", "observations", by_session), 0);
        assert_eq!(count(&other, "observation.list", "observations", json!({ "file": "lib.rs" })), 0);
        let reply = stage.as_holder(&other, "observation.list", json!({ "venture": "v" }));
        assert_eq!(reply.status, 403, "{}", reply.body);
        for raw in [false, true] {
            let show = json!({ "observation_id": id, "raw": raw });
            assert_eq!(
                ok(&stage.as_holder(&mine, "observation.show", show.clone()))["observation"]["id"],
                id
            );
            let shown = stage.as_holder(&other, "observation.show", show);
            assert_eq!(shown.status, 404, "{}", shown.body);
            refused(&shown, "not_found");
        }
        let raw = json!({ "status": "raw" });
        assert_eq!(count(&mine, "queue.list", "items", raw.clone()), 1);
        assert_eq!(count(&other, "queue.list", "items", raw), 0);
    }
}

#[test]
fn token_summarizes_only_sessions_of_its_ventures() {
    for stage in Stage::each() {
        let (mine, other) = (holder(Access::Write, &["v"]), holder(Access::Write, &["w"]));
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        stage.work();
        let id = stage.only_session().id;
        let summarize = json!({ "session_id": id });
        let reply = stage.as_holder(&other, "session.summarize", summarize.clone());
        assert_eq!(reply.status, 404, "{}", reply.body);
        refused(&reply, "session_not_found");
        assert_eq!(stage.session(id).status, SessionStatus::Active);
        assert_eq!(read(&stage.store, move |tx| tx.summary(id)), None);
        assert_eq!(ok(&stage.as_holder(&mine, "session.summarize", summarize))["observations"], 1);
    }
}

#[test]
fn queue_management_requires_access_to_all_ventures() {
    for stage in Stage::each() {
        let some = holder(Access::Write, &["v"]);
        stage.hooked("post-tool-use", bash("ls", "a"));
        stage.fail_all();
        for (name, params) in [
            ("queue.stats", json!({})),
            ("queue.retry", json!({})),
            ("queue.retry", json!({ "id": 1 })),
            ("queue.purge", json!({ "status": "error" })),
            ("worker.health", json!({})),
        ] {
            let reply = stage.as_holder(&some, name, params);
            assert_eq!(reply.status, 403, "{name}: {}", reply.body);
        }
        assert_eq!(stage.queue(), [0, 0, 0, 1]);
    }
}
