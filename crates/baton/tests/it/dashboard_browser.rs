//! The dashboard in real Chromium: live updates, search, keyboard, phone width, themes, hostile text, no script.
//!
//! Screenshots are written to `target/tmp/dashboard/`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use baton_core::SessionId;
use baton_store::{Durability, StoreError};
use baton_testkit::browser::Browser;
use serde_json::{Value, json};

use crate::dashboard_http::sign_in_path;
use crate::dashboard_machine::drifted_task;
use crate::hooked::Hooked;
use crate::served::{Served, id, with};

/// A dashboard in a browser.
struct Dashboard {
    browser: Browser,
    url: String,
}

impl Dashboard {
    /// Signs in. Returns `None` if no browser is installed.
    fn open(served: &Served) -> Option<Self> {
        Self::sign_in(served.url(), &sign_in_path(served))
    }

    fn sign_in(url: &str, path: &str) -> Option<Self> {
        let mut browser = Browser::start()?;
        browser.open(&format!("{url}{path}"));
        browser.wait_for("location.pathname === '/'");
        Some(Self { browser, url: url.to_owned() })
    }

    fn show(&mut self, path: &str) {
        self.browser.open(&format!("{}{path}", self.url));
    }

    fn text(&mut self) -> String {
        id(&self.browser.evaluate("document.body.innerText"))
    }

    fn screenshot(&mut self, name: &str) {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dashboard");
        self.browser.screenshot(&folder.join(format!("{name}.png")));
    }

    /// Takes a screenshot at the width of a desktop and of a phone in both themes. The page must not be wider.
    #[track_caller]
    fn screenshots(&mut self, name: &str) {
        for (width, height) in [(1280, 900), (360, 740)] {
            self.browser.resize(width, height);
            for scheme in ["light", "dark"] {
                self.browser.set_color_scheme(scheme);
                let overflow = self.browser.evaluate("document.documentElement.scrollWidth - innerWidth");
                assert_eq!(overflow, 0, "{name} is wider than {width} px");
                self.screenshot(&format!("{name}-{scheme}-{width}"));
            }
        }
    }

    #[track_caller]
    fn assert_no_problems(&mut self) {
        assert_eq!(self.browser.take_problems(), Vec::<String>::new());
    }
}

/// Stores work of two agents as their hooks do.
fn work(hooked: &Hooked) {
    let chat = |session: &str, event: &str, more: Value| {
        with(with(hooked.claude(event, json!({})), json!({ "session_id": session })), more)
    };
    let start = |session: &str| {
        hooked.call(
            &["session-start"],
            chat(session, "SessionStart", json!({ "source": "startup" })).to_string().as_bytes(),
        );
    };
    let edit = |session: &str, file: &str| {
        let path = hooked.home.working_folder().join(file);
        let report = json!({
            "tool_name": "Edit", "tool_use_id": format!("{session}-{file}"),
            "tool_input": { "file_path": path, "old_string": "a", "new_string": "b" },
            "tool_response": { "filePath": path },
        });
        hooked.hook("post-tool-use", &chat(session, "PostToolUse", report));
    };
    let [first, second] = ["0f3b8a52-7a54-4b1c-9d0e-000000000001", "0f3b8a52-7a54-4b1c-9d0e-000000000002"];
    start(first);
    let prompt = "Let users stay signed in for thirty days, and write a test for it.";
    hooked.hook("user-prompt-submit", &chat(first, "UserPromptSubmit", json!({ "prompt": prompt })));
    edit(first, "src/session.rs");
    edit(first, "src/cookies.rs");
    let test = json!({
        "tool_name": "Bash", "tool_use_id": "t1", "tool_input": { "command": "cargo test session", "description": "Run the tests" },
        "tool_response": { "stdout": "test result: ok. 12 passed; 0 failed", "stderr": "", "interrupted": false, "isImage": false },
    });
    hooked.hook("post-tool-use", &chat(first, "PostToolUse", test));
    let closing = "Sessions now last thirty days. The cookie carries a signed expiry, and the server checks it on every \
                   request. I added a test for an expired cookie.\n\nThe admin pages still use the old session; that is next.";
    hooked.call(
        &["stop"],
        chat(first, "Stop", json!({ "last_assistant_message": closing })).to_string().as_bytes(),
    );
    start(second);
    let prompt = "Review the cookie code and look for timing attacks.";
    hooked.hook("user-prompt-submit", &chat(second, "UserPromptSubmit", json!({ "prompt": prompt })));
    edit(second, "src/cookies.rs");
    hooked.work();
}

#[test]
fn a_session_appears_and_becomes_stale_without_loading_the_page_again() {
    for served in Served::each() {
        let Some(mut dashboard) = Dashboard::open(&served) else { return };
        dashboard.browser.wait_for("document.body.innerText.includes('No session is active')");
        dashboard.screenshot("now-empty");
        dashboard.browser.evaluate("window.loadedOnce = true");
        let started = Instant::now();
        let session = served.start("claude-1");
        let card = format!("document.getElementById('{session}')");
        dashboard.browser.wait_for(&format!("{card}?.dataset.state === 'live'"));
        println!("the session appeared after {} ms", started.elapsed().as_millis());
        // Makes the session stale in two seconds.
        let store = served.store();
        let session_id: SessionId = session.parse().unwrap();
        let written = store.write::<_, StoreError, _>(Durability::Lazy, move |tx| {
            let mut found = tx.lock_session(session_id)?.unwrap();
            let stale_after = Duration::from_secs(45 * 60 - 2);
            found.last_heartbeat_at = found.last_heartbeat_at.minus(stale_after);
            tx.update_session(&found)
        });
        written.wait().unwrap();
        dashboard.browser.wait_for(&format!("{card}?.dataset.state === 'stale'"));
        assert_eq!(dashboard.browser.evaluate("window.loadedOnce"), true);
        dashboard.assert_no_problems();
    }
}

#[test]
fn dashboard_shows_and_finds_work_and_previews_the_next_chat() {
    let hooked = Hooked::new();
    work(&hooked);
    let home = &hooked.home;
    let server = home.serve();
    let Some(mut dashboard) = Dashboard::sign_in(server.url(), &sign_in_path(&server)) else { return };

    let now = dashboard.text();
    for expected in
        ["2 active sessions in 1 repository", "Sessions now last thirty days", "src/cookies.rs is changed by"]
    {
        assert!(now.contains(expected), "{expected}: {now}");
    }
    dashboard.screenshot("now");
    let bytes = dashboard.browser.transferred_bytes();
    println!("the page and its assets have {bytes} bytes");
    assert!(bytes <= 150 * 1024, "{bytes} bytes");

    dashboard.show("/ui/sessions");
    dashboard.screenshot("sessions");
    let first = "[...document.querySelectorAll('.rows a.title')].at(-1)";
    dashboard.browser.evaluate(&format!("{first}.click()"));
    dashboard.browser.wait_for("document.querySelector('.story .turn') !== null");
    let story = dashboard.text();
    for expected in ["Let users stay signed in", "3 actions", "I added a test for an expired cookie"] {
        assert!(story.contains(expected), "{expected}: {story}");
    }
    dashboard.browser.evaluate("document.querySelector('.turn details').open = true");
    dashboard.screenshot("session");

    dashboard.show("/ui/memory");
    dashboard.screenshot("memory-empty");
    dashboard.browser.write("signed expiry cookie");
    dashboard.browser.wait_for("document.querySelectorAll('#results .rows li').length > 0");
    dashboard.browser.wait_for("location.search.includes('signed')");
    assert!(dashboard.browser.evaluate("document.querySelector('#results .why').innerText.length") != 0);
    dashboard.screenshot("memory");
    dashboard.browser.evaluate("document.querySelector('#results a.title').click()");
    dashboard.browser.wait_for("location.pathname.startsWith('/ui/items/')");
    dashboard.screenshot("item");

    // What the page shows is what the hook of the next chat prints; only the first line differs.
    let repo = id(&hooked.sessions()[0]["repo"]);
    dashboard.show(&format!("/ui/next?repo={repo}&client=claude-code"));
    let shown = id(&dashboard.browser.evaluate("document.getElementById('bundle-text').textContent"));
    dashboard.screenshot("next-chat");
    let report = with(
        hooked.claude("SessionStart", json!({ "source": "startup" })),
        json!({ "session_id": "0f3b8a52-7a54-4b1c-9d0e-00000000000f" }),
    );
    let answer: Value =
        serde_json::from_str(&hooked.call(&["session-start"], report.to_string().as_bytes()).stdout).unwrap();
    let injected = id(&answer["hookSpecificOutput"]["additionalContext"]);
    let rest = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert!(rest(&shown).len() > 3, "{shown}");
    assert_eq!(rest(&shown), rest(&injected));

    dashboard.show("/ui/handoffs");
    dashboard.screenshot("handoffs-empty");
    dashboard.browser.evaluate(
        "document.querySelector('#write summary').click(); \
         document.getElementById('write-repo').value = document.querySelector('#repos option').value; \
         document.getElementById('summary').value = 'The schema may change until Friday'; \
         document.querySelector('#write button.primary').click()",
    );
    dashboard.browser.wait_for("document.querySelector('.rows')?.innerText.includes('until Friday')");
    dashboard.screenshot("handoffs");

    dashboard.show("/ui/worker");
    dashboard.browser.wait_for("document.querySelector('[data-plot] .u-wrap') !== null");
    dashboard.screenshots("worker");
    dashboard.assert_no_problems();
}

#[test]
fn drifted_tasks_and_connections_of_agents_are_shown() {
    let checkout = drifted_task();
    let server = checkout.home.serve();
    let Some(mut dashboard) = Dashboard::sign_in(server.url(), &sign_in_path(&server)) else { return };
    dashboard.browser.wait_for("document.body.innerText.includes('TASK-0824 has 1 open drift')");
    dashboard.browser.evaluate("document.querySelector('.attention a').click()");
    dashboard.browser.wait_for("location.pathname === '/ui/tasks/show'");
    let text = dashboard.text();
    for expected in ["src/new.rs", "edited_by_hand", "settings::slow", "1 passed, 1 failed"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let roles = "[...document.querySelectorAll('.pipeline .agent')].map(role => role.innerText)";
    assert_eq!(dashboard.browser.evaluate(roles), json!(["implementer", "reviewer", "validator"]));
    // The diff of an open drift is open; the diff of a role opens without a script.
    let open = "[...document.querySelectorAll('details')].map(details => details.open)";
    assert_eq!(dashboard.browser.evaluate(open), json!([true, false]));
    assert!(dashboard.browser.transferred_bytes() <= 150 * 1024);
    dashboard.screenshots("task");
    dashboard.show("/ui/tasks");
    dashboard.screenshots("tasks");
    assert_eq!(checkout.home.run(&["setup", "claude-code"]).code, 0);
    dashboard.show("/ui/agents?probe=true");
    assert!(dashboard.text().contains("responds with"), "{}", dashboard.text());
    dashboard.screenshots("agents");
    dashboard.assert_no_problems();
}

#[test]
fn two_checkpoints_are_compared_key_by_key() {
    let served = Served::sqlite();
    let contexts = [
        json!({ "goal": "Stay signed in", "decisions": ["cookies"], "open_questions": ["How long?"] }),
        json!({ "goal": "Stay signed in", "decisions": ["cookies", "thirty days"], "open_questions": ["How long?"] }),
        json!({ "goal": "Stay signed in for thirty days", "decisions": ["cookies", "thirty days"], "tests": { "passed": 12 } }),
    ];
    for context in contexts {
        let saved = json!({ "sessionId": "sign-in", "venture": "local", "context": context });
        served.ok("/api/checkpoints", &saved);
    }
    let Some(mut dashboard) = Dashboard::open(&served) else { return };
    dashboard.show("/ui/workflows");
    dashboard.browser.evaluate("document.querySelector('.rows a.title').click()");
    dashboard.browser.wait_for("document.querySelector('table.diff') !== null");
    // The newest two are compared first; the oldest is chosen by hand.
    dashboard.browser.evaluate("[...document.querySelectorAll('input[name=from]')].at(-1).click()");
    dashboard.browser.evaluate("document.querySelector('main form button').click()");
    dashboard.browser.wait_for("location.search.includes('from=')");
    let rows = "[...document.querySelectorAll('table.diff tbody tr')].map(row => row.className + ' ' + row.cells[0].innerText)";
    let mut rows: Vec<String> = serde_json::from_value(dashboard.browser.evaluate(rows)).unwrap();
    rows.sort();
    assert_eq!(rows, ["added decisions[1]", "added tests", "changed goal", "removed open_questions"]);
    let chosen = "[...document.querySelectorAll('input[type=radio]')].flatMap((radio, place) => radio.checked ? [place] : [])";
    assert_eq!(dashboard.browser.evaluate(chosen), json!([1, 4]), "the compared checkpoints stay selected");
    dashboard.browser.evaluate("document.getElementById('keys-of-context').open = true");
    dashboard.screenshots("workflow");
    dashboard.assert_no_problems();
}

#[test]
fn the_dashboard_is_usable_with_the_keyboard_on_a_phone_in_both_themes_and_without_script() {
    let served = Served::sqlite();
    let hostile = "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">";
    let blocked = json!({ "summary": hostile, "status_label": "blocked", "blockers": [hostile], "next_actions": ["Ask for access"] });
    let (_, handoff) = served.relay(
        &json!({ "agent": "codex-2", "venture": "local", "repo": "acme/api", "branch": hostile }),
        &blocked,
    );
    for (agent, repo) in [
        ("claude-1", "acme/webshop"),
        ("codex-2", "acme/webshop"),
        ("gemini-3", "acme/a-repository-with-quite-a-long-name"),
    ] {
        served.ok(
            "/sod",
            &json!({ "agent": agent, "venture": "local", "repo": repo, "branch": "feature/stay-signed-in" }),
        );
    }
    let Some(mut dashboard) = Dashboard::open(&served) else { return };

    // Keyboard only: choose the second session and open it, search, help.
    let selected = "document.querySelector('[data-row].selected')";
    for _ in 0..3 {
        dashboard.browser.press("j");
    }
    dashboard.browser.press("k");
    dashboard
        .browser
        .wait_for(&format!("[...document.querySelectorAll('[data-row]')].indexOf({selected}) === 1"));
    dashboard.browser.press("?");
    dashboard.browser.wait_for("document.getElementById('keys').open");
    dashboard.screenshot("keyboard");
    dashboard.browser.press("Escape");
    dashboard.browser.wait_for("!document.getElementById('keys').open");
    dashboard.browser.evaluate(&format!("{selected}.querySelector('a').focus()"));
    dashboard.browser.press("Enter");
    dashboard.browser.wait_for("location.pathname.startsWith('/ui/sessions/')");
    dashboard.browser.press("/");
    dashboard.browser.wait_for("location.pathname === '/ui/memory' && document.activeElement.id === 'q'");

    let pages = [
        "/",
        "/ui/sessions",
        "/ui/next",
        "/ui/memory?q=access",
        "/ui/handoffs",
        "/ui/workflows",
        "/ui/tasks",
        "/ui/worker",
        "/ui/requests",
        "/ui/activity",
        "/ui/agents",
    ];
    let pages: Vec<String> =
        pages.map(str::to_owned).into_iter().chain([format!("/ui/handoffs/{handoff}")]).collect();
    for (width, height) in [(1280, 900), (360, 740)] {
        dashboard.browser.resize(width, height);
        for scheme in ["light", "dark"] {
            dashboard.browser.set_color_scheme(scheme);
            for (place, page) in pages.iter().enumerate() {
                dashboard.show(page);
                let overflow =
                    dashboard.browser.evaluate("document.documentElement.scrollWidth - innerWidth");
                assert_eq!(overflow, 0, "{page} is wider than {width} px");
                assert_ne!(dashboard.browser.evaluate("document.title"), "hacked", "{page}");
                dashboard.screenshot(&format!("{scheme}-{width}-{place}"));
            }
            let background =
                dashboard.browser.evaluate("getComputedStyle(document.documentElement).backgroundColor");
            assert_eq!(background == "rgb(22, 21, 18)", scheme == "dark", "{background}");
        }
    }
    let text = dashboard.text();
    assert!(text.contains("<script>document.title='hacked'</script>"), "{text}");
    dashboard.show("/");
    dashboard.browser.evaluate("document.querySelector('button[value=light]').click()");
    dashboard.browser.wait_for("document.documentElement.dataset.theme === 'light'");
    dashboard.assert_no_problems();

    dashboard.browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    for page in &pages {
        dashboard.show(page);
        let text = dashboard.text();
        assert!(text.contains("Baton") && text.contains("This page as JSON"), "{page}: {text}");
    }
}
