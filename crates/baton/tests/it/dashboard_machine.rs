//! Pages about the server's machine: tasks with their files, and connections of agents.

use std::fs;

use baton_testkit::binary::{Home, ServerProcess};
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK};
use crate::dashboard_http::{SignedIn, sign_in_with_token};
use crate::served::id;

const HOSTILE: &str = "<script>alert(1)</script>";

/// Creates a task with a finished role, failed checks, a blocking finding and an open drift.
pub(crate) fn drifted_task() -> Checkout {
    let checkout = Checkout::with_context();
    checkout.update("implementer", "in_progress");
    checkout.write("src/main.rs", "fn main() {\n    println!(\"fast\");\n}\n");
    let log = "running 2 tests\ntest settings::slow ... FAILED\ntest settings::fast ... ok\n\nfailures:\n    settings::slow\n\n\
               test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
    checkout.write("qa.log", log);
    checkout.task(&["record-qa", TASK, "--agent", "implementer", "--from", "qa.log", "--exit-code", "101"]);
    fs::remove_file(checkout.path("qa.log")).unwrap();
    checkout.snapshot("implementer");
    checkout.update("implementer", "done");
    checkout.task(&["mark-blocked", TASK, "--agent", "reviewer", "--finding", HOSTILE]);
    checkout.write("src/main.rs", "fn main() { edited_by_hand() }\n");
    checkout.write("src/new.rs", "pub fn new() {}\n");
    checkout.refused(5, &["verify-worktree", TASK, "--expected-agent", "implementer"]);
    checkout
}

/// Returns the page of the only task, and the URL of the same data.
fn task_page(server: &ServerProcess, browser: &SignedIn) -> (String, String) {
    let listed = browser.get(server, "/ui/tasks").text;
    let path = listed.split("/ui/tasks/show?").nth(1).unwrap().split('"').next().unwrap();
    let page = browser.get(server, &format!("/ui/tasks/show?{path}"));
    assert_eq!(page.status, 200, "{}", page.text);
    (page.text, format!("/api/tasks/show?{path}"))
}

#[test]
fn task_page_shows_roles_drift_by_file_checks_and_diffs() {
    let checkout = drifted_task();
    let server = checkout.home.serve();
    let browser = SignedIn::new(&server);
    let (page, api) = task_page(&server, &browser);
    for expected in [
        "Faster settings",
        "1 open drift",
        "differs from snapshot 1 of implementer",
        "<code>src/new.rs</code>",
        "settings::slow",
        "1 passed, 1 failed",
        "Changes outside the roles",
        "Changes of implementer",
        "edited_by_hand",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "baton task resolve-drift",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains(HOSTILE), "{page}");
    let data = browser.get(&server, &api).json();
    assert_eq!(data["files"]["context"], checkout.context());
    assert_eq!(data["files"]["diffs"][0]["type"], "drift");
    for (query, status) in [("", 400), ("?id=TASK-0824", 400), ("?id=local/TASK-0824@elsewhere:/x", 404)] {
        assert_eq!(browser.get(&server, &format!("/ui/tasks/show{query}")).status, status, "{query}");
    }
    let now = browser.get(&server, "/").text;
    assert!(now.contains("/ui/tasks/show?id="), "{now}");

    checkout.task(&["resolve-drift", TASK, "--note", "edited by hand, keep it"]);
    let (page, _) = task_page(&server, &browser);
    assert!(page.contains("edited by hand, keep it") && !page.contains("open drift"), "{page}");
    fs::remove_dir_all(checkout.root()).unwrap();
    let (page, _) = task_page(&server, &browser);
    assert!(page.contains("The files of this task are not shown"), "{page}");
}

#[test]
fn large_diffs_are_truncated_so_that_the_page_stays_small() {
    let checkout = Checkout::with_context();
    let text: String = (0..20_000).map(|line| format!("// line {line} <b>\n")).collect();
    checkout.work("implementer", &text);
    let server = checkout.home.serve();
    let browser = SignedIn::new(&server);
    let (page, _) = task_page(&server, &browser);
    assert!(page.contains("The diff is longer") && page.len() < 100_000, "{} bytes", page.len());
}

#[test]
fn tokens_of_one_venture_get_no_files_and_no_connections() {
    let checkout = drifted_task();
    let server = checkout.home.serve();
    let browser = sign_in_with_token(&server, &checkout.home, "local");
    let (page, api) = task_page(&server, &browser);
    assert!(page.contains("only with access to all ventures"), "{page}");
    assert!(!page.contains("edited_by_hand") && !page.contains("settings::slow"), "{page}");
    assert_eq!(browser.get(&server, &api).json()["files"], Value::Null);
    let agents = browser.get(&server, "/ui/agents");
    assert_eq!(agents.status, 200, "{}", agents.text);
    assert!(!agents.text.contains("machine of this server"), "{}", agents.text);
    assert_eq!(browser.get(&server, "/api/agents").status, 403);
}

#[test]
fn agents_page_shows_connections_as_doctor_reports_them() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let server = home.serve();
    let browser = SignedIn::new(&server);
    let page = || browser.get(&server, "/ui/agents").text;
    assert!(page().contains("No agent is connected on this machine"), "{}", page());
    assert_eq!(home.run(&["setup", "claude-code"]).code, 0);
    assert!(page().contains("Claude Code") && page().contains("the agent has sent nothing"), "{}", page());

    let report =
        json!({ "session_id": "chat-1", "cwd": home.working_folder(), "hook_event_name": "SessionStart" });
    home.run_with_input(&["hook", "session-start", "--client", "claude-code"], report.to_string().as_bytes());
    let connected = browser.get(&server, "/api/agents").json()["connections"][0].clone();
    assert_eq!((&connected["id"], &connected["problem"]), (&json!("claude-code"), &Value::Null));
    assert!(page().contains("connected") && page().contains("last event"), "{}", page());
    assert!(!page().contains("MCP server</span>"), "programs are started only on request");
    let probed = browser.get(&server, "/ui/agents?probe=true").text;
    assert!(probed.contains("MCP server") && probed.contains("responds with"), "{probed}");

    let hooks = home.path().join(".claude/skills/baton/hooks/hooks.json");
    let written = fs::read_to_string(&hooks).unwrap();
    fs::write(&hooks, written.replace("\"timeout\": 10", "\"timeout\": 11")).unwrap();
    assert!(page().contains("differs from what setup writes"), "{}", page());
    let fix = id(&browser.get(&server, "/api/agents").json()["connections"][0]["fix"]);
    assert_eq!(fix, "baton setup claude-code --scope user");
}
