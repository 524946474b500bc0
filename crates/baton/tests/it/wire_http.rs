//! HTTP over raw sockets: decisions that depend only on the head of a request, and responses to unparsable requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use baton_testkit::binary::ServerProcess;
use serde_json::{Value, json};

use crate::served::Served;
use crate::tokens_http::token;

const KEY: &str = "X-Relay-Key: test-relay-key-0123456789\r\n";

/// A response as received from the socket.
struct RawAnswer {
    status: u16,
    head: String,
    body: String,
}

impl RawAnswer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

fn connect(server: &ServerProcess) -> BufReader<TcpStream> {
    BufReader::new(TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap())
}

fn send(stream: &mut BufReader<TcpStream>, text: &str) {
    stream.get_mut().write_all(text.as_bytes()).unwrap();
}

fn receive(stream: &mut BufReader<TcpStream>) -> RawAnswer {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "the connection was closed after {head:?}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    RawAnswer { status, head, body: String::from_utf8(body).unwrap() }
}

#[track_caller]
fn assert_closed(mut stream: BufReader<TcpStream>) {
    let mut rest = Vec::new();
    // The server may reset the connection when it closes with unread bytes.
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(String::from_utf8_lossy(&rest), "", "no bytes may follow the response");
}

#[test]
fn a_client_that_expects_100_continue_is_rejected_before_it_sends_the_body() {
    let served = Served::sqlite();
    let (reader, _) = token(&served.home, &["--name", "reader", "--access", "read"]);
    let head = |start: &str, headers: &str, length: usize| {
        format!(
            "{start} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n{headers}Content-Length: {length}\r\n\r\n"
        )
    };
    let json = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let text = "Content-Type: text/plain\r\nAccept: application/json, text/event-stream\r\n";
    for (head, status) in [
        (head("POST /sod", "", 50), 401),
        (head("POST /sod", "X-Relay-Key: wrong\r\n", 50), 401),
        (head("POST /sod", &format!("{KEY}Origin: https://example.com\r\n"), 50), 403),
        (head("POST /sod", &format!("X-Relay-Key: {reader}\r\n"), 50), 403),
        (head("POST /nothing", KEY, 50), 404),
        (head("PUT /sod", KEY, 50), 405),
        (head("POST /sod", KEY, 2 * 1024 * 1024), 413),
        (head("POST /sod", &format!("{KEY}Idempotency-Key: {}\r\n", "k".repeat(300)), 50), 400),
        (head("POST /api/checkpoints", KEY, 64 * 1024 * 1024), 413),
        (head("POST /mcp", json, 50), 401),
        (head("POST /mcp", &format!("{KEY}{json}"), 64 * 1024 * 1024), 413),
        (head("POST /mcp", &format!("{KEY}{text}"), 50), 415),
    ] {
        let mut stream = connect(&served);
        send(&mut stream, &head);
        let answer = receive(&mut stream);
        assert_eq!(answer.status, status, "{head}: {}", answer.head);
        assert!(answer.head.contains("connection: close"), "{}", answer.head);
        assert!(answer.head.contains("x-correlation-id: "), "{}", answer.head);
        assert_closed(stream);
    }
    let body = json!({ "agent": "a", "venture": "v", "repo": "o/r" }).to_string();
    let mut stream = connect(&served);
    for _ in 0..2 {
        send(&mut stream, &head("POST /sod", KEY, body.len()));
        assert_eq!(receive(&mut stream).status, 100, "a valid head must get 100 Continue");
        send(&mut stream, &body);
        assert_eq!(receive(&mut stream).status, 200);
    }
}

#[test]
fn responses_to_unparsable_requests_have_a_body_and_a_correlation_id() {
    let served = Served::sqlite();
    // As many bytes as a request head may have, without an end: the server reads all of them before it responds.
    let filled = |start: &str| format!("{start}{}", "x".repeat(64 * 1024 - start.len()));
    for (request, statuses) in [
        ("nonsense\r\n\r\n".to_owned(), &[400][..]),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), &[400]),
        ("GET / HTTP/1.1\r\nBad Name: x\r\n\r\n".to_owned(), &[400]),
        ("POST /sod HTTP/1.1\r\nHost: localhost\r\nContent-Length: ten\r\n\r\n".to_owned(), &[400]),
        (filled("GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: "), &[431]),
        (filled("GET /"), &[414, 431]),
    ] {
        let mut stream = connect(&served);
        send(&mut stream, &request);
        let answer = receive(&mut stream);
        let start = request.chars().take(60).collect::<String>();
        assert!(statuses.contains(&answer.status), "{start}: {}", answer.head);
        let body = answer.json();
        let id = body["correlation_id"].as_str().unwrap();
        assert!(
            id.starts_with("corr_") && answer.head.contains(&format!("x-correlation-id: {id}")),
            "{}",
            answer.head
        );
        assert!(body["error"].is_string() && body["hint"].is_string(), "{body}");
        assert!(answer.head.contains("connection: close"), "{}", answer.head);
        assert_closed(stream);
    }
    let mut stream = connect(&served);
    let headers: String = (0..500).map(|number| format!("X-{number}: x\r\n")).collect();
    send(&mut stream, &format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
    let answer = receive(&mut stream);
    assert!(
        answer.status == 431 && answer.json()["message"].to_string().contains("100 headers"),
        "{}",
        answer.head
    );
    // The same after a valid request on the same connection.
    let mut stream = connect(&served);
    send(&mut stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n");
    assert_eq!([receive(&mut stream).status, receive(&mut stream).status], [200, 400]);
    assert_closed(stream);
}

#[test]
fn a_request_with_content_length_and_transfer_encoding_is_rejected() {
    let served = Served::sqlite();
    let body = json!({ "agent": "a", "venture": "v", "repo": "o/r" }).to_string();
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let lengths = [
        format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n", body.len()),
        format!("transfer-encoding: chunked\r\ncontent-length: {}\r\n", chunked.len()),
    ];
    for both in lengths {
        let head = format!("POST /sod HTTP/1.1\r\nHost: localhost\r\n{KEY}{both}\r\n");
        let mut stream = connect(&served);
        // The check also applies to later requests on a connection.
        send(&mut stream, &format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n{head}{chunked}"));
        assert_eq!(receive(&mut stream).status, 200);
        let answer = receive(&mut stream);
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (400, &json!("invalid_request")),
            "{}",
            answer.body
        );
        assert!(answer.head.contains("connection: close"), "{}", answer.head);
        assert_closed(stream);
    }
    let mut stream = connect(&served);
    for _ in 0..2 {
        let head =
            format!("POST /sod HTTP/1.1\r\nHost: localhost\r\n{KEY}Transfer-Encoding: chunked\r\n\r\n");
        send(&mut stream, &format!("{head}{chunked}"));
        assert_eq!(receive(&mut stream).status, 200, "transfer encoding alone must be accepted");
    }
    assert_eq!(served.found("/active?venture=v")["sessions"].as_array().unwrap().len(), 1);
}
