//! Search by meaning through the real binary.

use baton_testkit::binary::Home;
use baton_testkit::model_server::{Behaviour, ModelServer};
use baton_testkit::processes::wait_until;
use serde_json::Value;

const KEY: &str = "embedding-key-0123456789";

fn home(model: &ModelServer) -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"))
        .with("BATON_EMBEDDING_URL", &model.url())
        .with("BATON_EMBEDDING_MODEL", "small")
        .with("BATON_EMBEDDING_API_KEY", KEY);
    let noted = home.run(&["note", "Make the login page fast", "--repo", "acme/shop"]);
    assert_eq!(noted.code, 0, "{noted:?}");
    home
}

#[track_caller]
fn search(home: &Home, query: &str) -> Value {
    let finished = home.run(&["search", query, "--format", "json"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    finished.json()["data"].clone()
}

#[test]
fn worker_computes_vectors_and_search_uses_them() {
    let model = ModelServer::start();
    let home = home(&model);
    let worked = home.run(&["worker", "run", "--once"]);
    assert!(worked.code == 0 && worked.stdout.ends_with(", 1 vector\n"), "{worked:?}");
    // A busy machine may exceed the timeout of a query.
    wait_until("the query is embedded", || search(&home, "sign in")["warning"].is_null());
    let found = search(&home, "sign in")["results"][0].clone();
    assert_eq!((found["title"].as_str().is_some(), &found["why"]), (true, &"similar meaning (1.00)".into()));
    let sent = model.requests();
    assert!(sent.iter().all(|one| one.header("authorization") == Some(&format!("Bearer {KEY}"))), "{sent:?}");
}

#[test]
fn rejected_key_is_reported_without_the_key() {
    let model = ModelServer::start();
    let home = home(&model);
    model.behave(Behaviour::Unauthorized);
    let worked = home.run(&["worker", "run", "--once"]);
    assert!(worked.code == 0 && worked.stdout.contains("embedding endpoint 127.0.0.1"), "{worked:?}");
    assert!(worked.stdout.contains("the key is missing or invalid"), "{worked:?}");
    let found = home.run(&["search", "login"]);
    assert!(found.stdout.contains("login page") && found.stdout.contains("warning: "), "{found:?}");
    for finished in [worked, found, home.run(&["config", "show"])] {
        assert!(!format!("{finished:?}").contains(KEY), "{finished:?}");
    }
}
