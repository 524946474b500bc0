//! Handoffs of hooked sessions: precedence of the agent's own, automatic content, linked checkpoints, corrected
//! repositories.

use baton_core::SessionStatus;
use serde_json::{Value, json};

use crate::observing::{CHAT, edit, with_model};
use crate::stage::{MINUTE, NOW, Stage, ok, refused, who};

fn latest(stage: &Stage) -> Value {
    ok(&stage.call("handoff.latest", json!({ "venture": "v" })))["handoff"].clone()
}

fn create(stage: &Stage, session: &str, summary: &str) -> Value {
    ok(&stage.call("handoff.create", json!({ "session_id": session, "handoff": { "summary": summary } })))
}

#[test]
fn session_end_hook_adds_captures_to_the_agents_own_handoff() {
    for stage in Stage::each() {
        stage.hooked("user-prompt-submit", json!({ "prompt": "Make it fast" }));
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        let session = stage.only_session().id.to_string();
        let written = create(&stage, &session, "My own words");
        stage.hooked("post-tool-use", edit("src/late.rs"));
        stage.hooked("stop", json!({ "last_assistant_message": "Both files are fast now." }));
        assert_eq!(stage.work(), 2);
        stage.hooked("session-end", json!({}));

        let handoff = latest(&stage);
        assert_eq!((&handoff["id"], &handoff["summary"]), (&written["handoff_id"], &"My own words".into()));
        assert_eq!((&handoff["written_by"], &handoff["payload"]), (&"agent".into(), &json!({})));
        let automatic = &handoff["automatic"];
        assert!(automatic["summary"].as_str().unwrap().contains("Both files are fast now."), "{automatic}");
        assert_eq!((&automatic["goal"], &automatic["observations"]), (&"Make it fast".into(), &2.into()));
        assert_eq!(automatic["key_files"], json!(["src/late.rs", "src/lib.rs"]));
        assert_eq!(handoff["incomplete"], false);
        let next = ok(&stage.call("session.start", who("next")))["last_handoff"].clone();
        assert_eq!((&next["id"], &next["automatic_summary"]), (&handoff["id"], &automatic["summary"]));
        assert_eq!(stage.session(session.parse().unwrap()).status, SessionStatus::Ended);
    }
}

#[test]
fn agents_handoff_after_the_hook_replaces_the_automatic_one() {
    for stage in Stage::each() {
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        let session = stage.only_session().id;
        stage.hooked("session-end", json!({}));
        assert_eq!(latest(&stage)["written_by"], "hook");
        let own = json!({ "session_id": session, "handoff": { "summary": "My own words" } });
        let ended = ok(&stage.call("session.end", own.clone()));
        assert_eq!((&ended["late"], ok(&stage.call("session.end", own))), (&true.into(), ended.clone()));
        let handoff = latest(&stage);
        assert_eq!((&handoff["id"], &handoff["written_by"]), (&ended["handoff_id"], &"agent".into()));
        assert_eq!(handoff["automatic"]["queued_tool_uses"], 1);
        let listed = ok(&stage.call("handoff.list", json!({ "venture": "v" })));
        assert_eq!(listed["handoffs"].as_array().unwrap().len(), 1, "the automatic handoff is withdrawn");
    }
}

#[test]
fn handoff_with_pending_tool_uses_is_incomplete_until_they_are_processed() {
    for stage in Stage::each() {
        for (chat, by_agent) in [(CHAT, false), ("chat-2", true)] {
            stage.hooked("post-tool-use", {
                let mut fields = edit("src/lib.rs");
                fields["session_id"] = chat.into();
                fields
            });
            let session = stage.only_session().id.to_string();
            if by_agent {
                ok(&stage.call("session.end", json!({ "session_id": session, "summary": "Done" })));
            } else {
                stage.hooked("session-end", json!({ "session_id": chat }));
            }
            let before = latest(&stage);
            assert_eq!((&before["incomplete"], &before["ends_session"]), (&true.into(), &true.into()));
            assert_eq!((stage.work(), stage.summarize_due()), (1, 1));
            let after = latest(&stage);
            assert_eq!((&after["id"], &after["incomplete"]), (&before["id"], &false.into()));
            let content = if by_agent { &after["automatic"] } else { &after["payload"] };
            assert_eq!((&content["queued_tool_uses"], &content["observations"]), (&0.into(), &1.into()));
            let title = stage.observations()[0]["title"].clone();
            assert_eq!(content["work_completed"], json!([title]));
            if !by_agent {
                assert_eq!(content["written_by"], "session-end hook", "other fields are kept");
            }
        }
    }
}

#[test]
fn model_summary_made_after_the_end_reaches_the_next_chat() {
    for stage in Stage::each_with(with_model) {
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        stage.hooked("session-end", json!({}));
        assert_ne!(latest(&stage)["summary"], "1 things were done.");
        assert_eq!((stage.work(), stage.summarize_due()), (1, 1));
        assert_eq!(latest(&stage)["summary"], "1 things were done.");
        let next = stage.hook("session-start", json!({ "session_id": "next" }));
        assert!(next.body.contains("1 things were done."), "{}", next.body);
    }
}

#[test]
fn automatic_handoff_does_not_hide_the_one_of_an_agent() {
    for stage in Stage::each() {
        let session = ok(&stage.call("session.start", who("first")))["session_id"].clone();
        let own = json!({ "session_id": session, "summary": "Written by hand" });
        let own = ok(&stage.call("session.end", own))["handoff_id"].clone();
        let next = ok(&stage.call("session.start", who("second")));
        assert_eq!((&next["last_handoff"]["id"], &next["agent_handoff"]), (&own, &Value::Null));
        stage.clock.set(NOW.plus(MINUTE));
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        stage.hooked("session-end", json!({}));
        let next = ok(&stage.call("session.start", who("third")));
        assert_eq!(next["last_handoff"]["written_by"], "hook");
        assert_eq!(next["agent_handoff"]["id"], own);
    }
}

#[test]
fn handoff_links_the_latest_checkpoint_of_the_sessions_workflow() {
    for stage in Stage::each() {
        let start = ok(&stage.call("session.start", who("a")));
        let session = start["session_id"].as_str().unwrap().to_owned();
        assert_eq!(
            ok(&stage.call("handoff.show", create(&stage, &session, "before")))["handoff"]["checkpoint_id"],
            Value::Null
        );
        let save = |step: u32, by: Option<&str>| {
            let params = json!({ "sessionId": "flow", "venture": "v", "context": { "step": step }, "agentSessionId": by });
            ok(&stage.call("checkpoint.save", params))["checkpointId"].clone()
        };
        save(1, Some(&session));
        let newest = save(2, None);
        let handoff = ok(&stage.call("handoff.show", create(&stage, &session, "after")))["handoff"].clone();
        assert_eq!((&handoff["checkpoint_id"], &handoff["workflow_id"]), (&newest, &"flow".into()));
        let last = ok(&stage.call("session.start", who("b")))["last_handoff"]["references"].clone();
        assert_eq!((&last["checkpoint"], &last["workflow"]), (&newest, &"flow".into()));
    }
}

#[test]
fn corrected_repository_moves_the_session_and_later_reports_follow() {
    for stage in Stage::each() {
        stage.hooked("post-tool-use", edit("src/lib.rs"));
        assert_eq!(stage.work(), 1);
        stage.hooked("post-tool-use", edit("src/pending.rs"));
        let session = stage.only_session().id;
        create(&stage, &session.to_string(), "half done");
        let correct = json!({ "session_id": session, "repo": "right/repo" });
        ok(&stage.keyed("1", "session.update", correct));
        stage.hooked("post-tool-use", edit("src/later.rs"));
        assert_eq!(stage.only_session().id, session, "the next report finds the corrected session");
        assert_eq!(stage.work(), 2);
        let moved = stage.observations().iter().all(|seen| seen["repo"] == "right/repo");
        assert!(moved && stage.observations().len() == 3, "{:?}", stage.observations());
        stage.hooked("stop", json!({}));
        stage.hooked("session-end", json!({}));
        stage.hooked("stop", json!({ "last_assistant_message": "A late closing message." }));
        assert!(stage.active().is_empty(), "a late report starts no session");
        assert_eq!(latest(&stage)["repo"], "right/repo");

        let taken = json!({ "agent": "claude-code", "venture": "v", "repo": "right/repo" });
        ok(&stage.call("session.start", taken));
        let other = ok(&stage.call("session.start", who("claude-code")))["session_id"].clone();
        let correct = json!({ "session_id": other, "repo": "right/repo" });
        refused(&stage.keyed("2", "session.update", correct), "invalid_request");
    }
}
