//! Session summaries: created after a session stops, from the whole session, and offline if the model fails.

use std::time::Duration;

use baton_core::observation::{CompressedObservation, Observation, Provenance, QueueStatus};
use baton_core::{ObservationId, SessionId, Timestamp, Ulid};
use baton_testkit::contract::write;
use baton_testkit::model_server::Behaviour;
use baton_worker::Drained;
use serde_json::{Value, json};

use crate::stage::{DAY, MINUTE, NOW, SECOND, Stage, call, done};

fn summaries(summaries: u64) -> Drained {
    Drained { summaries, ..Drained::default() }
}

/// Returns the prompts of summary requests.
fn summary_prompts(stage: &Stage) -> Vec<String> {
    let requests = stage.model.requests();
    let prompts = requests.iter().map(|request| request.prompt());
    prompts.filter(|prompt| prompt.contains("Summarize this development session")).collect()
}

#[test]
fn session_is_summarized_after_it_stops_and_all_items_are_processed() {
    for stage in Stage::each() {
        stage.hook("user-prompt-submit", json!({ "prompt": "build it" }));
        let session = stage.session();
        stage.capture(1);
        stage.capture(2);
        assert_eq!(stage.step(), done(2), "no summary was requested");
        stage.capture(3);
        stage.hook("stop", json!({}));
        assert_eq!(stage.step(), Drained { done: 1, summaries: 1, ..Drained::default() });

        let stored = stage.summary(session).unwrap();
        assert_eq!(stored.summary.summary, "Summary of item-1");
        assert_eq!(stored.summary.key_files, ["src/lib.rs"]);
        assert_eq!(stored.summary.key_decisions, ["Kept it small"]);
        assert_eq!((stored.observations, stored.made_at), (3, stage.clock_now()));
        assert_eq!(stored.provenance.prompt_version, "summarize-v2");
        assert!(stored.provenance.model.is_some() && stored.provenance.tokens_in > 0);
        assert_eq!(stage.usage()[0].calls, 4, "three observations and a summary");
        let prompts = summary_prompts(&stage);
        assert_eq!(prompts.len(), 1);
        for number in 1..=3 {
            assert!(prompts[0].contains(&format!("Compressed item-{number}")), "{}", prompts[0]);
        }
        assert_eq!(stage.step_after(DAY), done(0), "the summary is created once");
    }
}

#[test]
fn summary_waits_for_items_in_progress() {
    for stage in Stage::each() {
        let id = stage.capture(1);
        let session = stage.session();
        stage.hook("stop", json!({}));
        stage.model.behave(Behaviour::ServerError);
        stage.step();
        assert_eq!(stage.summary(session), None);
        // Another worker claims the item and dies.
        stage.clock.set(stage.item(id).run_at);
        let gone = stage.beside(|_| {}).work_queue();
        assert_eq!(gone.claim(1).unwrap().len(), 1);
        stage.model.behave(Behaviour::Good);
        assert_eq!(stage.step_after(10 * SECOND), done(0));
        assert_eq!((stage.summary(session), summary_prompts(&stage).len()), (None, 0));
        stage.clock.advance(5 * MINUTE);
        assert_eq!(stage.step(), Drained { done: 1, summaries: 1, ..Drained::default() });
        assert_eq!(stage.summary(session).unwrap().observations, 1);
    }
}

#[test]
fn each_summary_is_built_from_the_whole_session() {
    for stage in Stage::each() {
        stage.capture(1);
        stage.capture(2);
        let session = stage.session();
        stage.hook("stop", json!({}));
        stage.step();
        let first = stage.summary(session).unwrap();

        stage.clock.advance(MINUTE);
        stage.capture(3);
        stage.hook("stop", json!({}));
        stage.model.forget();
        assert_eq!(stage.step(), Drained { done: 1, summaries: 1, ..Drained::default() });
        let prompts = summary_prompts(&stage);
        assert_eq!(prompts.len(), 1);
        assert!(!prompts[0].contains("Summary of item-1"), "the previous summary: {}", prompts[0]);
        for number in 1..=3 {
            assert!(prompts[0].contains(&format!("Compressed item-{number}")), "{}", prompts[0]);
        }
        let second = stage.summary(session).unwrap();
        assert_eq!((first.observations, second.observations), (2, 3));
        assert!(second.made_at > first.made_at);

        // A stop without new observations costs nothing and changes nothing.
        stage.model.forget();
        stage.hook("stop", json!({}));
        stage.step_after(MINUTE);
        assert_eq!((stage.summary(session), stage.model.received()), (Some(second), 0));
    }
}

#[test]
fn late_observations_are_included_in_the_summary() {
    for stage in Stage::each() {
        let first = stage.capture(1);
        stage.capture(2);
        let session = stage.session();
        // The first item is claimed by a worker that died, while the second is processed.
        let gone = stage.beside(|_| {}).work_queue();
        assert_eq!(gone.claim(1).unwrap()[0].id(), first);
        assert_eq!(stage.step(), done(1));
        let early = stage.ok("session.summarize", json!({ "session_id": session }));
        assert_eq!((&early["observations"], &early["session_status"]), (&json!(1), &json!("ended")));
        stage.model.forget();
        stage.clock.advance(10 * MINUTE);
        assert_eq!(stage.step(), Drained { done: 1, summaries: 1, ..Drained::default() });
        let prompts = summary_prompts(&stage);
        assert_eq!(prompts.len(), 1);
        for number in 1..=2 {
            assert!(prompts[0].contains(&format!("Compressed item-{number}")), "{}", prompts[0]);
        }
        assert_eq!(stage.summary(session).unwrap().observations, 2);
        assert_eq!(stage.step_after(DAY), done(0));
    }
}

#[test]
fn retried_items_are_included_in_the_summary() {
    for stage in Stage::each() {
        stage.capture(1);
        let session = stage.session();
        stage.step();
        stage.model.behave(Behaviour::Garbage);
        let poison = stage.capture(2);
        while stage.item(poison).status != QueueStatus::Error {
            stage.step_after(DAY);
        }
        stage.model.behave(Behaviour::Good);
        let made = stage.ok("session.summarize", json!({ "session_id": session }));
        assert_eq!(made["observations"], 1);
        assert_eq!(stage.step_after(DAY), done(0), "nothing is due");
        assert_eq!(stage.ok("queue.retry", json!({}))["retried"], 1);
        assert_eq!(stage.step(), Drained { done: 1, summaries: 1, ..Drained::default() });
        assert_eq!(stage.summary(session).unwrap().observations, 2);
    }
}

#[test]
fn summary_is_discarded_if_a_newer_one_was_stored() {
    for stage in Stage::each() {
        stage.capture(1);
        stage.step();
        let session = stage.session();
        stage.hook("stop", json!({}));
        // A worker claims the summary. Meanwhile there are more observations, and a summary is requested synchronously.
        let slow = stage.beside(|_| {}).work_queue();
        let job = slow.claim_summary().unwrap().unwrap();
        stage.capture(2);
        stage.step();
        let at_once = stage.ok("session.summarize", json!({ "session_id": session, "close": false }));
        assert_eq!(at_once["observations"], 2);
        let offline = &stage.app.settings().observations.offline;
        let made = offline.summarize(job.material()).unwrap();
        assert!(!slow.keep_summary(&job, Some(made), offline.as_ref()).unwrap());
        let stored = stage.summary(session).unwrap();
        assert_eq!((stored.observations, &json!(stored.summary.summary)), (2, &at_once["summary"]));
        stage.model.forget();
        stage.step_after(MINUTE);
        assert_eq!((stage.summary(session), stage.model.received()), (Some(stored), 0));
    }
}

#[test]
fn session_without_observations_uses_no_tokens() {
    for stage in Stage::each() {
        stage.hook("user-prompt-submit", json!({ "prompt": "hello" }));
        let session = stage.session();
        stage.hook("stop", json!({}));
        stage.step();
        assert_eq!((stage.summary(session), stage.model.received()), (None, 0));
        assert_eq!(stage.step_after(DAY), done(0), "the summary is not requested again");

        let made = stage.ok("session.summarize", json!({ "session_id": session }));
        assert_eq!(made["summary"], "No observations captured.");
        assert_eq!((&made["tokens"], &made["observations"]), (&json!(0), &json!(0)));
        assert_eq!((&made["key_files"], &made["key_decisions"]), (&json!([]), &json!([])));
        assert_eq!(made["session_status"], "ended");
        assert_eq!(stage.model.received(), 0);
        assert_eq!(stage.summary(session).unwrap().summary.summary, "No observations captured.");
    }
}

#[test]
fn turn_without_tools_changes_a_summary_written_by_a_model() {
    for stage in Stage::each() {
        stage.capture(1);
        let session = stage.session();
        stage.hook("stop", json!({ "last_assistant_message": "The parser is in place." }));
        stage.step();
        let first = stage.summary(session).unwrap();
        stage.clock.advance(MINUTE);
        stage.hook("user-prompt-submit", json!({ "prompt": "Is it good?" }));
        stage.hook("stop", json!({ "last_assistant_message": "No, it must be rewritten." }));
        stage.model.forget();
        assert_eq!(stage.step(), summaries(1));
        let prompts = summary_prompts(&stage);
        assert_eq!(prompts.len(), 1);
        for part in ["The parser is in place.", "No, it must be rewritten.", "Compressed item-1"] {
            assert!(prompts[0].contains(part), "{part}: {}", prompts[0]);
        }
        let second = stage.summary(session).unwrap();
        assert!(second.made_at > first.made_at && second.provenance.model.is_some());
    }
}

#[test]
fn long_session_is_summarized_with_one_request_that_has_its_end() {
    for stage in Stage::each() {
        stage.hook("user-prompt-submit", json!({ "prompt": "everything" }));
        let session = stage.session();
        let wordy = |number| {
            let mut one = observation(session, number);
            one.compressed.summary = "as it was said ".repeat(60);
            one
        };
        let all: Vec<Observation> = (1..=1_100).map(wordy).collect();
        write(&stage.store, move |tx| {
            assert_eq!(tx.insert_observations(&all)?, 1_100);
            Ok(())
        });
        stage.hook("stop", json!({ "last_assistant_message": "All of it works." }));
        assert_eq!(stage.step(), summaries(1));
        assert_eq!(stage.summary(session).unwrap().observations, 1_100);
        let prompts = summary_prompts(&stage);
        assert_eq!(prompts.len(), 1);
        for part in ["Did item-1100:", "[... truncated ", "All of it works."] {
            assert!(prompts[0].contains(part), "{part}: {}", prompts[0]);
        }
        assert!(prompts[0].chars().count() < 40_000, "{}", prompts[0].chars().count());

        // The same for a synchronous request.
        let more: Vec<Observation> = (2_001..=2_700).map(wordy).collect();
        write(&stage.store, move |tx| tx.insert_observations(&more).map(|_| ()));
        stage.model.forget();
        let made = stage.ok("session.summarize", json!({ "session_id": session, "close": false }));
        assert_eq!((&made["observations"], stage.model.received()), (&json!(1_800), 1));
        assert!(summary_prompts(&stage)[0].contains("Did item-2700:"));
        assert_eq!(made["session_status"], "active");
    }
}

#[test]
fn summary_without_processed_items_says_so() {
    for stage in Stage::each() {
        stage.capture(1);
        let session = stage.session();
        let made = stage.ok("session.summarize", json!({ "session_id": session }));
        assert_eq!(made["summary"], "No tool use was processed yet; 1 is pending.");
        assert_eq!((&made["waiting"], &made["observations"]), (&json!(1), &json!(0)));
        assert_eq!((stage.summary(session), stage.model.received()), (None, 0));
        assert_eq!(stage.step(), Drained { done: 1, summaries: 1, ..Drained::default() });
        assert!(!summary_prompts(&stage)[0].contains("No tool use was processed yet"));
        assert_eq!(stage.summary(session).unwrap().observations, 1);
    }
}

#[test]
fn outage_postpones_a_summary() {
    for stage in Stage::each() {
        stage.capture(1);
        assert_eq!(stage.step(), done(1));
        let session = stage.session();
        stage.hook("stop", json!({}));
        stage.model.behave(Behaviour::rate_limited(60));
        stage.model.forget();
        assert_eq!(stage.step(), Drained { summaries_released: 1, ..Drained::default() });
        for _ in 0..2 {
            assert_eq!(stage.step(), done(0));
        }
        assert_eq!(stage.step_after(59 * SECOND), done(0));
        assert_eq!((stage.summary(session), stage.model.received()), (None, 1), "asked once in the pause");
        stage.model.behave(Behaviour::Good);
        assert_eq!(stage.step_after(SECOND), summaries(1));
        assert_eq!(stage.summary(session).unwrap().summary.summary, "Summary of item-1");
    }
}

#[test]
fn unusable_summary_falls_back_to_offline() {
    for stage in Stage::each() {
        for behaviour in
            [Behaviour::Garbage, Behaviour::WrongTypes, Behaviour::MaxTokens, Behaviour::BadRequest]
        {
            stage.clock.advance(MINUTE);
            stage.model.behave(Behaviour::Good);
            stage.capture(1);
            assert_eq!(stage.step(), done(1));
            let session = stage.session();
            stage.hook("stop", json!({}));
            stage.model.behave(behaviour.clone());
            let before: u64 = stage.usage()[0].tokens_in;
            assert_eq!(stage.step(), summaries(1), "{behaviour:?}");
            let stored = stage.summary(session).unwrap();
            assert_eq!(stored.provenance.compressor, "offline", "{behaviour:?}");
            assert_eq!(stored.made_at, stage.clock_now(), "{behaviour:?}");
            assert!(!stored.summary.summary.is_empty(), "{behaviour:?}");
            let counted = matches!(behaviour, Behaviour::WrongTypes | Behaviour::MaxTokens);
            assert_eq!(stage.usage()[0].tokens_in > before, counted, "{behaviour:?}: its tokens are counted");
        }
    }
}

#[test]
fn requested_summary_falls_back_to_offline_when_the_model_fails() {
    for stage in Stage::each() {
        stage.capture(1);
        assert_eq!(stage.step(), done(1));
        let session = stage.session();
        for (number, behaviour) in (2..).zip([Behaviour::ServerError, Behaviour::Hang, Behaviour::MaxTokens])
        {
            let counted = behaviour == Behaviour::MaxTokens;
            stage.model.behave(behaviour.clone());
            let before: u64 = stage.usage()[0].tokens_in;
            let app =
                if behaviour == Behaviour::Hang { stage.with_short_timeout() } else { stage.app.clone() };
            let reply = call(&app, "session.summarize", json!({ "session_id": session, "close": false }));
            assert_eq!(reply.status, 200, "{behaviour:?}: {}", reply.body);
            let made: Value = serde_json::from_str(&reply.body).unwrap();
            assert_eq!(made["provenance"]["compressor"], "offline", "{behaviour:?}");
            assert!(made["summary"].as_str().is_some_and(|text| !text.is_empty()));
            assert_eq!(stage.summary(session).unwrap().summary.summary, made["summary"].as_str().unwrap());
            assert_eq!(stage.usage()[0].tokens_in > before, counted, "{behaviour:?}: its tokens are counted");
            // A new observation for the next summary.
            stage.clock.advance(10 * MINUTE);
            stage.model.behave(Behaviour::Good);
            stage.capture(number);
            assert_eq!(stage.step(), done(1));
        }
    }
}

#[test]
fn summaries_beyond_the_daily_budget_are_offline() {
    for stage in Stage::each_with(|settings| settings.daily_token_budget = Some(1)) {
        stage.capture(1);
        assert_eq!(stage.step(), done(1));
        let asked = stage.model.received();
        let session = stage.session();
        stage.hook("stop", json!({}));
        assert_eq!(stage.step(), summaries(1));
        assert_eq!(stage.summary(session).unwrap().provenance.compressor, "offline");

        stage.clock.advance(SECOND);
        stage.capture(2);
        assert_eq!(stage.step(), done(1));
        let made = stage.ok("session.summarize", json!({ "session_id": session }));
        assert_eq!(made["provenance"]["compressor"], "offline");
        assert_eq!(stage.model.received(), asked, "the model was called beyond the budget");
    }
}

/// Creates an observation of a session without a queue item, this many milliseconds after the start.
fn observation(session: SessionId, number: u32) -> Observation {
    let at: Timestamp = NOW.plus(Duration::from_millis(u64::from(number)));
    Observation {
        id: ObservationId::new(Ulid::from_parts(u64::try_from(at.as_millis()).unwrap(), 7)),
        queue_id: i64::from(number) + 1_000_000,
        session_id: session,
        venture: "local".parse().unwrap(),
        repo: "o/r".parse().unwrap(),
        tool_name: "Edit".into(),
        tool_use_id: None,
        compressed: CompressedObservation {
            title: format!("Did item-{number}"),
            summary: "so".into(),
            detail: None,
            files_touched: Vec::new(),
            functions_changed: Vec::new(),
        },
        files: Vec::new(),
        provenance: Provenance::default(),
        raw_bytes: 1,
        captured_at: at,
        compressed_at: at,
    }
}
