//! The part of HTTP/1.1 that a model client needs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// Maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A received request.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Parses the body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the content of the only message, or an empty text.
    pub fn prompt(&self) -> String {
        self.json()["messages"][0]["content"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns true if the body contains this text.
    pub(super) fn has(&self, text: &str) -> bool {
        find(&self.body, text.as_bytes()).is_some()
    }
}

/// Returns the position of a text in bytes.
pub(super) fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let mut from = 0;
    while let Some(step) = bytes[from..].iter().position(|byte| *byte == first) {
        let at = from + step;
        if bytes[at..].starts_with(text) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// Reads the next request of a connection; `None` if the client closed it.
pub(super) fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).ok_or(io::ErrorKind::InvalidData)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { path, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    if length > MAX_BODY_BYTES || request.header("transfer-encoding").is_some() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body)?;
    Ok(Some(request))
}

/// An answer to be written.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Response {
    /// Creates a stream of server-sent events.
    pub(super) fn stream(events: String) -> Self {
        Self { status: 200, headers: vec![("content-type", "text/event-stream".to_owned())], body: events }
    }
}

/// Writes an answer with one call.
pub(super) fn write_response(stream: &mut TcpStream, date: &str, response: &Response) -> io::Result<()> {
    let mut text = format!(
        "HTTP/1.1 {} Fake\r\ndate: {date}\r\ncontent-length: {}\r\n",
        response.status,
        response.body.len()
    );
    if !response.headers.iter().any(|(name, _)| *name == "content-type") {
        text.push_str("content-type: application/json\r\n");
    }
    for (name, value) in &response.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(&response.body);
    stream.write_all(text.as_bytes())
}
