//! Client of the worker's socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

const IO_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests the health of a worker.
pub(crate) fn health(socket: &Path) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    stream.write_all(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").filter(|(head, _)| head.starts_with("HTTP/1.1 200"));
    let (_, body) = body.ok_or_else(|| io::Error::other("unexpected response"))?;
    serde_json::from_str(body).map_err(io::Error::other)
}
