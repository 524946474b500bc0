//! The request log: every call is recorded, but never its content.

use std::pin::Pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};

use baton_app::{App, Call, Face, PageRequest, RefusedCall, RequestLog};
use baton_core::{Access, Actor, ActorKeyId, ErrorCode, Fault, RequestRecord, VentureScope};
use baton_store::{Durability, StoreError};
use baton_testkit::contract::read;
use serde_json::{Value, json};

use crate::observing::{holder, report};
use crate::stage::{MINUTE, NOW, Stage, ok, operation, session_id, who};

fn outcomes(records: &[RequestRecord]) -> Vec<(&str, u16, bool)> {
    records
        .iter()
        .map(|record| (record.endpoint.as_str(), record.status_code, record.idempotency_hit))
        .collect()
}

#[test]
fn every_call_is_logged_however_it_ends() {
    for stage in Stage::each() {
        let id = session_id(&ok(&stage.call("session.start", who("a"))));
        stage.call("session.start", json!({ "agent": "a b", "venture": "v" }));
        stage.call("session.update", json!({ "session_id": id }));
        stage.call("session.heartbeat", json!({ "session_id": "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ" }));
        for _ in 0..2 {
            stage.keyed("k", "session.update", json!({ "session_id": id, "branch": "b" }));
        }
        stage.keyed("k", "session.update", json!({ "session_id": id, "branch": "c" }));
        stage.call("session.list", json!({ "venture": "v" }));
        let mut reading = stage.envelope(None);
        reading.actor.access = Access::Read;
        stage.app.call_blocking(operation("session.start"), reading, who("a"));
        let nowhere = RefusedCall {
            face: Face::Http { method: "GET".into(), path: "/nowhere".into() },
            correlation_id: "corr_x".parse().unwrap(),
            actor_key_id: None,
            peer: None,
        };
        stage.app.refuse(nowhere, &Fault::new(ErrorCode::Unauthorized, "no credential was sent"));
        let records = stage.logged();
        // Calls with an effect are recorded in its transaction, the others when the process ends.
        let expected = [
            ("session.start", 200, false),
            ("session.update", 200, false),
            ("session.update", 200, true),
            ("session.start", 400, false),
            ("session.update", 400, false),
            ("session.heartbeat", 404, false),
            ("session.update", 422, false),
            ("session.list", 200, false),
            ("session.start", 403, false),
            ("/nowhere", 401, false),
        ];
        assert_eq!(outcomes(&records), expected);
        for record in &records {
            assert_eq!(record.error_message.is_some(), record.status_code != 200, "{record:?}");
        }
        assert_eq!((&records[0].method, &records[9].method), (&"MCP".to_owned(), &"GET".to_owned()));
        assert_eq!(records[0].actor_key_id, Some(ActorKeyId::of("key")));
        assert_eq!(records[9].actor_key_id, None);
        assert_eq!(records[2].idempotency_key.as_deref(), Some("k"));
        assert_eq!(records[9].error_message.as_deref(), Some("unauthorized: no credential was sent"));
    }
}

#[test]
fn log_contains_caller_and_names_but_no_content() {
    for stage in Stage::each() {
        let start = json!({
            "agent": "a", "venture": "v", "repo": "o/r", "track": 0, "issue_number": 7, "branch": "sent-branch",
            "meta": { "sent-key": "sent-value" },
        });
        let id = session_id(&ok(&stage.call("session.start", start)));
        stage.clock.set(NOW.plus(MINUTE));
        ok(&stage.call("session.end", json!({ "session_id": id, "summary": "sent-summary" })));
        stage.call("session.end", json!({ "session_id": id, "summary": "sent-other" }));
        let bad = json!({ "session_id": id, "handoff": { "summary": "s", "to_agent": "sent to", "blockers": "sent-b" } });
        stage.call("handoff.create", bad);
        let records = stage.logged();
        let first = &records[0];
        assert_eq!((first.agent.as_deref(), first.venture.as_deref()), (Some("a"), Some("v")));
        assert_eq!((first.repo.as_deref(), first.track, first.issue_number), (Some("o/r"), Some(0), Some(7)));
        assert_eq!((first.timestamp, records[1].timestamp), (NOW, NOW.plus(MINUTE)));
        let text = format!("{records:?}");
        assert!(!text.contains("sent"), "{text}");
    }
}

#[test]
fn call_whose_client_disconnected_is_completed_and_logged() {
    let stage = Stage::sqlite();
    // The writer is blocked, so that the client disconnects before the call is answered.
    let (release, held) = channel::<()>();
    let holding = stage.store.write::<_, StoreError, _>(Durability::Full, move |_| {
        let _ = held.recv();
        Ok(())
    });
    let mut call = Box::pin(stage.app.call(operation("session.start"), stage.envelope(None), who("a")));
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(Pin::as_mut(&mut call).poll(&mut context), Poll::Pending));
    drop(call);
    release.send(()).unwrap();
    holding.wait().unwrap();
    // Writes run in order: when this one is done, so is the call.
    stage.store.write::<_, StoreError, _>(Durability::Full, |_| Ok(())).wait().unwrap();
    let listed = ok(&stage.call("session.list", json!({ "venture": "v" })));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "the running call is completed");
    let records = stage.logged();
    assert_eq!(outcomes(&records), [("session.start", 499, false), ("session.list", 200, false)]);
}

#[test]
fn failed_reports_are_logged_with_and_without_a_key() {
    for stage in Stage::each() {
        for key in [None, Some("k"), Some("k")] {
            let call = Call { actor: holder(Access::Write, &["w"]), ..stage.envelope(key) };
            let reply = stage.app.call_blocking(operation("hook.report"), call, report("stop", json!({})));
            assert_eq!(reply.status, 403, "{}", reply.body);
        }
        stage.keyed("other", "hook.report", report("stop", json!({})));
        let logged = ("hook.report", 403, false);
        assert_eq!(outcomes(&stage.logged()), [logged, logged, ("hook.report", 403, true)]);
    }
}

/// Returns an application whose log is written by a thread.
fn with_background_log(stage: &Stage, max_records: u64) -> App {
    let log = RequestLog::in_background(stage.store.clone(), max_records).unwrap();
    App::new(
        stage.store.clone(),
        stage.app.settings().clone(),
        stage.clock.clone(),
        crate::stage::FixedEntropy::default(),
        log,
    )
}

#[test]
fn log_keeps_the_newest_records_up_to_its_limit() {
    for stage in Stage::each() {
        let app = with_background_log(&stage, 100);
        for number in 0..3_000 {
            let mut call = stage.envelope(None);
            call.correlation_id = format!("call-{number}").parse().unwrap();
            app.call_blocking(operation("session.list"), call, json!({}));
        }
        drop(app);
        let records = read(&stage.store, |tx| tx.requests(2_000));
        assert_eq!(records.len(), 100);
        assert_eq!(records[0].correlation_id.as_str(), "call-2999");
        assert_eq!(records[99].correlation_id.as_str(), "call-2900");
    }
}

#[test]
fn calls_without_a_credential_create_at_most_two_records_a_minute() {
    for stage in Stage::each() {
        let app = with_background_log(&stage, 10_000);
        let fault = Fault::new(ErrorCode::Unauthorized, "the credential is unknown");
        for _ in 0..20_000 {
            let refused = RefusedCall {
                face: Face::Http { method: "POST".into(), path: "/sod".into() },
                correlation_id: "c".parse().unwrap(),
                actor_key_id: None,
                peer: Some([192, 0, 2, 1].into()),
            };
            assert_eq!(app.refuse(refused, &fault).status, 401);
        }
        drop(app);
        let records = read(&stage.store, |tx| tx.requests(100));
        // The interval may end once while the calls are made.
        assert!((2..=4).contains(&records.len()), "{records:?}");
        assert_eq!(records.iter().map(|record| record.request_count).sum::<u32>(), 20_000);
        assert!(
            records[0].error_message.as_ref().unwrap().contains("requests from 192.0.2.1"),
            "{records:?}"
        );
    }
}

#[test]
fn background_log_is_complete_after_it_was_closed() {
    for stage in Stage::each() {
        let app = with_background_log(&stage, 10_000);
        for _ in 0..1_500 {
            let mut call = stage.envelope(None);
            call.actor = Actor::shared("other");
            app.call_blocking(operation("session.list"), call, json!({}));
        }
        let used_by_a_thread = app.clone();
        app.close_request_log();
        let records = read(&stage.store, |tx| tx.requests(2_000));
        assert_eq!(records.len(), 1_500);
        assert!(records.iter().all(|record| record.status_code == 400));
        drop(used_by_a_thread);
    }
}

#[test]
fn records_that_cannot_be_written_are_counted() {
    for stage in Stage::each() {
        let app = with_background_log(&stage, 10_000);
        let sql = "DROP TABLE requests";
        stage.store.place().execute(sql, sql);
        for _ in 0..5 {
            ok(&app.call_blocking(
                operation("session.list"),
                stage.envelope(None),
                json!({ "venture": "v" }),
            ));
        }
        app.close_request_log();
        assert_eq!(app.unlogged_calls(), 5);
    }
}

#[test]
fn secrets_in_names_are_not_logged() {
    const CANARY: &str = "cAnArY7sEcReTcAnArY9";
    for stage in Stage::each() {
        let secret = format!("gh{}_{CANARY}k1L2m3N4o5P6q7R8", "p");
        for name in [secret, format!("<private>{CANARY}</private>")] {
            for field in ["agent", "venture", "repo"] {
                let mut params = who("a");
                params[field] = name.as_str().into();
                params["event"] = "stop".into();
                stage.call("session.start", params.clone());
                stage.call("hook.report", params);
            }
        }
        let records = stage.logged();
        assert_eq!(records.len(), 12);
        assert!(!format!("{records:?}").contains(CANARY), "{records:?}");
    }
}

/// Lists the request log, oldest first.
fn listed(stage: &Stage, params: Value) -> Vec<Value> {
    let mut found = ok(&stage.call("request.list", params))["requests"].as_array().unwrap().clone();
    found.reverse();
    found
}

#[test]
fn every_call_that_names_a_session_is_logged_with_its_names() {
    for stage in Stage::each() {
        let app = with_background_log(&stage, 10_000);
        let call = |name: &str, key: Option<&str>, params: Value| {
            app.call_blocking(operation(name), stage.envelope(key), params)
        };
        let who = json!({ "agent": "claude", "venture": "v", "repo": "o/r", "track": 3 });
        let id = session_id(&ok(&call("session.start", None, who.clone())));
        let handoff = json!({ "session_id": id, "handoff": { "summary": "s" } });
        let left = ok(&call("handoff.create", None, handoff));
        let update = json!({ "session_id": id, "branch": "b" });
        let saved = json!({ "context": { "goal": "g" }, "agentSessionId": id, "venture": "v" });
        let hook = json!({ "event": "stop", "agent": "claude", "venture": "v", "repo": "o/r", "track": 3 });
        let expected = [
            ("session.heartbeat", 200, call("session.heartbeat", None, json!({ "session_id": id }))),
            ("session.update", 200, call("session.update", Some("k"), update.clone())),
            ("session.update", 200, call("session.update", Some("k"), update.clone())),
            ("session.update", 400, call("session.update", None, update)),
            ("session.show", 200, call("session.show", None, json!({ "session_id": id }))),
            ("checkpoint.save", 200, call("checkpoint.save", None, saved)),
            ("observation.list", 200, call("observation.list", None, json!({ "session_id": id }))),
            ("handoff.show", 200, call("handoff.show", None, json!({ "handoff_id": left["handoff_id"] }))),
            ("hook.report", 200, call("hook.report", None, hook)),
            ("session.start", 200, call("session.start", None, who)),
            ("session.end", 200, call("session.end", None, json!({ "session_id": id, "summary": "s" }))),
            ("session.heartbeat", 409, call("session.heartbeat", None, json!({ "session_id": id }))),
        ];
        for (name, status, reply) in &expected {
            assert_eq!(reply.status, *status, "{name}: {}", reply.body);
        }
        drop(app);
        let found = listed(&stage, json!({ "session_id": id }));
        let endpoints: Vec<_> =
            found.iter().map(|one| (one["endpoint"].as_str().unwrap(), &one["status_code"])).collect();
        let mut called: Vec<_> = vec![("session.start", json!(200)), ("handoff.create", json!(200))];
        called.extend(expected.iter().map(|(name, status, _)| (*name, json!(status))));
        assert_eq!(endpoints, called.iter().map(|(name, status)| (*name, status)).collect::<Vec<_>>());
        for one in found {
            let names = [&one["session_id"], &one["agent"], &one["venture"], &one["repo"], &one["track"]];
            assert_eq!(json!(names), json!([id, "claude", "v", "o/r", 3]), "{one}");
        }
    }
}

#[test]
fn scoped_tokens_read_the_requests_of_their_ventures_only() {
    for stage in Stage::each() {
        let app = with_background_log(&stage, 10_000);
        for venture in ["a", "b"] {
            let who = json!({ "agent": "claude", "venture": venture, "repo": "o/r" });
            let started = ok(&app.call_blocking(operation("session.start"), stage.envelope(None), who));
            let beat = json!({ "session_id": started["session_id"] });
            ok(&app.call_blocking(operation("session.heartbeat"), stage.envelope(None), beat));
        }
        app.call_blocking(operation("session.list"), stage.envelope(None), json!({}));
        drop(app);
        let read = |ventures: VentureScope, params: Value| {
            let mut call = stage.envelope(None);
            call.actor = Actor { access: Access::Read, ventures, ..call.actor };
            ok(&stage.app.call_blocking(operation("request.list"), call, params))["requests"].clone()
        };
        let only = |venture: &str| VentureScope::Only(vec![venture.parse().unwrap()]);
        assert_eq!(read(VentureScope::All, json!({})).as_array().unwrap().len(), 5);
        for venture in ["a", "b"] {
            let seen = read(only(venture), json!({}));
            assert_eq!(seen.as_array().unwrap().len(), 2, "{seen}");
            assert!(seen.as_array().unwrap().iter().all(|one| one["venture"] == venture), "{seen}");
        }
        assert_eq!(read(only("c"), json!({})), json!([]));
        let other =
            read(VentureScope::All, json!({ "endpoint": "session.heartbeat" }))[0]["session_id"].clone();
        assert_eq!(
            read(only("a"), json!({ "session_id": other })),
            json!([]),
            "a session of another venture"
        );
    }
}

#[test]
fn repeated_requests_for_service_pages_are_counted() {
    for stage in Stage::each() {
        let app = with_background_log(&stage, 10_000);
        for number in 0..5_000 {
            app.log_page(PageRequest {
                face: Face::Http { method: "GET".into(), path: ["/healthz", "/readyz"][number % 2].into() },
                correlation_id: "c".parse().unwrap(),
                actor_key_id: None,
                peer: Some([192, 0, 2, 1].into()),
                status: 200,
                started_at: NOW,
            });
        }
        drop(app);
        let records = read(&stage.store, |tx| tx.requests(100));
        // Two records for each page; the interval may end once while the calls are made.
        assert!((4..=8).contains(&records.len()), "{records:?}");
        assert_eq!(records.iter().map(|record| record.request_count).sum::<u32>(), 5_000);
        assert!(records.iter().all(|record| record.error_message.is_none() && record.status_code == 200));
    }
}

#[test]
fn reads_of_the_log_do_not_fill_it() {
    for stage in Stage::each() {
        let app = with_background_log(&stage, 10_000);
        for _ in 0..500 {
            ok(&app.call_blocking(operation("request.list"), stage.envelope(None), json!({})));
        }
        let refused =
            app.call_blocking(operation("request.list"), stage.envelope(None), json!({ "limit": 0 }));
        assert_eq!(refused.status, 400);
        drop(app);
        let records = read(&stage.store, |tx| tx.requests(1_000));
        assert!(records.len() <= 6, "{} records", records.len());
        assert_eq!(records.iter().map(|record| record.request_count).sum::<u32>(), 501);
    }
}
