//! Vectors for search: which items get one, what a search finds with them, and what happens if the endpoint fails.

use std::sync::Arc;
use std::time::Duration;

use baton_app::{App, ObservationSettings};
use baton_core::recall::{Embedding, Vector};
use baton_core::{Access, Actor, ActorKeyId, VentureScope};
use baton_llm::{Embedder, OpenAiConfig};
use baton_store::RecallFilter;
use baton_testkit::contract::read;
use baton_testkit::model_server::{Behaviour, UNREACHABLE_URL};
use baton_testkit::processes::wait_until;
use baton_worker::{Drained, Worker};
use serde_json::{Value, json};

use crate::stage::{Api, DAY, MINUTE, Stage, call, done, worker};
use crate::threads::Running;

/// Timeout of requests that are answered; long enough for a busy machine.
const LONG: Duration = Duration::from_secs(600);

fn use_endpoint(settings: &mut ObservationSettings, url: &str, model: &str, query_timeout: Duration) {
    let config = OpenAiConfig { timeout: LONG, ..OpenAiConfig::new(url, model) };
    settings.embedder = Some(Arc::new(Embedder::new(config, query_timeout)));
    settings.embedding_troubles = baton_app::observation::ModelTroubles::default();
}

/// A process whose search uses vectors.
struct Process {
    app: App,
    worker: Worker,
}

impl Process {
    fn on(stage: &Stage, model: &str) -> Self {
        Self::with(stage, |settings| use_endpoint(settings, &stage.model.url(), model, LONG))
    }

    fn with(stage: &Stage, change: impl Fn(&mut ObservationSettings)) -> Self {
        let app = stage.beside(change);
        Self { worker: worker(&app), app }
    }

    /// Runs the worker once, after the pause between two passes.
    #[track_caller]
    fn embed(&self, stage: &Stage) -> u64 {
        stage.clock.advance(MINUTE);
        self.worker.run_once().unwrap().embedded
    }

    #[track_caller]
    fn search(&self, params: Value) -> Value {
        ok(&self.app, "recall.search", params)
    }

    /// Returns the ids of the results.
    #[track_caller]
    fn find(&self, query: &str) -> Vec<String> {
        ids(&self.search(json!({ "q": query })))
    }
}

#[track_caller]
fn ok(app: &App, name: &str, params: Value) -> Value {
    let reply = call(app, name, params);
    assert_eq!(reply.status, 200, "{}", reply.body);
    serde_json::from_str(&reply.body).unwrap()
}

fn ids(found: &Value) -> Vec<String> {
    found["results"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// One fixture for each database.
fn stages() -> impl Iterator<Item = Stage> {
    Stage::each().filter(|stage| stage.api == Api::OpenAi)
}

#[track_caller]
fn note(stage: &Stage, venture: &str, text: &str) -> String {
    let noted = stage.ok("note.create", json!({ "text": text, "venture": venture, "repo": "o/r" }));
    noted["note"]["id"].as_str().unwrap().to_owned()
}

/// Returns the number of documents with a vector in venture `v` that is similar to a login.
fn similar_vectors(stage: &Stage) -> usize {
    let vector = Vector::from_numbers(&[1.0, 0.0, 0.0, 0.1]).unwrap();
    let to = Embedding { model: "small".into(), vector };
    let filter = RecallFilter { ventures: vec!["v".parse().unwrap()], ..RecallFilter::default() };
    read(&stage.store, move |tx| tx.nearest(&filter, &to, 10))
        .iter()
        .filter(|(_, similarity)| *similarity > 0.9)
        .count()
}

#[test]
fn paraphrase_is_found_by_its_vector() {
    for stage in stages() {
        let login = note(&stage, "v", "Make the login page fast");
        let other = note(&stage, "v", "Rename the store module");
        let process = Process::on(&stage, "small");
        assert!(process.find("sign in takes ages").is_empty(), "there are no vectors yet");
        assert_eq!(process.embed(&stage), 2);
        let found = process.search(json!({ "q": "sign in takes ages" }));
        assert_eq!(ids(&found), [login.clone(), other.clone()]);
        assert_eq!(found["results"][0]["why"], "similar meaning (1.00)");
        assert_eq!(found.get("warning"), None);
        // Words and vectors together.
        assert_eq!(process.find("sign in to the store module"), [other, login.clone()]);
        assert_eq!(ids(&process.search(json!({ "q": "sign in", "kind": "turn" }))), [""; 0]);
        assert_eq!(ids(&process.search(json!({ "q": "sign in", "repo": "o/other" }))), [""; 0]);
        let request = stage.model.requests().pop().unwrap();
        assert_eq!(
            (request.path.as_str(), request.json()["model"].as_str()),
            ("/v1/embeddings", Some("small"))
        );
        assert_eq!(process.embed(&stage), 0, "all items have vectors");
        // A process without the setting sends nothing and finds words only.
        stage.model.forget();
        let without = Process::with(&stage, |_| {});
        assert!(without.find("sign in takes ages").is_empty());
        assert_eq!(without.embed(&stage), 0);
        assert_eq!(without.find("login page"), [login]);
        assert_eq!(stage.model.received(), 0);
    }
}

#[test]
fn secrets_in_a_query_are_not_sent() {
    for stage in stages() {
        let process = Process::on(&stage, "small");
        let key = ["sk-ant-api03-", &"Zx9".repeat(31), "-QAAA"].concat();
        process.find(&format!("who uses {key}?"));
        let request = stage.model.requests().pop().unwrap();
        let sent = String::from_utf8(request.body).unwrap();
        assert!(sent.contains("who uses") && !sent.contains("Zx9Zx9"), "{sent}");
        stage.model.forget();
        process.find("  ");
        assert_eq!(stage.model.received(), 0, "an empty query has no vector");
    }
}

#[test]
fn token_finds_nothing_of_other_ventures() {
    for stage in stages() {
        note(&stage, "v", "Make the login page fast");
        let own = note(&stage, "w", "The login page is blue");
        let process = Process::on(&stage, "small");
        assert_eq!(process.embed(&stage), 2);
        let search = |ventures: &[&str]| {
            let ventures = ventures.iter().map(|venture| venture.parse().unwrap()).collect();
            let actor = Actor {
                key_id: ActorKeyId::of("token"),
                access: Access::Read,
                ventures: VentureScope::Only(ventures),
            };
            let envelope = baton_app::Call { actor, ..process.app.own_call().unwrap() };
            let search = baton_app::find("recall.search").unwrap();
            let reply = process.app.call_blocking(search, envelope, json!({ "q": "sign in" }));
            ids(&serde_json::from_str(&reply.body).unwrap())
        };
        assert_eq!(search(&["w"]), [own]);
        assert_eq!(search(&["x"]), [""; 0]);
        assert_eq!(search(&["v", "w"]).len(), 2);
    }
}

#[test]
fn vectors_of_another_model_are_ignored_and_replaced() {
    for stage in stages() {
        let login = note(&stage, "v", "Make the login page fast");
        let (small, wide) = (Process::on(&stage, "small"), Process::on(&stage, "wide"));
        assert_eq!(small.embed(&stage), 1);
        let found = wide.search(json!({ "q": "sign in" }));
        assert_eq!((ids(&found).len(), found.get("warning")), (0, None));
        assert_eq!(wide.embed(&stage), 1);
        assert_eq!(wide.find("sign in"), [login]);
        assert!(small.find("sign in").is_empty());
    }
}

#[test]
fn corrected_and_forgotten_items_lose_their_vectors() {
    for stage in stages() {
        let notes =
            ["fast", "slow", "blue"].map(|how| note(&stage, "v", &format!("The login page is {how}")));
        let process = Process::on(&stage, "small");
        assert_eq!((process.embed(&stage), similar_vectors(&stage)), (3, 3));
        ok(&process.app, "memory.forget", json!({ "id": notes[0] }));
        assert_eq!(similar_vectors(&stage), 2);
        ok(&process.app, "memory.reject", json!({ "id": notes[1] }));
        assert_eq!((process.find("sign in"), similar_vectors(&stage)), (vec![notes[2].clone()], 1));
        assert_eq!(process.embed(&stage), 0);
        ok(&process.app, "memory.restore", json!({ "id": notes[1] }));
        assert_eq!((process.embed(&stage), similar_vectors(&stage)), (1, 2));
        ok(&process.app, "note.update", json!({ "note_id": notes[2], "text": "The footer is blue" }));
        assert_eq!(
            (process.embed(&stage), similar_vectors(&stage)),
            (1, 1),
            "changed words get a new vector"
        );
    }
}

#[test]
fn outage_leaves_search_by_words_and_is_reported() {
    for stage in stages() {
        let login = note(&stage, "v", "Make the login page fast");
        let process = Process::on(&stage, "small");
        stage.model.behave(Behaviour::ServerError);
        let found = process.search(json!({ "q": "login page" }));
        assert_eq!(ids(&found), std::slice::from_ref(&login));
        assert!(found["warning"].as_str().unwrap().contains("by their words only"), "{found}");
        assert_eq!(process.embed(&stage), 0);
        let health = ok(&process.app, "worker.health", json!({}));
        assert_eq!(health["status"], "degraded");
        let error = health["model_trouble"]["error"].as_str().unwrap();
        assert!(error.starts_with("embedding endpoint 127.0.0.1:") && error.contains("500"), "{error}");
        stage.model.forget();
        assert!(process.search(json!({ "q": "login" }))["warning"].is_string());
        assert_eq!(process.worker.run_once().unwrap(), Drained::default());
        assert_eq!(stage.model.received(), 0, "no request is sent during the pause");
        stage.model.behave(Behaviour::Good);
        assert_eq!(process.embed(&stage), 1);
        assert_eq!(process.find("sign in"), [login]);
        assert_eq!(ok(&process.app, "worker.health", json!({}))["status"], "ok");
    }
}

#[test]
fn queue_is_processed_while_the_endpoint_is_unreachable_or_hangs() {
    for stage in stages() {
        let short = Duration::from_millis(100);
        let process =
            Process::with(&stage, |settings| use_endpoint(settings, UNREACHABLE_URL, "small", LONG));
        stage.capture(1);
        assert_eq!(process.worker.run_once().unwrap(), done(1));
        assert!(process.search(json!({ "q": "item" }))["warning"].is_string());
        stage.model.behave(Behaviour::Hang);
        let url = stage.model.url();
        let process = Process::with(&stage, |settings| use_endpoint(settings, &url, "small", short));
        let found = process.search(json!({ "q": "item" }));
        assert!(found["warning"].is_string() && !ids(&found).is_empty(), "{found}");
    }
}

#[test]
fn malformed_answers_are_reported_and_requested_again() {
    for stage in stages() {
        let login = note(&stage, "v", "Make the login page fast");
        note(&stage, "v", "Rename the store module");
        let process = Process::on(&stage, "small");
        let numbers = vec!["0.5"; 2_500_000].join(",");
        for body in [
            "<html>".to_owned(),
            r#"{"data":[]}"#.to_owned(),
            r#"{"data":[{"embedding":[1,NaN]},{"embedding":[1,2]}]}"#.to_owned(),
            r#"{"data":[{"embedding":[1,2]},{"embedding":[1]}]}"#.to_owned(),
            format!(r#"{{"data":[{{"embedding":[{numbers}]}}]}}"#),
        ] {
            let shown: String = body.chars().take(60).collect();
            stage.model.behave(Behaviour::Body(body));
            assert_eq!(process.find("login page").first(), Some(&login), "{shown}");
            // Longer than every pause.
            stage.clock.advance(10 * MINUTE);
            assert_eq!(process.embed(&stage), 0, "{shown}");
            let trouble = &ok(&process.app, "worker.health", json!({}))["model_trouble"];
            assert_eq!(trouble["needs_attention"], true, "{shown}: {trouble}");
        }
        stage.model.behave(Behaviour::Good);
        stage.clock.advance(10 * MINUTE);
        assert_eq!(process.embed(&stage), 2);
    }
}

#[test]
fn rejected_texts_do_not_block_others_and_are_not_sent_again() {
    for stage in stages() {
        note(&stage, "v", "A poison pill about the login");
        let login = note(&stage, "v", "Make the login page fast");
        let process = Process::on(&stage, "small");
        stage.model.behave(Behaviour::StatusOn(400, "poison".into()));
        assert_eq!(process.embed(&stage), 2);
        assert_eq!(process.find("sign in"), [login]);
        stage.model.forget();
        assert_eq!((process.embed(&stage), stage.model.received()), (0, 0));
    }
}

#[test]
fn daily_token_budget_limits_vectors() {
    for stage in stages() {
        for number in 1..=20 {
            note(&stage, "v", &format!("Note {number}"));
        }
        let url = stage.model.url();
        let process = Process::with(&stage, |settings| {
            use_endpoint(settings, &url, "small", LONG);
            settings.daily_token_budget = Some(10);
        });
        assert_eq!(process.embed(&stage), 16, "one batch");
        let usage = stage.usage();
        assert_eq!((usage[0].compressor.as_str(), usage[0].tokens_in), ("embedding", 16));
        assert_eq!(process.embed(&stage), 0);
        stage.clock.advance(DAY);
        assert_eq!(process.embed(&stage), 4);
    }
}

#[test]
fn processes_do_not_embed_at_the_same_time() {
    for stage in stages() {
        note(&stage, "v", "Make the login page fast");
        let (one, other) = (Process::on(&stage, "small"), Process::on(&stage, "small"));
        assert_eq!(one.embed(&stage), 1);
        note(&stage, "v", "The login page is blue");
        assert_eq!(other.worker.run_once().unwrap().embedded, 0, "a pass ended just now");
        assert_eq!(other.embed(&stage), 1);
    }
}

#[test]
fn running_worker_embeds_and_stops() {
    for stage in stages() {
        note(&stage, "v", "Make the login page fast");
        let process = Process::on(&stage, "small");
        let running = Running::start(process.worker);
        wait_until("the note has a vector", || similar_vectors(&stage) == 1);
        running.stop();
    }
}
