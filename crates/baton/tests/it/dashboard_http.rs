//! The dashboard over HTTP: sign-in, access, protection of forms, headers, and text of agents in pages.

use baton_store::{DailyUsage, Durability, StoreError};
use baton_testkit::binary::{Answer, Home, RELAY_KEY, ServerProcess};
use baton_testkit::processes::wait_until;
use serde_json::json;

use crate::served::{Served, expect, id, who, with};

/// A browser that is signed in.
pub(crate) struct SignedIn {
    pub(crate) cookie: String,
}

impl SignedIn {
    /// Signs in with a one-time link.
    pub(crate) fn new(server: &ServerProcess) -> Self {
        let path = sign_in_path(server);
        let answer = server.send("GET", &path, &[("x-relay-key", "")], b"");
        assert_eq!(answer.status, 200, "{}", answer.text);
        Self { cookie: cookie_of(&answer) }
    }

    pub(crate) fn get(&self, server: &ServerProcess, path: &str) -> Answer {
        server.send("GET", path, &[("cookie", &self.cookie), ("X-Relay-Key", "")], b"")
    }

    /// Sends a form as a browser does.
    fn send(&self, server: &ServerProcess, path: &str, form: &str, headers: &[(&str, &str)]) -> Answer {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let all = [&[("cookie", self.cookie.as_str()), ("X-Relay-Key", ""), kind], headers].concat();
        server.send("POST", path, &all, form.as_bytes())
    }
}

/// Asks the server for a one-time link.
pub(crate) fn sign_in_path(server: &ServerProcess) -> String {
    let made = server.send("POST", "/ui/signin/link", &[("x-relay-key", RELAY_KEY)], b"");
    assert_eq!(made.status, 200, "{}", made.text);
    id(&made.json()["path"])
}

fn cookie_of(answer: &Answer) -> String {
    let set = answer.header("set-cookie").unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict") && set.contains("Path=/"), "{set}");
    set.split(';').next().unwrap().to_owned()
}

/// Signs in with a token of one venture.
pub(crate) fn sign_in_with_token(server: &ServerProcess, home: &Home, venture: &str) -> SignedIn {
    let made = home.run(&["token", "create", "--name", "one", "--venture", venture, "--format", "json"]);
    let form = format!("credential={}&next=%2F", id(&made.json()["data"]["token"]));
    let answer = SignedIn { cookie: String::new() }.send(server, "/ui/signin", &form, &[SAME_ORIGIN]);
    assert_eq!(answer.status, 200, "{}", answer.text);
    SignedIn { cookie: cookie_of(&answer) }
}

/// Returns the value of a hidden field.
fn hidden(page: &str, name: &str) -> String {
    let from = page.find(&format!("name=\"{name}\" value=\"")).unwrap();
    page[from..].split('"').nth(3).unwrap().to_owned()
}

const SAME_ORIGIN: (&str, &str) = ("sec-fetch-site", "same-origin");

#[test]
fn pages_need_a_sign_in_and_a_link_works_once() {
    for served in Served::each() {
        let path = sign_in_path(&served);
        for page in ["/", "/ui/sessions", "/ui/next", "/ui/memory", "/ui/handoffs"] {
            let answer = served.send("GET", page, &[("X-Relay-Key", "")], b"");
            assert_eq!(answer.status, 401, "{page}");
            assert!(answer.text.contains("Sign in to Baton"), "{page}: {}", answer.text);
        }
        let first = served.send("GET", &path, &[("X-Relay-Key", "")], b"");
        let browser = SignedIn { cookie: cookie_of(&first) };
        assert_eq!(browser.get(&served, "/").status, 200);
        let second = served.send("GET", &path, &[("X-Relay-Key", "")], b"");
        assert_eq!((second.status, second.header("set-cookie")), (401, None));
        let expired = SignedIn { cookie: browser.cookie.replace("local.bt_", "local.bt_0") };
        let refused = expired.get(&served, "/ui/sessions");
        assert_eq!(refused.status, 401);
        assert!(refused.text.contains("expired"), "{}", refused.text);
    }
}

#[test]
fn every_page_has_a_strict_policy_and_a_json_equivalent() {
    let served = Served::sqlite();
    let browser = SignedIn::new(&served);
    let (session, handoff) =
        served.relay(&who("a"), &json!({ "summary": "half done", "blockers": ["no database"] }));
    let pages = [
        "/",
        "/ui/sessions",
        "/ui/next",
        "/ui/memory",
        "/ui/memory?q=half",
        "/ui/handoffs?venture=v",
        "/ui/workflows",
        "/ui/tasks",
        "/ui/worker",
        "/ui/requests",
        "/ui/activity",
        "/ui/agents",
    ];
    let pages = pages.map(str::to_owned).into_iter();
    for page in pages.chain([format!("/ui/sessions/{session}"), format!("/ui/handoffs/{handoff}")]) {
        let answer = browser.get(&served, &page);
        assert_eq!(answer.status, 200, "{page}: {}", answer.text);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{page}");
        for forbidden in ["<style", "style=\"", "onclick", "javascript:", "http://", "https://"] {
            assert!(!answer.text.contains(forbidden), "{page} contains {forbidden}");
        }
        let json = answer.text.split("<footer><a href=\"").nth(1).unwrap().split('"').next().unwrap();
        let json = json.replace("&amp;", "&");
        let data = browser.get(&served, &json);
        assert_eq!(
            (data.status, data.header("content-type")),
            (200, Some("application/json")),
            "{page}: {json}"
        );
    }
    for (page, status) in [
        ("/ui/nothing", 404),
        ("/ui/sessions/sess_01M7H6D3AHF4DP3YJEERGQ2KGT", 404),
        ("/ui/workflows/missing", 404),
        ("/ui/sessions/%00%ff", 400),
    ] {
        let answer = browser.get(&served, page);
        assert_eq!(answer.status, status, "{page}: {}", answer.text);
        assert!(answer.header("content-security-policy").is_some(), "{page}");
        let title = if status == 404 { "<h1>Not found</h1>" } else { "<h1>Invalid input</h1>" };
        assert!(answer.text.contains(title), "{page}: {}", answer.text);
    }
    assert!(served.send("GET", "/ui/nothing", &[("X-Relay-Key", "")], b"").text.contains("Sign in to Baton"));
}

#[test]
fn signing_out_ends_the_sign_in_of_this_browser_only() {
    for served in Served::each() {
        let (browser, other) = (SignedIn::new(&served), SignedIn::new(&served));
        let token = sign_in_with_token(&served, &served.home, "v");
        for one in [&browser, &token] {
            let out = one.send(&served, "/ui/signout", "", &[SAME_ORIGIN]);
            assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"), "{out:?}");
        }
        assert_eq!(browser.get(&served, "/").status, 401, "the cookie is worthless after signing out");
        assert_eq!(other.get(&served, "/").status, 200);
        assert_eq!(token.get(&served, "/").status, 200, "the user may need the token elsewhere");
        let tokens = served.home.run(&["token", "list", "--format", "json"]).json();
        let browsers: Vec<_> = tokens["data"]["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["name"] == "browser")
            .collect();
        let is_revoked = browsers.iter().map(|one| !one["revoked_at"].is_null()).collect::<Vec<_>>();
        assert_eq!(is_revoked.iter().filter(|revoked| **revoked).count(), 1, "{tokens}");
        assert_eq!(is_revoked.len(), 2, "{tokens}");
    }
}

#[test]
fn a_credential_that_may_only_read_sees_no_forms() {
    let served = Served::sqlite();
    let session = served.start("a");
    let handoff = json!({ "session_id": session, "handoff": { "summary": "take over" } });
    let handoff = id(&served.ok("/handoffs", &handoff)["handoff_id"]);
    let made =
        served.home.run(&["token", "create", "--name", "eyes", "--access", "read", "--format", "json"]);
    let form = format!("credential={}&next=%2F", id(&made.json()["data"]["token"]));
    let answer = SignedIn { cookie: String::new() }.send(&served, "/ui/signin", &form, &[SAME_ORIGIN]);
    let (reader, writer) = (SignedIn { cookie: cookie_of(&answer) }, SignedIn::new(&served));
    for page in [
        "/ui/handoffs?venture=v".to_owned(),
        format!("/ui/handoffs/{handoff}"),
        format!("/ui/items/{handoff}"),
    ] {
        assert!(writer.get(&served, &page).text.contains("action=\"/ui/call/"), "{page}");
        let shown = reader.get(&served, &page);
        assert_eq!(shown.status, 200, "{page}: {}", shown.text);
        assert!(!shown.text.contains("action=\"/ui/call/"), "{page}: {}", shown.text);
    }
}

#[test]
fn the_request_log_contains_no_pages_and_no_errors_of_their_own() {
    let served = Served::sqlite();
    let browser = SignedIn::new(&served);
    let saved = json!({ "venture": "v", "sessionId": "flow", "context": { "task": "one" } });
    served.ok("/api/checkpoints", &saved);
    let page = browser.get(&served, "/ui/workflows/flow?venture=v");
    assert!(page.status == 200 && !page.text.contains("type=\"radio\""), "{}", page.text);
    assert!(page.text.contains("/api/checkpoints/explain"), "{}", page.text);
    assert_eq!(browser.get(&served, "/ui/nothing").status, 404);
    let logged = || {
        let found = served.found("/api/requests");
        let list = found["requests"].as_array().unwrap().clone();
        list.into_iter()
            .map(|one| (one["endpoint"].as_str().unwrap().to_owned(), one["status_code"].clone()))
            .collect::<Vec<_>>()
    };
    wait_until("the missing page is logged", || logged().contains(&("/ui/nothing".to_owned(), json!(404))));
    let all = logged();
    let errors: Vec<_> = all.iter().filter(|(_, status)| status.as_i64().unwrap() >= 400).collect();
    assert_eq!(errors.len(), 1, "{all:?}");
    assert!(!all.iter().any(|(endpoint, _)| endpoint.starts_with("/ui/workflows")), "{all:?}");
}

#[test]
fn a_rejected_request_for_a_link_is_logged_once_with_its_correlation_id() {
    let served = Served::sqlite();
    let refused = served.send("POST", "/ui/signin/link", &[("x-relay-key", "wrong")], b"");
    assert_eq!(refused.status, 401, "{}", refused.text);
    let correlation_id = id(&refused.json()["correlation_id"]);
    assert_eq!(refused.header("x-correlation-id"), Some(correlation_id.as_str()));
    // Records are written in order, so the record of the link precedes that of the session.
    served.start("a");
    let logged = || {
        let found = served.found("/api/requests");
        let list = found["requests"].as_array().unwrap().clone();
        list.into_iter().map(|one| one["endpoint"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    wait_until("the session is logged", || logged().contains(&"/sod".to_owned()));
    assert_eq!(logged().iter().filter(|endpoint| *endpoint == "/ui/signin/link").count(), 1);
}

#[test]
fn the_handoffs_page_keeps_its_filters_in_the_link_to_json() {
    let served = Served::sqlite();
    let page =
        SignedIn::new(&served).get(&served, "/ui/handoffs?venture=v&repo=o%2Fr&from_agent=a&to_agent=b");
    let link = "/handoffs?repo=o%2Fr&amp;from_agent=a&amp;to_agent=b&amp;venture=v";
    assert!(page.text.contains(&format!("<footer><a href=\"{link}\"")), "{}", page.text);
}

#[test]
fn lists_of_workflows_and_tasks_have_a_next_page() {
    let served = Served::sqlite();
    for number in 0..51 {
        let workflow = json!({ "sessionId": format!("flow-{number}"), "venture": "v", "context": {} });
        expect(&served.post("/api/checkpoints", &workflow), 200);
        let task = json!({
            "task_id": format!("TASK-{number:04}"), "host": "h", "checkout": "/c", "venture": "v",
            "status": "pending",
        });
        expect(&served.post("/api/tasks", &task), 200);
    }
    let browser = SignedIn::new(&served);
    for path in ["/ui/workflows", "/ui/tasks"] {
        let first = browser.get(&served, &format!("{path}?venture=v")).text;
        assert_eq!(first.matches("<li data-row").count(), 50, "{first}");
        let next = format!("{path}?venture=v&amp;offset=50");
        assert!(first.contains(&format!("href=\"{next}\"")), "{first}");
        let last = browser.get(&served, &next.replace("&amp;", "&")).text;
        assert_eq!(last.matches("<li data-row").count(), 1, "{last}");
        assert!(!last.contains("class=\"pager\""), "{last}");
    }
}

#[test]
fn the_cookie_is_accepted_for_reading_the_api_only() {
    let served = Served::sqlite();
    let browser = SignedIn::new(&served);
    assert_eq!(browser.get(&served, "/active?venture=v").status, 200);
    let headers = [("cookie", browser.cookie.as_str()), ("X-Relay-Key", ""), SAME_ORIGIN];
    let written = served.send("POST", "/sod", &headers, who("a").to_string().as_bytes());
    assert_eq!(written.status, 401, "{}", written.text);
}

#[test]
fn a_form_needs_its_token_and_its_own_origin() {
    for served in Served::each() {
        let browser = SignedIn::new(&served);
        let session = served.start("a");
        let handoff = json!({ "session_id": session, "handoff": { "summary": "take over" } });
        let handoff = id(&served.ok("/handoffs", &handoff)["handoff_id"]);
        let page = browser.get(&served, &format!("/ui/handoffs/{handoff}")).text;
        let (csrf, key) = (hidden(&page, "csrf"), hidden(&page, "idempotency_key"));
        let path = "/ui/call/handoff.ack";
        let form = |csrf: &str| {
            format!("csrf={csrf}&back=%2Fui%2Fhandoffs&idempotency_key={key}&handoff_id={handoff}&agent=me")
        };
        let host = served.url().strip_prefix("http://").unwrap().to_owned();
        let (own, other) = (format!("http://{host}"), "http://localhost:1".to_owned());
        let refused: [(&str, &[(&str, &str)]); 6] = [
            (&csrf, &[("origin", "https://evil.example")]),
            (&csrf, &[]),
            (&csrf, &[("sec-fetch-site", "cross-site")]),
            (&csrf, &[("sec-fetch-site", "same-site")]),
            (&csrf, &[("origin", &other)]),
            ("0000", &[SAME_ORIGIN]),
        ];
        for (token, headers) in refused {
            let answer = browser.send(&served, path, &form(token), headers);
            assert_eq!(answer.status, 403, "{token} {headers:?}: {}", answer.text);
            assert!(answer.text.contains("<h1>No access</h1>"), "{token} {headers:?}: {}", answer.text);
        }
        let stranger = SignedIn { cookie: "baton-1=x".to_owned() };
        assert_eq!(stranger.send(&served, path, &form(&csrf), &[SAME_ORIGIN]).status, 403);
        let not_offered = browser.send(&served, "/ui/call/queue.purge", &form(&csrf), &[SAME_ORIGIN]);
        assert_eq!(not_offered.status, 404, "{}", not_offered.text);
        let acked = || served.found(&format!("/handoffs/{handoff}"))["handoff"]["acknowledged_by"].clone();
        assert!(acked().is_null());
        let sent = browser.send(&served, path, &form(&csrf), &[("origin", &own)]);
        assert_eq!((sent.status, sent.header("location")), (303, Some("/ui/handoffs")), "{}", sent.text);
        assert_eq!(acked(), "me");
        let elsewhere = form(&csrf).replace("%2Fui%2Fhandoffs", "%2F%2Fevil.example");
        let sent = browser.send(&served, path, &elsewhere, &[SAME_ORIGIN]);
        assert_eq!((sent.status, sent.header("location")), (303, Some("/")), "{}", sent.text);
    }
}

#[test]
fn a_person_writes_a_handoff_with_a_form() {
    let served = Served::sqlite();
    let browser = SignedIn::new(&served);
    let page = browser.get(&served, "/ui/handoffs?venture=v").text;
    let form = format!(
        "csrf={}&idempotency_key={}&back=/ui/handoffs&venture=v&author=alice&repo=o/r&branch=&handoff.summary=Half+done\
         &handoff.status_label=blocked&handoff.blockers[]=No+database%0D%0ANo+key&handoff.next_actions[]=",
        hidden(&page, "csrf"),
        hidden(&page, "idempotency_key")
    );
    for _ in 0..2 {
        assert_eq!(browser.send(&served, "/ui/call/handoff.leave", &form, &[SAME_ORIGIN]).status, 303);
    }
    let listed = served.found("/handoffs?venture=v");
    let written = listed["handoffs"].as_array().unwrap();
    assert_eq!(written.len(), 1, "a form that is sent twice has one effect: {written:?}");
    let handoff = &written[0];
    assert_eq!((&handoff["summary"], &handoff["status_label"]), (&json!("Half done"), &json!("blocked")));
    assert_eq!(handoff["payload"], json!({ "blockers": ["No database", "No key"] }));
    assert_eq!((&handoff["from_agent"], &handoff["written_by"]), (&json!("alice"), &json!("person")));
    let started = served.ok("/sod", &with(who("codex"), json!({ "repo": "o/r" })));
    assert_eq!((&started["last_handoff"]["id"], &started["agent_handoff"]), (&handoff["id"], &json!(null)));
    assert_eq!(started["open_blockers"], json!(["No database", "No key"]));
    let now = browser.get(&served, "/").text;
    assert!(now.contains("alice is blocked: No database"), "{now}");
}

#[test]
fn an_item_is_corrected_with_forms() {
    let served = Served::sqlite();
    let browser = SignedIn::new(&served);
    let session = served.start("a");
    let note = |text: &str| {
        let made = json!({ "session_id": session, "kind": "decision", "text": text });
        id(&served.ok("/api/notes", &made)["note"]["id"])
    };
    let (wrong, right) = (note("Tokens in the header"), note("Cookies: the proxy drops headers"));
    let page = format!("/ui/items/{wrong}");
    let act = |operation: &str, more: &str| {
        let shown = browser.get(&served, &page).text;
        let form = format!(
            "csrf={}&idempotency_key={}&back={page}&id={wrong}{more}",
            hidden(&shown, "csrf"),
            hidden(&shown, "idempotency_key")
        );
        let sent = browser.send(&served, &format!("/ui/call/{operation}"), &form, &[SAME_ORIGIN]);
        assert_eq!(sent.status, 303, "{operation}: {}", sent.text);
        browser.get(&served, &page)
    };
    assert!(act("memory.pin", "").text.contains("This item is pinned"));
    assert!(act("memory.restore", "").text.contains(">Reject</button>"));
    assert!(act("memory.reject", "").text.contains("This item is rejected"));
    act("memory.restore", "");
    let replaced = act("memory.supersede", &format!("&by={right}")).text;
    assert!(replaced.contains("This item is superseded") && replaced.contains(&right), "{replaced}");
    assert_eq!(act("memory.forget", "").status, 404);
}

#[test]
fn a_token_of_one_venture_sees_only_that_venture() {
    for served in Served::each() {
        let mine = with(who("mine-agent"), json!({ "venture": "a", "repo": "mine/repo" }));
        let other = with(who("other-agent"), json!({ "venture": "b", "repo": "other/repo" }));
        served.ok("/sod", &mine);
        let (session, handoff) =
            served.relay(&other, &json!({ "summary": "other-summary", "blockers": ["other-blocker"] }));
        served.ok("/sod", &other);
        let made = served.home.run(&["token", "create", "--name", "x", "--venture", "a", "--format", "json"]);
        let token = id(&made.json()["data"]["token"]);
        let form = format!("credential={token}&next=%2Fui%2Fsessions");
        let stranger = SignedIn { cookie: String::new() };
        let answer = stranger.send(&served, "/ui/signin", &form, &[SAME_ORIGIN]);
        assert_eq!(answer.status, 200, "{}", answer.text);
        let browser = SignedIn { cookie: cookie_of(&answer) };
        for page in ["/", "/ui/sessions", "/ui/next", "/ui/memory?q=other-summary", "/ui/handoffs"] {
            let shown = browser.get(&served, page);
            assert_eq!(shown.status, 200, "{page}: {}", shown.text);
            let text = shown.text.replace("value=\"other-summary\"", "").replace("q=other-summary", "");
            assert!(!text.contains("other-") && !text.contains("other/repo"), "{page}: {text}");
        }
        for page in [
            format!("/ui/sessions/{session}"),
            format!("/ui/handoffs/{handoff}"),
            format!("/ui/items/{handoff}"),
            "/?venture=b".to_owned(),
        ] {
            let shown = browser.get(&served, &page);
            assert!([403, 404].contains(&shown.status), "{page}: {}", shown.status);
            assert!(!shown.text.contains("other-"), "{page}: {}", shown.text);
        }
        let token_id = id(&made.json()["data"]["info"]["id"]);
        assert_eq!(served.home.run(&["token", "revoke", &token_id]).code, 0);
        wait_until("the revoked token is refused", || browser.get(&served, "/").status == 401);
        let again = stranger.send(&served, "/ui/signin", &form, &[SAME_ORIGIN]);
        assert_eq!((again.status, again.header("set-cookie")), (401, None));
    }
}

#[test]
fn worker_page_shows_cost_by_day_and_model() {
    for served in Served::each() {
        let written = served.store().write::<_, StoreError, _>(Durability::Lazy, |tx| {
            for (day, model, micro_usd) in [
                ("2026-01-16", "small-model", 1_000),
                ("2026-01-17", "small-model", 20_000),
                ("2026-01-17", "large-model", 500_000),
            ] {
                tx.add_usage(&DailyUsage {
                    day: day.to_owned(),
                    compressor: "anthropic".to_owned(),
                    model: model.to_owned(),
                    calls: 1,
                    tokens_in: 1_000,
                    tokens_out: 10,
                    micro_usd,
                })?;
            }
            Ok(())
        });
        written.wait().unwrap();
        let days = served.found("/api/health")["cost_by_day"].clone();
        assert_eq!((&days[0]["day"], &days[0]["tokens"]), (&json!("2026-01-17"), &json!(2_020)));
        assert_eq!(days[0]["models"][0], json!({ "model": "large-model", "tokens": 1_010, "cost_usd": 0.5 }));
        assert_eq!(days[1]["models"].as_array().unwrap().len(), 1);
        let page = SignedIn::new(&served).get(&served, "/ui/worker").text;
        for expected in ["<code>large-model</code>", "$0.5000", "all models", "$0.5200", "$0.0010"] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }
}

#[test]
fn hostile_text_is_shown_as_text() {
    let served = Served::sqlite();
    let browser = SignedIn::new(&served);
    let hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}";
    let start = json!({ "agent": "a", "venture": "v", "repo": "o/r", "branch": hostile, "host": hostile, "client": hostile });
    let (session, handoff) = served.relay(
        &start,
        &json!({ "summary": hostile, "status_label": "x", "blockers": [hostile], "next_actions": [hostile] }),
    );
    served.ok("/sod", &start);
    for page in [
        "/".to_owned(),
        "/ui/sessions".to_owned(),
        format!("/ui/sessions/{session}"),
        "/ui/handoffs?venture=v".to_owned(),
        format!("/ui/handoffs/{handoff}"),
        format!("/ui/items/{handoff}"),
        "/ui/next?repo=o/r&venture=v".to_owned(),
        "/ui/memory?q=%3Cscript%3Ealert(1)%3C/script%3E%22onload=%22x".to_owned(),
        "/ui/sessions?agent=%22%3E%3Cscript%3Ealert(1)%3C/script%3E".to_owned(),
    ] {
        let shown = browser.get(&served, &page).text;
        assert!(!shown.contains("<script>alert") && !shown.contains("<img src=x"), "{page}: {shown}");
    }
}

#[test]
fn a_change_is_announced_to_open_dashboards() {
    use std::io::{BufRead, BufReader, Write};
    for served in Served::each() {
        let browser = SignedIn::new(&served);
        let host = served.url().strip_prefix("http://").unwrap();
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        write!(stream, "GET /ui/events HTTP/1.1\r\nhost: {host}\r\ncookie: {}\r\n\r\n", browser.cookie)
            .unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "HTTP/1.1 200 OK");
        assert!(lines.any(|line| line == "retry: 1000"));
        served.start("a");
        // Times on a page are renewed each minute, so an event alone does not show that the start was noticed.
        assert!(lines.any(|line| line == "event: change"));
        assert!(browser.get(&served, "/").text.contains("1 active session in 1 repository."));
        let refused = served.send("GET", "/ui/events", &[("X-Relay-Key", "")], b"");
        assert_eq!(refused.status, 401);
    }
}

#[test]
fn unavailable_store_shows_the_cause_and_the_next_step() {
    let Some(database) = baton_testkit::postgres::TestDatabase::with_schema() else { return };
    let home = Home::new(env!("CARGO_BIN_EXE_baton")).on_postgres(&database.url);
    let server = home.serve();
    let browser = SignedIn::new(&server);
    assert_eq!(browser.get(&server, "/").status, 200);
    drop(database);
    wait_until("the store is unavailable", || browser.get(&server, "/").status == 503);
    let shown = browser.get(&server, "/");
    assert!(
        shown.text.contains("The store is unavailable") && shown.text.contains("baton doctor"),
        "{}",
        shown.text
    );
}

#[test]
fn the_theme_is_kept_in_a_cookie() {
    let served = Served::sqlite();
    let mut browser = SignedIn::new(&served);
    assert!(browser.get(&served, "/").text.contains("data-theme=\"system\""));
    let chosen = browser.send(&served, "/ui/theme", "theme=dark&back=/ui/next", &[SAME_ORIGIN]);
    assert_eq!((chosen.status, chosen.header("location")), (303, Some("/ui/next")));
    browser.cookie = format!("{}; {}", browser.cookie, cookie_of(&chosen));
    assert!(browser.get(&served, "/").text.contains("data-theme=\"dark\""));
    let foreign = browser.send(&served, "/ui/theme", "theme=light", &[("origin", "https://evil.example")]);
    assert_eq!((foreign.status, foreign.header("set-cookie")), (403, None));
}

#[test]
fn open_prints_a_link_and_starts_the_server_if_necessary() {
    let served = Served::sqlite();
    let opened = served.home.run(&["open", "--print", "--server", served.url(), "--format", "json"]);
    assert_eq!(opened.code, 0, "{opened:?}");
    let data = opened.json()["data"].clone();
    assert_eq!((&data["started"], &data["opened"]), (&json!(false), &json!(false)));
    let path = id(&data["url"]).strip_prefix(served.url()).unwrap().to_owned();
    let answer = served.send("GET", &path, &[("X-Relay-Key", "")], b"");
    assert_eq!(answer.status, 200, "{}", answer.text);

    let wrong = served
        .home
        .command()
        .args(["open", "--print", "--server", served.url()])
        .env("BATON_RELAY_KEY", "wrong-key-0123456789")
        .output()
        .unwrap();
    let text = String::from_utf8(wrong.stderr).unwrap();
    assert!(!wrong.status.success() && text.contains("cannot open the dashboard"), "{text}");
}
