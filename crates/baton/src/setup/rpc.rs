//! A short JSON-RPC conversation with a program on its standard input and output, within a time limit.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A running program, killed on drop.
pub(super) struct RpcProgram {
    child: Child,
    lines: Receiver<String>,
    deadline: Instant,
    next_id: u64,
}

impl RpcProgram {
    /// Starts a program. All requests together must be answered within the limit.
    pub(super) fn start(command: &mut Command, limit: Duration) -> Result<Self, String> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            // Ends when the program closes its output or the receiver is gone.
            std::thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
        }
        Ok(Self { child, lines, deadline: Instant::now() + limit, next_id: 1 })
    }

    /// Sends a request and returns its result.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|error| match error {
                RecvTimeoutError::Timeout => "it did not answer in time".to_owned(),
                RecvTimeoutError::Disconnected => "it exited without a response".to_owned(),
            })?;
            let mut message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == id {
                return match message["error"]["message"].as_str() {
                    Some(error) => Err(format!("it answered: {error}")),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, method: &str) -> Result<(), String> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method }))
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let input = self.child.stdin.as_mut().ok_or("its input is closed")?;
        writeln!(input, "{message}").map_err(|error| format!("it ended: {error}"))
    }
}

impl Drop for RpcProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
