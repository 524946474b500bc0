//! Corrections of memory: rejected, superseded, pinned and forgotten items.

use baton_core::Access;
use baton_testkit::contract::{read, write};
use serde_json::{Value, json};

use crate::observing::{bash, edit, holder, with_model};
use crate::stage::{HOUR, MINUTE, NOW, Stage, ok, refused};

const UNKNOWN_NOTE: &str = "note_01HQXV3NK8ZZZZZZZZZZZZZZZZ";

/// Records a chat: a turn with an edit and a command, and two notes. Returns its session and the notes.
fn chat(stage: &Stage) -> (String, [String; 2]) {
    ok(&stage.hook("user-prompt-submit", json!({ "prompt": "Make the walrus importer fast" })));
    ok(&stage.hook("post-tool-use", edit("src/walrus.rs")));
    ok(&stage.hook("post-tool-use", bash("cargo test walrus_import", "ok")));
    let session = stage.only_session().id.to_string();
    let notes = ["Use walrus cookies: the proxy drops headers", "Use walrus tokens in headers"].map(|text| {
        let params = json!({ "session_id": session, "kind": "decision", "text": text });
        ok(&stage.call("note.create", params))["note"]["id"].as_str().unwrap().to_owned()
    });
    ok(&stage.hook("stop", json!({ "last_assistant_message": "The walrus importer is fast." })));
    assert_eq!(stage.work(), 2);
    (session, notes)
}

fn search(stage: &Stage, query: &str) -> Vec<Value> {
    ok(&stage.call("recall.search", json!({ "q": query, "limit": 100 })))["results"]
        .as_array()
        .unwrap()
        .clone()
}

fn ids(results: &[Value]) -> Vec<&str> {
    results.iter().map(|result| result["id"].as_str().unwrap()).collect()
}

/// Returns the id of the first item of a kind.
fn first_of(stage: &Stage, query: &str, kind: &str) -> String {
    let found = ok(&stage.call("recall.search", json!({ "q": query, "kind": kind })));
    found["results"][0]["id"].as_str().unwrap().to_owned()
}

fn context(stage: &Stage) -> String {
    let params = json!({ "repo": "o/r", "venture": "v", "prompt": "walrus cookies or tokens" });
    ok(&stage.call("context.read", params))["context"].as_str().unwrap().to_owned()
}

fn end(stage: &Stage, session: &str) {
    ok(&stage.call("session.summarize", json!({ "session_id": session, "close": false })));
    ok(&stage.hook("session-end", json!({})));
    stage.clock.set(NOW.plus(HOUR));
}

#[test]
fn rejected_items_are_not_returned_until_they_are_restored() {
    for stage in Stage::each() {
        let (session, [right, wrong]) = chat(&stage);
        end(&stage, &session);
        assert!(ids(&search(&stage, "walrus tokens")).contains(&wrong.as_str()));
        assert!(context(&stage).contains("Use walrus tokens"));

        let rejected = ok(&stage.call("memory.reject", json!({ "id": wrong })));
        assert_eq!(rejected["mark"]["kind"], "rejected", "{rejected}");
        assert_eq!(ok(&stage.call("memory.reject", json!({ "id": wrong }))), rejected, "repeated call");

        let found = search(&stage, "walrus tokens");
        assert!(!ids(&found).contains(&wrong.as_str()) && ids(&found).contains(&right.as_str()), "{found:?}");
        for result in &found {
            assert!(!result["snippet"].as_str().unwrap().contains("Use walrus tokens"), "{result}");
        }
        let timeline =
            ok(&stage.call("recall.timeline", json!({ "id": right, "limit": 100 })))["items"].clone();
        assert!(!ids(timeline.as_array().unwrap()).contains(&wrong.as_str()), "{timeline}");
        let error = refused(&stage.call("recall.timeline", json!({ "id": wrong })), "not_found");
        assert!(error["message"].as_str().unwrap().ends_with("is rejected"), "{error}");
        let got = ok(&stage.call("recall.get", json!({ "ids": format!("{wrong},{right}") })));
        assert_eq!(
            (&got["items"][0]["mark"]["kind"], &got["items"][1]["mark"]),
            (&"rejected".into(), &Value::Null)
        );
        let notes = ok(&stage.call("note.list", json!({ "venture": "v" })))["notes"].clone();
        assert_eq!(ids(notes.as_array().unwrap()), [right.as_str()]);
        assert!(!context(&stage).contains("Use walrus tokens"), "{}", context(&stage));
        let handoff = ok(&stage.call("handoff.latest", json!({ "venture": "v" })))["handoff"].to_string();
        assert!(handoff.contains("walrus cookies") && !handoff.contains("walrus tokens"), "{handoff}");
        let listed = ok(&stage.call("memory.list", json!({ "mark": "rejected" })))["items"].clone();
        assert_eq!(ids(listed.as_array().unwrap()), [wrong.as_str()]);
        let problems = write(&stage.store, |tx| tx.index_problems());
        assert!(problems.is_empty(), "{problems:?}");

        let restored = ok(&stage.call("memory.restore", json!({ "id": wrong })));
        assert_eq!(restored["mark"], Value::Null);
        assert!(ids(&search(&stage, "walrus tokens")).contains(&wrong.as_str()));
        assert!(context(&stage).contains("Use walrus tokens"));
        assert_eq!(ok(&stage.call("memory.list", json!({})))["items"], json!([]));
    }
}

#[test]
fn every_kind_of_item_can_be_rejected() {
    for stage in Stage::each() {
        let (session, _) = chat(&stage);
        end(&stage, &session);
        for kind in ["turn", "observation", "handoff", "summary", "note"] {
            let id = first_of(&stage, "walrus", kind);
            ok(&stage.call("memory.reject", json!({ "id": id })));
            assert!(!ids(&search(&stage, "walrus")).contains(&id.as_str()), "{kind}");
            assert!(!context(&stage).contains(&format!("[{id}]")), "{kind}: {}", context(&stage));
        }
        let observed = ok(&stage.call("observation.list", json!({ "venture": "v" })))["observations"].clone();
        assert_eq!(observed.as_array().unwrap().len(), 1, "one of two is rejected");
        let latest = stage.call("handoff.latest", json!({ "venture": "v" }));
        assert!(latest.status == 404 || ok(&latest)["handoff"].is_null(), "{}", latest.body);
    }
}

#[test]
fn rejected_items_stay_out_of_an_index_that_is_built_again() {
    for stage in Stage::each() {
        let (_, [_, wrong]) = chat(&stage);
        let turn = first_of(&stage, "walrus importer", "turn");
        for id in [&wrong, &turn] {
            ok(&stage.call("memory.reject", json!({ "id": id })));
        }
        write(&stage.store, |tx| tx.clear_index());
        let found = search(&stage, "walrus");
        assert!(!found.is_empty());
        assert!(!ids(&found).contains(&wrong.as_str()) && !ids(&found).contains(&turn.as_str()), "{found:?}");
    }
}

#[test]
fn superseded_items_name_their_replacement() {
    for stage in Stage::each() {
        let (_, [new, old]) = chat(&stage);
        let superseded = ok(&stage.call("memory.supersede", json!({ "id": old, "by": new })));
        assert_eq!(superseded["mark"]["replaced_by"], new.as_str());
        assert!(!ids(&search(&stage, "walrus tokens")).contains(&old.as_str()));
        let got = ok(&stage.call("recall.get", json!({ "ids": old })));
        assert_eq!(got["items"][0]["mark"]["replaced_by"], new.as_str());

        for (id, by, code) in [
            (&new, &new, "invalid_request"),
            (&new, &old, "invalid_request"),
            (&new, &UNKNOWN_NOTE.to_owned(), "not_found"),
            (&UNKNOWN_NOTE.to_owned(), &new, "not_found"),
        ] {
            refused(&stage.call("memory.supersede", json!({ "id": id, "by": by })), code);
        }
        let of_w = json!({ "text": "other venture", "repo": "o/r", "venture": "w" });
        let other = ok(&stage.call("note.create", of_w))["note"]["id"].clone();
        refused(&stage.call("memory.supersede", json!({ "id": new, "by": other })), "invalid_request");
    }
}

#[test]
fn forgetting_a_replacement_restores_what_it_replaced() {
    for stage in Stage::each() {
        let (_, [new, old]) = chat(&stage);
        let observation = first_of(&stage, "cargo test", "observation");
        ok(&stage.call("memory.supersede", json!({ "id": observation, "by": old })));
        ok(&stage.call("memory.supersede", json!({ "id": old, "by": new })));
        ok(&stage.call("memory.forget", json!({ "id": new, "dry_run": true })));
        assert!(!ids(&search(&stage, "walrus tokens")).contains(&old.as_str()), "a dry run changes nothing");
        ok(&stage.call("memory.forget", json!({ "id": new })));
        let got = ok(&stage.call("recall.get", json!({ "ids": old })));
        assert_eq!(got["items"][0]["mark"], Value::Null, "{got}");
        assert!(ids(&search(&stage, "walrus tokens")).contains(&old.as_str()));
        let got = ok(&stage.call("recall.get", json!({ "ids": observation })));
        assert_eq!(got["items"][0]["mark"]["replaced_by"], old.as_str(), "its replacement still exists");

        ok(&stage.call("memory.forget", json!({ "repo": "o/r" })));
        let marks = ok(&stage.call("memory.list", json!({})));
        assert_eq!(marks["items"], json!([]), "{marks}");
    }
}

#[test]
fn pinned_items_come_first_in_the_context_and_rank_higher() {
    for stage in Stage::each() {
        let (_, [first, second]) = chat(&stage);
        for pinned in [&first, &second] {
            let other = if pinned == &first { &second } else { &first };
            ok(&stage.call("memory.restore", json!({ "id": other })));
            ok(&stage.call("memory.pin", json!({ "id": pinned })));
            let found = search(&stage, "walrus use");
            let place = |id: &String| ids(&found).iter().position(|found| found == id).unwrap();
            assert!(place(pinned) < place(other), "{found:?}");
            let why = found[place(pinned)]["why"].as_str().unwrap();
            assert!(why.contains("pinned"), "{why}");
            let text = context(&stage);
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines[1], "Pinned:", "{text}");
            assert!(lines[2].ends_with(&format!("[{pinned}]")), "{text}");
            assert_eq!(text.matches(pinned.as_str()).count(), 1, "{text}");
        }
        ok(&stage.call("memory.reject", json!({ "id": second })));
        assert!(!context(&stage).contains("Pinned:"), "a rejected item is no longer pinned");
    }
}

#[test]
fn forgotten_items_are_deleted_with_their_raw_output_and_their_quotes() {
    for stage in Stage::each() {
        let (session, [_, note]) = chat(&stage);
        end(&stage, &session);
        let observation = first_of(&stage, "cargo test", "observation");
        let texts = |stage: &Stage| -> String {
            let handoff = ok(&stage.call("handoff.latest", json!({ "venture": "v" })));
            let summary = ok(&stage.call("recall.get", json!({ "ids": session })));
            format!("{handoff} {summary}")
        };
        assert!(texts(&stage).contains("walrus_import") && texts(&stage).contains("walrus tokens"));

        let planned = ok(&stage.call("memory.forget", json!({ "id": observation, "dry_run": true })));
        assert_eq!(
            (&planned["forgotten"]["observations"], &planned["forgotten"]["raw_outputs"]),
            (&1.into(), &1.into())
        );
        assert!(
            ids(&search(&stage, "walrus_import")).contains(&observation.as_str()),
            "a dry run deletes nothing"
        );
        let done = ok(&stage.call("memory.forget", json!({ "id": observation })));
        assert_eq!((&done["forgotten"], &done["dry_run"]), (&planned["forgotten"], &false.into()));
        ok(&stage.call("memory.forget", json!({ "id": note })));

        assert_eq!(stage.queue(), [0, 0, 1, 0], "the raw output of the other tool use is kept");
        for id in [&observation, &note] {
            refused(&stage.call("memory.forget", json!({ "id": id })), "not_found");
            refused(&stage.call("recall.get", json!({ "ids": id })), "not_found");
            assert!(!ids(&search(&stage, "walrus")).contains(&id.as_str()));
        }
        let left = texts(&stage);
        assert!(!left.contains("walrus_import") && !left.contains("walrus tokens"), "{left}");
        assert!(left.contains("walrus cookies") && left.contains("src/walrus.rs"), "{left}");
        let corpus = read(&stage.store, |tx| tx.corpus(&["v".parse().unwrap()], &["cargo", "token"]));
        assert_eq!((corpus.documents_with("cargo"), corpus.documents_with("token")), (0, 0));
    }
}

#[test]
fn forgetting_a_turn_deletes_its_tool_uses() {
    for stage in Stage::each() {
        chat(&stage);
        stage.clock.set(NOW.plus(MINUTE));
        ok(&stage.hook("user-prompt-submit", json!({ "prompt": "Rename the penguin" })));
        ok(&stage.hook("post-tool-use", edit("src/penguin.rs")));
        let turn = first_of(&stage, "walrus importer", "turn");
        let done = ok(&stage.call("memory.forget", json!({ "id": turn })));
        assert_eq!((&done["forgotten"]["turns"], &done["forgotten"]["observations"]), (&1.into(), &2.into()));
        assert_eq!(stage.queue(), [1, 0, 0, 0], "the tool use of the next turn is kept");
        let penguin = first_of(&stage, "penguin", "turn");
        let done = ok(&stage.call("memory.forget", json!({ "id": penguin })));
        assert_eq!(done["forgotten"]["raw_outputs"], 1, "pending tool uses are deleted as well: {done}");
        assert_eq!((stage.queue(), stage.work()), ([0; 4], 0));
    }
}

#[test]
fn a_summary_of_a_model_is_requested_again() {
    for stage in Stage::each_with(with_model) {
        let (session, [_, note]) = chat(&stage);
        end(&stage, &session);
        ok(&stage.call("memory.forget", json!({ "id": note })));
        let title = || {
            let got = ok(&stage.call("recall.get", json!({ "ids": session })));
            got["items"][0]["title"].as_str().unwrap().to_owned()
        };
        assert_eq!(title(), "ended session without a summary");
        assert_eq!(stage.summarize_due(), 1);
        assert_ne!(title(), "ended session without a summary");
    }
}

#[test]
fn everything_of_a_session_a_repository_or_a_period_is_forgotten() {
    for stage in Stage::each() {
        let (session, _) = chat(&stage);
        end(&stage, &session);
        ok(&stage.call("checkpoint.save", json!({
            "context": { "goal": "x" }, "metadata": { "name": "walrus" }, "venture": "v", "agentSessionId": session,
        })));
        let other = json!({ "text": "walrus elsewhere", "repo": "o/other", "venture": "v" });
        let elsewhere = ok(&stage.call("note.create", other))["note"]["id"].as_str().unwrap().to_owned();
        let expected = json!({
            "turns": 1, "observations": 2, "notes": 2, "handoffs": 1, "checkpoints": 1, "summaries": 1,
            "raw_outputs": 2,
        });
        let planned = ok(&stage.call("memory.forget", json!({ "session": session, "dry_run": true })));
        assert_eq!(planned["forgotten"], expected);
        let none = ok(&stage.call("memory.forget", json!({ "repo": "o/unknown" })));
        assert_eq!(none["forgotten"]["turns"], 0);
        let none = ok(&stage.call("memory.forget", json!({ "repo": "o/r", "before": "2h" })));
        assert_eq!(none["forgotten"]["turns"], 0, "everything is newer");
        let done = ok(&stage.call("memory.forget", json!({ "session": session })));
        assert_eq!(done["forgotten"], expected);
        assert_eq!(ids(&search(&stage, "walrus")), [elsewhere.as_str()]);
        assert!(!context(&stage).contains("walrus"), "{}", context(&stage));
        stage.clock.set(NOW.plus(2 * HOUR));
        let done = ok(&stage.call("memory.forget", json!({ "before": "30m" })));
        assert_eq!((&done["forgotten"]["notes"], &done["more"]), (&1.into(), &false.into()));
        assert!(search(&stage, "walrus").is_empty());
    }
}

#[test]
fn large_amounts_are_forgotten_in_batches() {
    for stage in Stage::each() {
        for number in 0..600 {
            let note = json!({ "text": format!("note {number}"), "repo": "o/r", "venture": "v" });
            ok(&stage.call("note.create", note));
        }
        stage.clock.set(NOW.plus(MINUTE));
        for (notes, more) in [(500, true), (100, false), (0, false)] {
            let done = ok(&stage.call("memory.forget", json!({ "repo": "o/r" })));
            assert_eq!((&done["forgotten"]["notes"], &done["more"]), (&notes.into(), &more.into()));
        }
    }
}

#[test]
fn forget_needs_an_item_or_a_filter() {
    for stage in Stage::each() {
        let (session, [note, _]) = chat(&stage);
        for params in [json!({}), json!({ "venture": "v" }), json!({ "id": note, "session": session })] {
            refused(&stage.call("memory.forget", params), "invalid_request");
        }
        refused(&stage.call("memory.forget", json!({ "id": "nothing" })), "not_found");
        let unknown = json!({ "session": "sess_01HQXV3NK8ZZZZZZZZZZZZZZZZ" });
        refused(&stage.call("memory.forget", unknown), "session_not_found");
    }
}

#[test]
fn a_token_cannot_correct_other_ventures() {
    for stage in Stage::each() {
        let (session, [note, other]) = chat(&stage);
        ok(&stage.call("memory.pin", json!({ "id": note })));
        let outsider = holder(Access::Write, &["w"]);
        let call = |name: &str, params: Value| stage.as_holder(&outsider, name, params);
        for name in ["memory.reject", "memory.pin", "memory.restore", "memory.forget"] {
            let of_venture = refused(&call(name, json!({ "id": note })), "not_found");
            let unknown = refused(&call(name, json!({ "id": UNKNOWN_NOTE })), "not_found");
            let message = |error: &Value, id: &str| error["message"].as_str().unwrap().replace(id, "");
            assert_eq!(message(&of_venture, &note), message(&unknown, UNKNOWN_NOTE), "{name}");
        }
        refused(&call("memory.supersede", json!({ "id": note, "by": other })), "not_found");
        refused(&call("memory.forget", json!({ "session": session })), "session_not_found");
        let done = ok(&call("memory.forget", json!({ "repo": "o/r" })));
        assert_eq!(done["forgotten"]["notes"], 0);
        assert_eq!(ok(&call("memory.list", json!({})))["items"], json!([]));
        assert_eq!(call("memory.list", json!({ "venture": "v" })).status, 403);
        assert_eq!(
            ok(&stage.call("note.list", json!({ "venture": "v" })))["notes"].as_array().unwrap().len(),
            2
        );
    }
}

#[test]
fn work_on_unmerged_branches_is_labelled() {
    for stage in Stage::each() {
        let of_branch = |mut report: Value| {
            report["branch"] = "experiment".into();
            report
        };
        ok(&stage
            .hook("user-prompt-submit", of_branch(json!({ "prompt": "Make the walrus importer fast" }))));
        let session = stage.only_session().id.to_string();
        let note =
            json!({ "session_id": session, "kind": "decision", "text": "Walrus importers use threads" });
        ok(&stage.call("note.create", note));
        let unmerged = json!({ "unmerged_branches": ["experiment"] });
        ok(&stage.hook("session-end", of_branch(unmerged)));
        stage.clock.set(NOW.plus(HOUR));
        let why = |current: &str| {
            let params = json!({ "q": "walrus importers", "kind": "note", "current_branch": current });
            ok(&stage.call("recall.search", params))["results"][0]["why"].as_str().unwrap().to_owned()
        };
        assert!(why("main").contains("branch experiment is not merged"), "{}", why("main"));
        assert!(!why("experiment").contains("not merged"), "{}", why("experiment"));
        let bundle = |branch: &str| {
            let params = json!({ "repo": "o/r", "venture": "v", "branch": branch });
            ok(&stage.call("context.read", params))["context"].as_str().unwrap().to_owned()
        };
        assert!(bundle("main").contains("(branch experiment is not merged)"), "{}", bundle("main"));
        assert!(!bundle("experiment").contains("not merged"), "{}", bundle("experiment"));

        ok(&stage.hook("user-prompt-submit", json!({ "session_id": "later", "prompt": "Merge it" })));
        ok(&stage.hook("session-end", json!({ "session_id": "later", "unmerged_branches": [] })));
        assert!(!why("main").contains("not merged"), "the branch was merged");
    }
}
