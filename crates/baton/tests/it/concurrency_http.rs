//! Concurrent agents over HTTP: one identity is one session, and an ended session is never revived.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::served::{Served, expect, id, who, with};

const CALLS: usize = 1_000;
const CALLERS: usize = 64;

/// Sends `CALLS` start requests from `CALLERS` threads and returns the answers.
fn start_at_once(served: &Served, body: &Value) -> Vec<Value> {
    let (next, barrier) = (AtomicUsize::new(0), Barrier::new(CALLERS));
    let (next, barrier) = (&next, &barrier);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                scope.spawn(move || {
                    barrier.wait();
                    let mut answers = Vec::new();
                    while next.fetch_add(1, Ordering::Relaxed) < CALLS {
                        answers.push(expect(&served.post("/sod", body), 200));
                    }
                    answers
                })
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    })
}

fn assert_one_identity_is_one_session(served: &Served) {
    for body in
        [who("a"), with(who("a"), json!({ "track": 0 })), with(who("a"), json!({ "client_session_id": "c" }))]
    {
        let answers = start_at_once(served, &body);
        assert_eq!(answers.len(), CALLS);
        let ids: BTreeSet<String> = answers.iter().map(|answer| id(&answer["session_id"])).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
        let created = answers.iter().filter(|answer| answer["status"] == "created").count();
        assert_eq!(created, 1, "all other calls must resume the session");
        let active = served.found("/active?agent=a");
        let own = |session: &&Value| {
            session["track"] == body["track"] && session["client_session_id"] == body["client_session_id"]
        };
        let found: Vec<&Value> = active["sessions"].as_array().unwrap().iter().filter(own).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(ids, [id(&found[0]["id"])].into());
    }
    assert_eq!(served.found("/active?agent=a")["sessions"].as_array().unwrap().len(), 3);
}

#[test]
fn concurrent_starts_of_one_identity_create_one_session_on_sqlite() {
    assert_one_identity_is_one_session(&Served::sqlite());
}

#[test]
fn concurrent_starts_of_one_identity_create_one_session_on_postgres() {
    if let Some(served) = Served::postgres() {
        assert_one_identity_is_one_session(&served);
    }
}

/// Ends a session during concurrent starts, updates and heartbeats: acknowledged updates and the end must be kept.
fn assert_end_is_final(served: &Served) {
    for round in 0..60 {
        let start = with(who("a"), json!({ "client_session_id": format!("chat-{round}") }));
        let session_id = id(&served.ok("/sod", &start)["session_id"]);
        let barrier = Barrier::new(4);
        let updated = std::thread::scope(|scope| {
            let resume = || {
                barrier.wait();
                for _ in 0..5 {
                    served.ok("/sod", &start);
                }
            };
            scope.spawn(resume);
            scope.spawn(resume);
            let update = scope.spawn(|| {
                barrier.wait();
                let patch =
                    |number: i32| json!({ "session_id": session_id, "meta": { number.to_string(): true } });
                let taken = |number: &i32| {
                    served.keyed("/update", &format!("{round}-{number}"), &patch(*number)).status == 200
                };
                (0..5).take_while(taken).collect::<Vec<i32>>()
            });
            barrier.wait();
            for _ in 0..2 {
                served.post("/heartbeat", &json!({ "session_id": session_id }));
            }
            served.ok("/eod", &json!({ "session_id": session_id, "summary": "over" }));
            update.join().unwrap()
        });
        let shown = served.found(&format!("/sessions/{session_id}"))["session"].clone();
        assert_eq!(
            (&shown["status"], &shown["end_reason"]),
            (&"ended".into(), &"manual".into()),
            "round {round}"
        );
        for number in updated {
            assert_eq!(shown["meta"][number.to_string()], true, "round {round}: update {number} is lost");
        }
    }
}

#[test]
fn concurrent_calls_do_not_revive_an_ended_session_on_sqlite() {
    assert_end_is_final(&Served::sqlite());
}

#[test]
fn concurrent_calls_do_not_revive_an_ended_session_on_postgres() {
    if let Some(served) = Served::postgres() {
        assert_end_is_final(&served);
    }
}

#[test]
fn concurrent_acknowledgements_succeed_once() {
    for served in Served::each() {
        let (_, handoff_id) = served.relay(&who("a"), &json!({ "summary": "yours" }));
        let path = format!("/handoffs/{handoff_id}/ack");
        let barrier = Barrier::new(16);
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let (served, barrier, path) = (&served, &barrier, &path);
            let takers: Vec<_> = (0..16)
                .map(|number| {
                    scope.spawn(move || {
                        barrier.wait();
                        served.post(path, &json!({ "agent": format!("qa-{number}") })).status
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
    }
}
