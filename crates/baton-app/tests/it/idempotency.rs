//! Lifetime of idempotency keys.

use serde_json::json;

use crate::stage::{HOUR, MILLISECOND, NOW, Stage, ok, refused, session_id, who};

#[test]
fn key_is_valid_until_it_expires() {
    for stage in Stage::each() {
        let id = session_id(&ok(&stage.call("session.start", who("a"))));
        let leave = |summary: &str| json!({ "session_id": id, "handoff": { "summary": summary } });
        let first = stage.keyed("k", "handoff.create", leave("one"));
        ok(&first);
        stage.clock.set(NOW.plus(HOUR - MILLISECOND));
        let again = stage.keyed("k", "handoff.create", leave("one"));
        assert_eq!((&again.body, again.replayed), (&first.body, true));
        refused(&stage.keyed("k", "handoff.create", leave("two")), "idempotency_mismatch");
        stage.clock.set(NOW.plus(HOUR));
        let anew = stage.keyed("k", "handoff.create", leave("two"));
        assert!(!anew.replayed, "an expired key can be used for another request");
        assert_ne!(ok(&anew)["handoff_id"], ok(&first)["handoff_id"]);
        stage.clock.set(NOW.plus(2 * HOUR - MILLISECOND));
        assert!(
            stage.keyed("k", "handoff.create", leave("two")).replayed,
            "the reused key is valid for another hour"
        );
    }
}

#[test]
fn replayed_error_has_the_same_code_and_status() {
    for stage in Stage::each() {
        let unknown = json!({ "session_id": "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ" });
        let first = stage.keyed("k", "session.heartbeat", unknown.clone());
        let again = stage.keyed("k", "session.heartbeat", unknown);
        assert_eq!((first.status, first.error, &first.body), (again.status, again.error, &again.body));
        assert!(again.replayed && again.error.is_some() && !again.truncated);
    }
}

#[test]
fn a_stored_error_with_an_unknown_code_is_no_success() {
    for stage in Stage::each() {
        let unknown = json!({ "session_id": "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ" });
        let first = stage.keyed("k", "session.heartbeat", unknown.clone());
        assert!(first.error.is_some());
        let sql = "UPDATE idempotency_keys SET response_code = 'of_a_newer_version'";
        stage.store.place().execute(sql, sql);
        refused(&stage.keyed("k", "session.heartbeat", unknown), "internal");
    }
}

#[test]
fn keys_of_reads_are_ignored() {
    for stage in Stage::each() {
        let list = || stage.keyed("k", "session.list", json!({ "venture": "v" }));
        assert_eq!(ok(&list())["sessions"], json!([]));
        ok(&stage.call("session.start", who("a")));
        let again = list();
        assert!(!again.replayed);
        assert_eq!(ok(&again)["sessions"].as_array().unwrap().len(), 1);
    }
}
