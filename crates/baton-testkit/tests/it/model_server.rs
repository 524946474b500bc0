//! The fake model itself, as far as tests and benches rely on it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use baton_testkit::model_server::{Behaviour, ModelServer};
use serde_json::{Value, json};

/// A client that keeps its connection open.
struct Client(BufReader<TcpStream>);

impl Client {
    fn new(server: &ModelServer) -> Self {
        let address = server.url().replace("http://", "");
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends a body and returns status and answer; `None` if the connection was closed.
    fn post(&mut self, path: &str, body: &str) -> Option<(u16, Value)> {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        self.0.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut line = String::new();
        if self.0.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            let mut header = String::new();
            self.0.read_line(&mut header).unwrap();
            match header.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer).unwrap();
        Some((status, serde_json::from_slice(&answer).unwrap_or_default()))
    }
}

fn body(text: &str) -> String {
    json!({ "model": "m", "max_tokens": 1024, "messages": [{ "role": "user", "content": text }] }).to_string()
}

#[test]
fn both_apis_answer_for_the_item_that_was_sent() {
    let server = ModelServer::start();
    let mut client = Client::new(&server);
    let (status, answer) = client.post("/v1/messages", &body("item- and item-42 and item-43")).unwrap();
    assert_eq!(status, 200);
    assert!(answer["content"][0]["text"].as_str().unwrap().contains("\"title\":\"Compressed item-42\""));
    let (_, answer) = client.post("/v1/chat/completions", &body("item-9")).unwrap();
    assert!(answer["choices"][0]["message"]["content"].as_str().unwrap().contains("Compressed item-9"));
    let (status, _) = client.post("/v1/elsewhere", &body("x")).unwrap();
    assert_eq!(status, 404);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(
        (requests[1].path.as_str(), requests[1].prompt().as_str()),
        ("/v1/chat/completions", "item-9")
    );
    assert_eq!((server.received(), server.answered(), server.connections()), (3, 3, 1));
}

#[test]
fn script_comes_before_the_default_behaviour() {
    let server = ModelServer::start();
    server.behave(Behaviour::ServerError);
    server.script([Behaviour::Good, Behaviour::rate_limited(3), Behaviour::Overloaded]);
    let mut client = Client::new(&server);
    let statuses: Vec<u16> = (0..5).map(|_| client.post("/v1/messages", &body("x")).unwrap().0).collect();
    assert_eq!(statuses, [200, 429, 529, 500, 500]);
    server.behave(Behaviour::Good);
    assert_eq!(client.post("/v1/messages", &body("x")).unwrap().0, 200);
    server.script([Behaviour::CloseConnection]);
    assert!(client.post("/v1/messages", &body("x")).is_none());
}

#[test]
fn dropping_the_server_ends_hanging_requests() {
    let server = ModelServer::start();
    server.behave(Behaviour::Hang);
    let mut client = Client::new(&server);
    let waiting = std::thread::spawn(move || client.post("/v1/messages", &body("x")));
    server.wait_for_requests(1);
    assert_eq!((server.received(), server.answered()), (1, 0));
    drop(server);
    assert!(waiting.join().unwrap().is_none());
}

#[test]
fn connections_are_reused() {
    const REQUESTS: usize = 1_000;
    let server = ModelServer::start();
    let text = body(&format!("item-1 {}", "x".repeat(10_000)));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = Client::new(&server);
                for _ in 0..REQUESTS {
                    assert_eq!(client.post("/v1/messages", &text).unwrap().0, 200);
                }
            });
        }
    });
    assert_eq!((server.received(), server.connections()), (2 * REQUESTS as u64, 2));
}
