//! `baton serve`, and verbs that use a server.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::cli::home;

#[test]
fn session_verbs_work_with_a_server() {
    let served = home();
    let server = served.serve();
    let url = server.url().to_owned();
    let here = home();
    let start = ["session", "start", "--agent", "a", "--repo", "o/r", "--server", &url, "--format", "json"];
    let started = here.run(&start);
    assert_eq!(started.code, 0, "{started:?}");
    assert!(!here.data_dir().join("baton.db").exists(), "nothing must be stored locally");
    let listed = here.run(&["session", "list", "--server", &url, "--format", "json"]).json();
    assert_eq!(listed["data"]["sessions"][0]["id"], started.json()["data"]["session_id"]);
    server.kill();
    let gone = here.run(&start);
    assert_eq!((gone.code, &gone.json()["error"]["code"]), (9, &"server_unreachable".into()));
}

/// Answers one request with a page that is not from Baton, and returns the address.
fn proxy(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let page = "<html>nginx</html>";
        let answer =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}", page.len());
        stream.write_all(answer.as_bytes()).unwrap();
    });
    url
}

#[test]
fn an_error_page_of_a_proxy_is_reported_with_its_status_and_address() {
    for (status, exit, code) in
        [("502 Bad Gateway", 9, "server_unreachable"), ("404 Not Found", 1, "unexpected_response")]
    {
        let url = proxy(status);
        let listed = home().run(&["session", "list", "--server", &url, "--format", "json"]);
        let error = &listed.json()["error"];
        assert_eq!((listed.code, &error["code"]), (exit, &code.into()), "{listed:?}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&url) && message.contains(&status[..3]), "{message}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("check")), "{error}");
    }
}

#[test]
fn token_of_one_venture_uses_that_venture_unless_another_is_chosen() {
    let served = home();
    let created = served.run(&["token", "create", "--name", "ci", "--venture", "acme", "--format", "json"]);
    let token = created.json()["data"]["token"].as_str().unwrap().to_owned();
    let server = served.serve();
    let url = server.url().to_owned();
    let here = home().with("BATON_RELAY_KEY", &token);
    let run = |words: &[&str]| here.run(&[words, &["--server", &url, "--format", "json"]].concat());
    assert_eq!(run(&["session", "start", "--agent", "a", "--repo", "o/r"]).code, 0);
    let listed = run(&["session", "list"]).json();
    assert_eq!(listed["data"]["sessions"][0]["venture"], "acme", "{listed}");
    for words in [
        &["handoff", "list"][..],
        &["handoff", "latest"],
        &["status"],
        &["context", "--repo", "o/r"],
        &["checkpoint", "workflows"],
        &["task", "list", "--everywhere"],
    ] {
        let done = run(words);
        assert_eq!(done.code, 0, "{words:?}: {done:?}");
    }
    assert_eq!(run(&["status"]).json()["data"]["venture"], serde_json::Value::Null, "the server decides");
    let shown = here.run(&["status", "--server", &url]).stdout;
    assert!(shown.contains("venture  default of the server\n"), "{shown}");
    let noted = run(&["note", "Use WAL", "--repo", "o/r"]).json();
    assert_eq!(noted["data"]["note"]["venture"], "acme", "{noted}");
    let chosen = run(&["session", "list", "--venture", "local"]).json();
    assert_eq!(chosen["error"]["code"], "forbidden", "{chosen}");
    let text = ["note", "--repo", "o/r", "--server", &url, "--format", "json", "--", "--venture is optional"];
    assert_eq!(here.run(&text).json()["data"]["note"]["venture"], "acme", "the text of a note is not a flag");
    let configured = here.with("BATON_VENTURE", "local");
    let chosen = configured.run(&["session", "list", "--server", &url, "--format", "json"]).json();
    assert_eq!(chosen["error"]["code"], "forbidden", "{chosen}");
    server.kill();
}

#[test]
fn relay_key_and_tokens_of_all_ventures_use_the_venture_of_the_server() {
    let served = home().with("BATON_VENTURE", "team");
    let created = served.run(&["token", "create", "--name", "ci", "--format", "json"]);
    let token = created.json()["data"]["token"].as_str().unwrap().to_owned();
    let server = served.serve();
    let url = server.url().to_owned();
    let with_token = home().with("BATON_RELAY_KEY", &token);
    for (agent, home) in [("a", home()), ("b", with_token)] {
        let run =
            |words: &[&str]| home.run(&[words, &["--server", &url, "--format", "json"]].concat()).json();
        let started = run(&["session", "start", "--agent", agent, "--repo", "o/r"]);
        assert_eq!(started["data"]["session"]["venture"], "team", "{started}");
        let listed = run(&["session", "list"]);
        assert_eq!(listed["data"]["sessions"][0]["id"], started["data"]["session_id"], "{listed}");
        assert_eq!(run(&["handoff", "list"])["success"], true);
    }
    server.kill();
}

#[test]
fn serve_names_the_process_only_if_the_address_is_in_use() {
    let home = home();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    // No machine has the other address.
    for (address, is_taken) in [(taken.as_str(), true), ("192.0.2.1:7423", false)] {
        let failed = home.run(&["--server", "http://127.0.0.1:9", "serve", "--listen", address]);
        assert_eq!(failed.code, 1, "{failed:?}");
        assert!(failed.stderr.contains("next: choose another address with --listen"), "{failed:?}");
        assert_eq!(failed.stderr.contains("stop the process that uses it"), is_taken, "{failed:?}");
        assert!(failed.stderr.contains("warning: baton serve works on the local store"), "{failed:?}");
    }
}

#[test]
fn serve_rejects_a_relay_key_that_is_short_or_a_token() {
    for (key, why) in
        [("fifteen-letters", "fewer than 16 characters"), ("bt_0123456789abcdef_0123", "it is a token")]
    {
        let in_file = home().with("BATON_RELAY_KEY", "");
        std::fs::create_dir_all(in_file.data_dir()).unwrap();
        std::fs::write(in_file.data_dir().join("relay.key"), key).unwrap();
        for home in [home().with("BATON_RELAY_KEY", key), in_file] {
            // No machine has this address, so a server that accepts the key stops as well.
            let failed = home.run(&["serve", "--listen", "192.0.2.1:1", "--format", "json"]);
            assert_eq!(failed.code, 2, "{failed:?}");
            let error = failed.json()["error"].clone();
            let message = error["message"].as_str().unwrap();
            assert!(error["code"] == "invalid_config" && message.contains(why), "{error}");
            assert!(!failed.stdout.contains(key) && !failed.stderr.contains(key), "{failed:?}");
        }
    }
}
