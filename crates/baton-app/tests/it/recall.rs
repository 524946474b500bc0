//! Search, timeline and get: what is found, in which order, and by whom.

use baton_app::recall::{index_all, index_some};
use baton_core::observation::{CompressedObservation, Observation, Provenance};
use baton_core::recall::ItemKind;
use baton_core::{Access, ObservationId, SessionId, Ulid};
use baton_testkit::contract::{read, write};
use serde_json::{Value, json};

use crate::observing::{bash, edit, holder};
use crate::stage::{HOUR, MINUTE, NOW, Stage, ok, refused, session_id, who};

/// Fills a store with a day of work of two chats.
fn work_day(stage: &Stage) {
    let chats = [
        (
            "chat-1",
            "Why does the worker lease expire twice?",
            "src/worker/lease.rs",
            "cargo test lease_expires",
        ),
        ("chat-1", "Rename drainQueue to drain_all", "src/queue.rs", "cargo clippy"),
        ("chat-2", "Make the login page load faster", "web/login.ts", "npm run build"),
        ("chat-2", "数据库连接超时的原因是什么", "src/db/pool.rs", "psql -c 'select 1'"),
    ];
    for (minute, (chat, prompt, file, command)) in (1..).zip(chats) {
        stage.clock.set(NOW.plus(minute * MINUTE));
        let of_chat = |mut fields: Value| {
            fields["session_id"] = chat.into();
            fields
        };
        ok(&stage.hook("user-prompt-submit", of_chat(json!({ "prompt": prompt }))));
        ok(&stage.hook("post-tool-use", of_chat(edit(file))));
        ok(&stage.hook("post-tool-use", of_chat(bash(command, "ok"))));
        let closing = format!("Done: {prompt} is answered in {file}.");
        ok(&stage.hook("stop", of_chat(json!({ "last_assistant_message": closing }))));
    }
    assert_eq!(stage.work(), 2 * chats.len());
    stage.clock.set(NOW.plus(HOUR));
}

fn search(stage: &Stage, params: Value) -> Vec<Value> {
    ok(&stage.call("recall.search", params))["results"].as_array().unwrap().clone()
}

fn titles(results: &[Value]) -> Vec<&str> {
    results.iter().map(|result| result["title"].as_str().unwrap()).collect()
}

#[test]
fn finds_turns_and_observations_by_words_identifiers_and_files() {
    for stage in Stage::each() {
        work_day(&stage);
        for (query, expected) in [
            ("lease expiring", "lease"),
            ("drain_queue", "drainQueue"),
            ("drain queue", "drainQueue"),
            ("DrainQueue", "drainQueue"),
            ("login.ts", "login.ts"),
            ("数据库", "数据库连接"),
            ("src/db", "pool.rs"),
        ] {
            let found = search(&stage, json!({ "q": query }));
            let all = titles(&found).join("\n");
            assert!(all.contains(expected), "{query}: {all}");
            for result in &found {
                assert!(!result["why"].as_str().unwrap().is_empty(), "{result}");
                assert!(result["tokens"].as_u64().unwrap() > 0, "{result}");
            }
        }
    }
}

#[test]
fn both_databases_return_the_same_first_ten() {
    let queries = [
        "lease",
        "drain queue",
        "why does the login page load slowly",
        "src/worker/lease.rs",
        "数据库连接",
        "test",
        "cargo",
        "\"login page\" faster",
        "today",
        "claude what did you rename",
        "done",
        "ok 1 2 3",
    ];
    let results: Vec<Vec<Value>> = Stage::each()
        .map(|stage| {
            work_day(&stage);
            let all = queries.iter().map(|query| json!(search(&stage, json!({ "q": query }))));
            let all: Vec<Value> = all.collect();
            assert!(all.iter().any(|results| !results.as_array().unwrap().is_empty()));
            all
        })
        .collect();
    for other in &results[1..] {
        for (query, (one, other)) in queries.iter().zip(results[0].iter().zip(other)) {
            assert_eq!(one, other, "{query}");
        }
    }
}

#[test]
fn every_kind_of_item_is_found_and_read_in_full() {
    for stage in Stage::each() {
        work_day(&stage);
        let session = session_id(&ok(&stage.call("session.start", who("codex-1"))));
        ok(&stage.call(
            "handoff.create",
            json!({ "session_id": session, "handoff": { "summary": "zebra migration is half done" } }),
        ));
        ok(&stage.call(
            "checkpoint.save",
            json!({ "context": { "goal": "x" }, "metadata": { "name": "zebra checkpoint" }, "venture": "v" }),
        ));
        let found = search(&stage, json!({ "q": "zebra" }));
        let kinds: Vec<&str> = found.iter().map(|result| result["kind"].as_str().unwrap()).collect();
        assert!(kinds.contains(&"handoff") && kinds.contains(&"checkpoint"), "{kinds:?}");
        let turn = &search(&stage, json!({ "q": "lease", "kind": "turn" }))[0];
        assert!(turn["files"].as_array().unwrap().contains(&"src/worker/lease.rs".into()), "{turn}");
        for result in found.iter().chain([turn]) {
            let got = ok(&stage.call("recall.get", json!({ "ids": result["id"] })));
            assert_eq!(got["items"][0]["title"], result["title"]);
            assert!(!got["items"][0]["text"].as_str().unwrap().is_empty());
        }
    }
}

#[test]
fn items_of_overlapping_periods_are_found_once() {
    for stage in Stage::each() {
        work_day(&stage);
        // The start is a Saturday.
        stage.clock.set(NOW.plus(24 * HOUR));
        let yesterday = search(&stage, json!({ "q": "yesterday", "limit": 100 }));
        let both = search(&stage, json!({ "q": "yesterday this week", "limit": 100 }));
        assert!(!yesterday.is_empty());
        assert_eq!(both.len(), yesterday.len(), "{:?}", titles(&both));
    }
}

#[test]
fn tasks_are_read_by_the_id_that_search_and_the_context_bundle_show() {
    for stage in Stage::each() {
        let id = "v/TASK-7@build-3:/srv/web shop";
        ok(&stage.call(
            "task.record",
            json!({ "task_id": "TASK-7", "host": "build-3", "checkout": "/srv/web shop", "venture": "v",
                "repo": "o/r", "title": "Faster zebras", "status": "waiting" }),
        ));
        assert_eq!(search(&stage, json!({ "q": "zebras" }))[0]["id"], id);
        let bundle = ok(&stage.call("context.read", json!({ "repo": "o/r", "venture": "v" })));
        let bundle = bundle["context"].as_str().unwrap();
        assert!(bundle.contains(&format!("[{id}]")), "{bundle}");
        let session = session_id(&ok(&stage.call("session.start", who("codex-1"))));
        let got = ok(&stage.call("recall.get", json!({ "ids": format!("{session} turn_9, {id}") })));
        assert_eq!(got["items"][1]["title"], "TASK-7 Faster zebras", "{got}");
        assert_eq!(got["missing"], json!(["turn_9"]));
    }
}

#[test]
fn filters_limit_the_results() {
    for stage in Stage::each() {
        work_day(&stage);
        let all = search(&stage, json!({ "q": "lease queue login", "limit": 100 }));
        assert!(all.len() > 4, "{all:?}");
        let count = |params: Value| {
            let mut params = params;
            params["q"] = "lease queue login".into();
            params["limit"] = 100.into();
            search(&stage, params).len()
        };
        assert_eq!(count(json!({ "repo": "o/r" })), all.len());
        assert_eq!(count(json!({ "repo": "o/other" })), 0);
        assert_eq!(count(json!({ "venture": "w" })), 0);
        assert_eq!(count(json!({ "agent": "nobody" })), 0);
        assert_eq!(count(json!({ "branch": "nowhere" })), 0);
        assert_eq!(count(json!({ "session": SessionId::new(Ulid::from(7)) })), 0);
        assert_eq!(count(json!({ "since": "30m" })), 0);
        assert_eq!(count(json!({ "until": "30m" })), all.len());
        assert!(count(json!({ "file": "lease.rs" })) < all.len());
        assert!(count(json!({ "file": "lease.rs" })) > 0);
        assert_eq!(count(json!({ "file": "ease.rs" })), 0);
        let turns = count(json!({ "kind": "turn" }));
        assert!(0 < turns && turns < all.len());
    }
}

#[test]
fn other_items_of_a_matching_turn_are_filtered_by_agent_and_branch() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Why does the lease expire twice?" }));
        let session = stage.only_session();
        let branch = |name: &str| {
            let update = json!({ "session_id": session.id, "branch": name });
            ok(&stage.keyed(name, "session.update", update))
        };
        let found = |params: Value| {
            let found = search(&stage, params);
            let titles = titles(&found).join("\n");
            ["lease", "clock", "timer"].map(|word| titles.contains(word))
        };
        branch("main");
        assert_eq!(found(json!({ "q": "lease" })), [true, false, false]);
        let note = json!({ "session_id": session.id, "text": "the clock is late", "agent": "codex-1" });
        ok(&stage.call("note.create", note));
        assert_eq!(found(json!({ "q": "lease", "branch": "main" })), [true, true, false]);
        branch("fix");
        ok(&stage.call("note.create", json!({ "session_id": session.id, "text": "the timer is late" })));
        assert_eq!(found(json!({ "q": "lease" })), [true, true, true]);
        assert_eq!(found(json!({ "q": "lease", "branch": "main" })), [true, true, false]);
        let agent = session.tuple.agent.as_str();
        assert_eq!(found(json!({ "q": "lease", "agent": agent })), [true, false, true]);
    }
}

#[test]
fn token_sees_nothing_of_other_ventures() {
    for stage in Stage::each() {
        work_day(&stage);
        let found = search(&stage, json!({ "q": "lease" }));
        let id = found[0]["id"].as_str().unwrap().to_owned();
        let other = holder(Access::Read, &["w"]);
        let call = |name: &str, params: Value| stage.as_holder(&other, name, params);
        assert_eq!(ok(&call("recall.search", json!({ "q": "lease" })))["results"], json!([]));
        assert_eq!(call("recall.search", json!({ "q": "lease", "venture": "v" })).status, 403);
        refused(&call("recall.get", json!({ "ids": id })), "not_found");
        refused(&call("recall.timeline", json!({ "id": id })), "not_found");
        let own = holder(Access::Read, &["v"]);
        let seen = ok(&stage.as_holder(&own, "recall.search", json!({ "q": "lease" })));
        assert_eq!(seen["results"].as_array().unwrap().len(), found.len());
    }
}

#[test]
fn any_text_is_a_valid_query() {
    for stage in Stage::each() {
        work_day(&stage);
        let long = "lease ".repeat(17_000);
        for query in [
            "",
            " ",
            "what is the",
            "AND",
            "lease OR",
            "\"lease",
            "lease*",
            "-lease",
            "(lease",
            "NEAR(a b)",
            "title:lease",
            "'; DROP TABLE recall_documents; --",
            "%_\\",
            "🚀🚀",
            "\u{202e}abc",
            "שלום עולם",
            "a:*",
            "lease & !queue | <->",
            long.as_str(),
        ] {
            let reply = stage.call("recall.search", json!({ "q": query }));
            assert_eq!(reply.status, 200, "{:.60}: {}", query, reply.body);
        }
        assert!(!search(&stage, json!({ "q": long })).is_empty());
        assert!(search(&stage, json!({ "q": "what is the" })).is_empty());
        for (params, code) in [
            (json!({ "q": "x", "limit": 0 }), "invalid_request"),
            (json!({ "q": "x", "limit": 1_000 }), "invalid_request"),
            (json!({ "q": "x", "kind": "nothing" }), "invalid_request"),
            (json!({ "q": "x", "session": "nothing" }), "invalid_request"),
            (json!({}), "invalid_request"),
        ] {
            refused(&stage.call("recall.search", params), code);
        }
        refused(&stage.call("recall.get", json!({ "ids": "obs_x,turn_9999" })), "not_found");
        refused(&stage.call("recall.get", json!({ "ids": "" })), "invalid_request");
        refused(&stage.call("recall.timeline", json!({ "id": "turn_9999" })), "not_found");
    }
}

#[test]
fn timeline_lists_items_around_an_item_and_between_two() {
    for stage in Stage::each() {
        work_day(&stage);
        let turns = search(&stage, json!({ "q": "lease drainQueue", "kind": "turn" }));
        let id = |text: &str| {
            let found = turns.iter().find(|turn| turn["title"].as_str().unwrap().contains(text)).unwrap();
            found["id"].clone()
        };
        let listed = |params: Value| -> Vec<Value> {
            ok(&stage.call("recall.timeline", params))["items"].as_array().unwrap().clone()
        };
        let around = listed(json!({ "id": id("drainQueue") }));
        let times: Vec<&str> = around.iter().map(|item| item["created_at"].as_str().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!(around.len(), 6, "two turns with two tool uses each: {around:?}");
        let turns_only = listed(json!({ "id": id("drainQueue"), "kind": "turn" }));
        assert_eq!(turns_only.len(), 2);
        let between = listed(json!({ "id": id("lease"), "to": id("drainQueue") }));
        assert_eq!((&between[0]["id"], &between[between.len() - 1]["id"]), (&id("lease"), &id("drainQueue")));
        let everywhere = listed(json!({ "id": id("drainQueue"), "all_sessions": true, "limit": 100 }));
        assert!(everywhere.len() > around.len());
    }
}

/// Stores messages of a conversation like an import.
fn import(stage: &Stage, session: SessionId, messages: &[&str]) {
    let observations: Vec<Observation> = (1..)
        .zip(messages)
        .map(|(number, message)| Observation {
            id: ObservationId::new(Ulid::from_parts(NOW.as_millis().unsigned_abs(), number)),
            queue_id: -i64::try_from(number).unwrap(),
            session_id: session,
            venture: "v".parse().unwrap(),
            repo: "o/r".parse().unwrap(),
            tool_name: "import".into(),
            tool_use_id: Some(format!("D1:{number}")),
            compressed: CompressedObservation {
                title: (*message).into(),
                summary: (*message).into(),
                ..CompressedObservation::default()
            },
            files: Vec::new(),
            provenance: Provenance::default(),
            raw_bytes: 0,
            captured_at: NOW,
            compressed_at: NOW,
        })
        .collect();
    write(&stage.store, move |tx| tx.insert_observations(&observations).map(|_| ()));
}

#[test]
fn imported_messages_are_found_at_once_with_their_neighbours() {
    for stage in Stage::each() {
        let session = session_id(&ok(&stage.call("session.start", who("import"))));
        import(
            &stage,
            session,
            &[
                "Caroline: How was your weekend?",
                "Melanie: I signed up for a pottery class.",
                "Caroline: Wow, when does it start?",
                "Melanie: On the second of July!",
                "Caroline: Tell me about your camping trip.",
                "Melanie: Caroline, it rained all night.",
            ],
        );
        let found = search(&stage, json!({ "q": "When does the pottery class of Melanie start?" }));
        let ids: Vec<&str> = found.iter().map(|result| result["external_id"].as_str().unwrap()).collect();
        assert!(ids[..4].contains(&"D1:2") && ids[..4].contains(&"D1:4"), "{ids:?}");
        let named = found.iter().find(|result| result["external_id"] == "D1:2").unwrap();
        assert!(named["why"].as_str().unwrap().contains("said by Melanie"), "{named}");
        assert_eq!(ids.first(), Some(&"D1:2"), "{found:?}");
    }
}

#[test]
fn deleted_items_leave_the_index_with_the_item() {
    for stage in Stage::each() {
        let saved = ok(&stage.call(
            "checkpoint.save",
            json!({ "context": { "goal": "x" }, "metadata": { "name": "walrus" }, "venture": "v" }),
        ));
        assert_eq!(search(&stage, json!({ "q": "walrus" })).len(), 1);
        let id = &saved["checkpointId"];
        ok(&stage.call("checkpoint.delete", json!({ "checkpointId": id })));
        assert_eq!(search(&stage, json!({ "q": "walrus" })).len(), 0);
        let problems = write(&stage.store, |tx| tx.index_problems());
        assert!(problems.is_empty(), "{problems:?}");
        let corpus = read(&stage.store, |tx| tx.corpus(&["v".parse().unwrap()], &["walrus"]));
        assert_eq!((corpus.documents, corpus.documents_with("walrus")), (0, 0));
    }
}

#[test]
fn index_that_was_cleared_is_built_again() {
    for stage in Stage::each() {
        work_day(&stage);
        let before = search(&stage, json!({ "q": "lease" }));
        write(&stage.store, |tx| tx.clear_index());
        let indexed = index_all(&stage.store, |_| {}).unwrap();
        assert!(indexed >= 12, "{indexed}");
        assert_eq!(index_some(&stage.store).unwrap(), 0);
        assert_eq!(search(&stage, json!({ "q": "lease" })), before);
    }
}

#[test]
fn missing_and_surplus_documents_are_reported() {
    for stage in Stage::each() {
        work_day(&stage);
        assert!(write(&stage.store, |tx| tx.index_problems()).is_empty());
        let lost = search(&stage, json!({ "q": "lease", "kind": "observation" }))[0]["id"].clone();
        let lost = vec![lost.as_str().unwrap().to_owned()];
        write(&stage.store, move |tx| tx.delete_documents(ItemKind::Observation, &lost));
        let problems = write(&stage.store, |tx| tx.index_problems());
        assert_eq!(problems, ["1 observations are missing from the search index"]);
    }
}
