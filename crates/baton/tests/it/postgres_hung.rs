//! A PostgreSQL server that accepts connections and does not answer: requests fail in time, writes go to the
//! outbox, and everything recovers without a restart.

use std::collections::BTreeSet;

use baton_testkit::binary::Home;
use baton_testkit::postgres::{TestDatabase, TestServer};
use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

use crate::hooked::Hooked;
use crate::served::{id, refusal, who};

/// Creates a home on a database, with short timeouts.
fn home_on(url: &str) -> Home {
    Home::new(env!("CARGO_BIN_EXE_baton"))
        .working_in("shop")
        .on_postgres(url)
        .with("BATON_STORE_CONNECT_TIMEOUT_SECONDS", "1")
        .with("BATON_STORE_STATEMENT_TIMEOUT_SECONDS", "1")
}

fn save_params(step: u32) -> Value {
    json!({ "sessionId": "s", "context": { "step": step } })
}

fn spooled_reports(home: &Home) -> usize {
    std::fs::read_dir(home.data_dir().join("spill/hooks")).map_or(0, Iterator::count)
}

fn spooled_checkpoints(home: &Home) -> usize {
    let entries = std::fs::read_dir(home.data_dir().join("spill")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "spooled")).count()
}

/// Returns the steps of the saved contexts, oldest first.
fn steps(home: &Home) -> Vec<u64> {
    let data =
        |arguments: &[&str]| home.run(&[arguments, &["--format", "json"]].concat()).json()["data"].clone();
    let listed = data(&["checkpoint", "list", "--session", "s"]);
    let ids = listed["checkpoints"].as_array().unwrap().iter().rev().map(|saved| id(&saved["checkpointId"]));
    ids.map(|id| data(&["checkpoint", "load", &id])["context"]["step"].as_u64().unwrap()).collect()
}

#[test]
fn requests_fail_writes_go_to_the_outbox_and_everything_recovers_after_a_hang() {
    let Some(postgres) = TestServer::start() else { return };
    let hooked = Hooked::at(home_on(&postgres.url));
    let home = &hooked.home;
    let server = home.serve_as(&["--no-worker"], &[]);
    let session = id(&server.post("/sod", &who("a")).json()["session_id"]);
    let beat = json!({ "session_id": session });
    let mut mcp = home.mcp();
    let saved = mcp.call("workflow_checkpoint_save", &save_params(1));
    assert_eq!(saved["structuredContent"]["degraded"], false, "{saved}");
    hooked.hook("post-tool-use", &hooked.bash("make one", "done"));

    postgres.freeze();
    // More requests than there are connections: each must be answered, not only the first ones.
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| refusal(&server.get("/readyz"), 503, "store_unavailable"));
            scope.spawn(|| refusal(&server.get("/active?venture=v"), 503, "store_unavailable"));
            scope.spawn(|| refusal(&server.post("/heartbeat", &beat), 503, "store_unavailable"));
        }
    });
    refusal(&server.post("/sod", &who("b")), 503, "store_unavailable");
    let saved = mcp.call("workflow_checkpoint_save", &save_params(2));
    assert_eq!(saved["structuredContent"]["degraded"], true, "{saved}");
    let context = home.path().join("context.json");
    std::fs::write(&context, json!({ "step": 3 }).to_string()).unwrap();
    let saved = home.run(&[
        "checkpoint",
        "save",
        "--session",
        "s",
        "--file",
        context.to_str().unwrap(),
        "--format",
        "json",
    ]);
    assert_eq!(saved.json()["data"]["degraded"], true, "{saved:?}");
    hooked.call(&["post-tool-use"], hooked.bash("make two", "done").to_string().as_bytes());
    assert_eq!((spooled_checkpoints(home), spooled_reports(home)), (2, 1));

    postgres.thaw();
    wait_until("the server is ready again", || server.get("/readyz").status == 200);
    assert_eq!(server.post("/heartbeat", &beat).status, 200);
    let agents: BTreeSet<String> = server.get("/active?venture=v").json()["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| id(&session["agent"]))
        .collect();
    assert_eq!(agents, ["a".to_owned()].into(), "a rejected request must have no effect");
    let mut step = 3;
    wait_until("checkpoints are stored again", || {
        step += 1;
        mcp.call("workflow_checkpoint_save", &save_params(step))["structuredContent"]["degraded"] == false
    });
    assert_eq!(steps(home), (1..=u64::from(step)).collect::<Vec<_>>());
    hooked.hook("post-tool-use", &hooked.bash("make three", "done"));
    wait_until("the spooled report is replayed", || spooled_reports(home) == 0);
    assert_eq!(hooked.queue(), [3, 0, 0, 0]);
}

/// Makes every commit that inserts into a table take longer than a client waits for it.
struct SlowCommits<'a>(&'a TestDatabase);

impl<'a> SlowCommits<'a> {
    fn on(database: &'a TestDatabase, table: &str) -> Self {
        database.execute(&format!(
            "CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_sleep(4); RETURN NULL; END $$; \
             CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION wait_at_commit()"
        ));
        Self(database)
    }
}

impl Drop for SlowCommits<'_> {
    /// Waits for commits under way: dropping the function needs a lock that they hold.
    fn drop(&mut self) {
        self.0.execute("DROP FUNCTION wait_at_commit CASCADE");
    }
}

#[test]
fn a_request_with_an_unknown_commit_is_executed_once_when_repeated_with_its_key() {
    let Some(database) = TestDatabase::with_schema() else { return };
    let home = home_on(&database.url);
    let server = home.serve_as(&["--no-worker"], &[]);
    let session = id(&server.post("/sod", &who("a")).json()["session_id"]);
    let body = json!({ "session_id": session, "handoff": { "summary": "all done", "status_label": "done" } });
    let end = || {
        let key = [("idempotency-key", "k1"), ("content-type", "application/json")];
        server.send("POST", "/eod", &key, body.to_string().as_bytes())
    };
    let slow = SlowCommits::on(&database, "handoffs");
    let unknown = refusal(&end(), 503, "store_unavailable");
    assert!(unknown["message"].as_str().unwrap().contains("the outcome is unknown"), "{unknown}");
    drop(slow);
    let mut ended = end();
    wait_until("the repeated request succeeds", || {
        ended = end();
        ended.status == 200
    });
    let listed = server.get("/handoffs?venture=v").json();
    let stored: Vec<&Value> =
        listed["handoffs"].as_array().unwrap().iter().map(|handoff| &handoff["id"]).collect();
    assert_eq!(stored, [&ended.json()["handoff_id"]]);
}

#[test]
fn a_checkpoint_and_a_report_whose_commits_timed_out_are_stored_once() {
    let Some(database) = TestDatabase::with_schema() else { return };
    let hooked = Hooked::at(home_on(&database.url));
    let home = &hooked.home;
    let mut mcp = home.mcp();
    let saved = mcp.call("workflow_checkpoint_save", &save_params(1));
    assert_eq!(saved["structuredContent"]["degraded"], false, "{saved}");
    let slow = SlowCommits::on(&database, "checkpoints");
    let saved = mcp.call("workflow_checkpoint_save", &save_params(2));
    assert_eq!(saved["structuredContent"]["degraded"], true, "{saved}");
    drop(slow);
    let slow = SlowCommits::on(&database, "pending_queue");
    hooked.call(&["post-tool-use"], hooked.bash("make one", "done").to_string().as_bytes());
    assert_eq!(spooled_reports(home), 1);
    drop(slow);

    wait_until("the spilled checkpoint is replayed", || {
        mcp.call("workflow_checkpoint_save", &save_params(3))["structuredContent"]["degraded"] == false
    });
    assert_eq!((steps(home), spooled_checkpoints(home)), (vec![1, 2, 3], 0));
    wait_until("the spooled report is replayed", || {
        hooked.call(&["session-start"], hooked.claude("SessionStart", json!({})).to_string().as_bytes());
        spooled_reports(home) == 0
    });
    assert_eq!(hooked.queue(), [1, 0, 0, 0]);
}
