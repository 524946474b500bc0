//! Active sessions over HTTP: filters, pages, cursors.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::served::{Served, encode, id, refusal, who, with};

fn ids(page: &Value) -> Vec<String> {
    page["sessions"].as_array().unwrap().iter().map(|session| id(&session["id"])).collect()
}

#[test]
fn filters_can_be_combined_and_at_least_one_is_required() {
    for served in Served::each() {
        let start = |body: Value| id(&served.ok("/sod", &body)["session_id"]);
        let first = start(who("a"));
        let zero = start(with(who("a"), json!({ "track": 0 })));
        let one = start(with(who("b"), json!({ "track": 1 })));
        let other_repo = start(with(who("a"), json!({ "repo": "o/r.2" })));
        let other_venture = start(with(who("b"), json!({ "venture": "w" })));
        served.relay(&who("c"), &json!({ "summary": "gone home" }));
        let cases: [(&str, &[&String]); 11] = [
            ("venture=v", &[&other_repo, &one, &zero, &first]),
            ("venture=w", &[&other_venture]),
            ("repo=o/r", &[&other_venture, &one, &zero, &first]),
            ("repo=o%2Fr.2", &[&other_repo]),
            ("agent=a", &[&other_repo, &zero, &first]),
            ("agent=a&repo=o/r", &[&zero, &first]),
            ("venture=v&track=0", &[&zero]),
            ("venture=v&track=1&agent=b", &[&one]),
            ("venture=v&track=7", &[]),
            ("venture=v&track=none", &[&other_repo, &first]),
            ("venture=none", &[]),
        ];
        for (query, expected) in cases {
            let page = served.found(&format!("/active?{query}"));
            assert_eq!(ids(&page).iter().collect::<Vec<_>>(), expected, "{query}, newest first");
            assert_eq!(page["pagination"], json!({ "next_cursor": null }), "{query}");
        }
        let shown = served.found(&format!("/sessions/{first}"));
        let listed = served.found("/active?venture=v&limit=200");
        assert_eq!(listed["sessions"][3], shown["session"], "the list contains all fields of a session");
        for query in ["", "?", "?track=1", "?limit=5", "?venture"] {
            refusal(&served.get(&format!("/active{query}")), 400, "invalid_request");
        }
    }
}

#[test]
fn invalid_limits_cursors_and_queries_return_400_with_the_field() {
    let served = Served::sqlite();
    let (first, second) = (served.start("a"), served.start("b"));
    let page = served.found("/active?venture=v&limit=1");
    assert_eq!(ids(&page), [second.as_str()]);
    let cursor = id(&page["pagination"]["next_cursor"]);
    let rest = served.found(&format!("/active?venture=v&limit=1&cursor={}", encode(&cursor)));
    assert_eq!((ids(&rest), &rest["pagination"]["next_cursor"]), (vec![first], &Value::Null));
    let nines = "9".repeat(30);
    for limit in ["0", "-1", "201", "1.5", "x", "", "1e3", nines.as_str()] {
        let refused =
            refusal(&served.get(&format!("/active?venture=v&limit={limit}")), 400, "invalid_request");
        assert_eq!(refused["details"]["fields"][0]["field"], "limit", "{limit}");
    }
    let longer = format!("{cursor}A");
    let cut = &cursor[..cursor.len() - 1];
    for bad in ["x", "", &longer, cut, "%00", "eyJhIjoxfQ", &nines] {
        let refused =
            refusal(&served.get(&format!("/active?venture=v&cursor={bad}")), 400, "invalid_request");
        assert_eq!(refused["details"]["fields"][0]["field"], "cursor", "{bad}");
    }
    refusal(&served.get(&format!("/handoffs?venture=v&cursor={cursor}")), 400, "invalid_request");
    for query in [
        "venture=v&venture=w",
        "venture=%ff",
        "venture=%0",
        "venture=v&track=x",
        "venture=v&track=None",
        "venture=v&track=",
        "venture=a%00b",
    ] {
        refusal(&served.get(&format!("/active?{query}")), 400, "invalid_request");
    }
}

#[test]
fn pages_neither_skip_nor_repeat_sessions_during_heartbeats() {
    for served in Served::each() {
        let chat = |number: usize| with(who("a"), json!({ "client_session_id": format!("chat-{number}") }));
        let started: Vec<String> =
            (0..250).map(|number| id(&served.ok("/sod", &chat(number))["session_id"])).collect();
        let done = AtomicBool::new(false);
        let pages = std::thread::scope(|scope| {
            for half in started.chunks(125) {
                let (served, done) = (&served, &done);
                scope.spawn(move || {
                    for session_id in half.iter().cycle().take_while(|_| !done.load(Ordering::Relaxed)) {
                        served.ok("/heartbeat", &json!({ "session_id": session_id }));
                    }
                });
            }
            let mut pages = Vec::new();
            let mut query = "/active?venture=v&limit=100".to_owned();
            loop {
                let page = served.found(&query);
                // A session that starts meanwhile is newer than all remaining pages, so it must not appear.
                served.ok("/sod", &chat(1_000 + pages.len()));
                let next = page["pagination"]["next_cursor"].as_str().map(str::to_owned);
                pages.push(ids(&page));
                match next {
                    Some(cursor) => query = format!("/active?venture=v&limit=100&cursor={cursor}"),
                    None => break,
                }
            }
            done.store(true, Ordering::Relaxed);
            pages
        });
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
        let seen: Vec<&String> = pages.iter().flatten().collect();
        let newest_first: Vec<&String> = started.iter().rev().collect();
        assert_eq!(seen, newest_first);
        assert_eq!(ids(&served.found("/active?venture=v")).len(), 100, "the default limit is 100");
        let all = served.found("/active?agent=a&limit=200");
        assert_eq!(ids(&all).iter().collect::<BTreeSet<_>>().len(), 200);
    }
}
