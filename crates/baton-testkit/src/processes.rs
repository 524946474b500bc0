//! Control of real processes: signals, running processes, requests over a Unix socket, waiting for conditions.
#![expect(clippy::expect_used, reason = "a timeout must fail the test")]

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::Answer;

/// Maximum time to wait for a condition.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Waits until a condition is true.
///
/// # Panics
///
/// Panics if it is not true within a minute.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Sends a signal (`TERM`, `KILL`, `STOP`, `CONT`). Returns false if there is no such process.
///
/// # Panics
///
/// Panics if signals cannot be sent.
pub fn signal(pid: u32, name: &str) -> bool {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).stderr(Stdio::null()).status();
    sent.expect("kill runs").success()
}

/// Returns the running processes whose command line or environment contains a folder.
pub fn processes_of(folder: &Path) -> Vec<u32> {
    let name = folder.as_os_str().as_encoded_bytes();
    let names = |file: &str, pid: u32| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(name.len()).any(|window| window == name)
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A zombie has no command line and no environment.
    pids.filter(|pid| *pid != std::process::id() && (names("cmdline", *pid) || names("environ", *pid)))
        .collect()
}

/// Sends a request over a Unix socket.
///
/// # Errors
///
/// Fails if no process listens, or if the answer is not HTTP.
pub fn ask(socket: &Path, method: &str, path: &str, body: &Value) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(WAIT_TIMEOUT))?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, text) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    Ok(Answer { status: status.ok_or(io::ErrorKind::InvalidData)?, headers, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_found_while_it_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(processes_of(folder.path()).is_empty());
        let mut child = Command::new("sleep").arg("60").env("WHERE", folder.path()).spawn().expect("sleep");
        wait_until("the process is found", || processes_of(folder.path()) == [child.id()]);
        assert!(signal(child.id(), "KILL"));
        wait_until("the process is no longer found", || processes_of(folder.path()).is_empty());
        child.wait().expect("it can be waited for");
    }
}
