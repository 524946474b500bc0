//! The real binary in a temporary home: commands, a server, an MCP client on its standard streams.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test whose process does not start must fail loudly"
)]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use ureq::Agent;

use crate::processes::{WAIT_TIMEOUT, signal, wait_until};

/// Maximum size of an answer: a context of 16 MiB and its envelope.
const MAX_ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// Relay key of test servers.
pub const RELAY_KEY: &str = "test-relay-key-0123456789";

/// An empty home folder, and the binary to run there.
#[derive(Debug)]
pub struct Home {
    folder: PathBuf,
    _temporary: Option<TempDir>,
    binary: PathBuf,
    database_url: Option<String>,
    environment: Vec<(String, String)>,
    working_folder: PathBuf,
    ulimit: Option<String>,
}

/// Result of a command.
#[derive(Debug)]
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Parses standard output as JSON.
    ///
    /// # Panics
    ///
    /// Panics if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {:?}, stderr {:?}", self.stdout, self.stderr))
    }
}

impl Home {
    /// Creates a home for the binary at `binary` (`env!("CARGO_BIN_EXE_baton")` in its integration tests).
    ///
    /// # Panics
    ///
    /// Panics if no temporary folder can be created.
    #[must_use]
    pub fn new(binary: &str) -> Self {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let home = Self::at(temporary.path(), binary);
        Self { _temporary: Some(temporary), ..home }
    }

    /// Uses an existing folder as a home. The folder is not removed.
    ///
    /// # Panics
    ///
    /// Panics if no folder can be created in it.
    #[must_use]
    pub fn at(folder: &Path, binary: &str) -> Self {
        std::fs::create_dir_all(folder.join("tmp")).expect("a temporary folder in the home");
        Self {
            folder: folder.to_owned(),
            _temporary: None,
            binary: binary.into(),
            database_url: None,
            environment: Vec::new(),
            working_folder: folder.to_owned(),
            ulimit: None,
        }
    }

    /// Uses a PostgreSQL server for the store.
    #[must_use]
    pub fn on_postgres(mut self, url: &str) -> Self {
        self.database_url = Some(url.to_owned());
        self
    }

    /// Sets an environment variable for all commands.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs all commands under a limit of the shell's `ulimit`, for example `-n 256`.
    #[must_use]
    pub fn with_ulimit(mut self, limit: &str) -> Self {
        self.ulimit = Some(limit.to_owned());
        self
    }

    /// Runs all commands in this folder below the home, which is created if necessary.
    ///
    /// # Panics
    ///
    /// Panics if the folder cannot be created.
    #[must_use]
    pub fn working_in(mut self, folder: &str) -> Self {
        self.working_folder = self.folder.join(folder);
        std::fs::create_dir_all(&self.working_folder).expect("a folder below the home");
        self
    }

    /// Returns the folder that all commands run in.
    pub fn working_folder(&self) -> &Path {
        &self.working_folder
    }

    /// Returns the home folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Returns the data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Creates a command with a hermetic environment.
    pub fn command(&self) -> Command {
        let mut command = match &self.ulimit {
            None => Command::new(&self.binary),
            Some(limit) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("ulimit {limit} && exec \"$0\" \"$@\"")).arg(&self.binary);
                shell
            }
        };
        command
            .env_clear()
            .env("HOME", &self.folder)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("BATON_DATA_DIR", self.data_dir())
            .env("BATON_RELAY_KEY", RELAY_KEY)
            .env("TMPDIR", self.folder.join("tmp"))
            // Hooks in tests must not leave a worker running; tests of autostart set this themselves.
            .env("BATON_WORKER_AUTOSTART", "off")
            .current_dir(&self.working_folder)
            .stdin(Stdio::null());
        if let Some(url) = &self.database_url {
            command.env("BATON_DATABASE_URL", url);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command and waits for its end.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be started.
    pub fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Finished {
        self.run_with_input(arguments, b"")
    }

    /// Runs a command with this standard input and waits for its end.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be started.
    pub fn run_with_input<S: AsRef<str>>(&self, arguments: &[S], input: &[u8]) -> Finished {
        let mut child = self
            .command()
            .args(arguments.iter().map(AsRef::as_ref))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let mut stdin = child.stdin.take().expect("its standard input");
        let output = std::thread::scope(|scope| {
            // The command may end without reading all of its input.
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output().expect("the binary ends")
        });
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts `baton serve` on a free port and waits until it listens.
    ///
    /// # Panics
    ///
    /// Panics if it does not start to listen.
    #[must_use]
    pub fn serve(&self) -> ServerProcess {
        self.serve_with(&[])
    }

    /// Starts `baton serve` with additional environment variables.
    ///
    /// # Panics
    ///
    /// Panics if it does not start to listen.
    #[must_use]
    pub fn serve_with(&self, environment: &[(&str, &str)]) -> ServerProcess {
        self.serve_as(&[], environment)
    }

    /// Starts `baton serve` with additional arguments and environment variables.
    ///
    /// # Panics
    ///
    /// Panics if it does not start to listen.
    #[must_use]
    pub fn serve_as(&self, arguments: &[&str], environment: &[(&str, &str)]) -> ServerProcess {
        let mut child = self
            .command()
            .arg("serve")
            .args(if arguments.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] })
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let mut lines = BufReader::new(child.stderr.take().expect("its standard error")).lines();
        let mut seen = Vec::new();
        let url = loop {
            match lines.next() {
                Some(Ok(line)) => match line.strip_prefix("baton listens on ") {
                    Some(url) => break url.to_owned(),
                    None => seen.push(line),
                },
                _ => panic!("the server did not start to listen: {seen:?}"),
            }
        };
        // Standard error must be read, or the server would block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .build()
            .new_agent();
        ServerProcess { child, url, agent }
    }

    /// Starts `baton mcp` and performs the handshake.
    ///
    /// # Panics
    ///
    /// Panics if it does not answer.
    #[must_use]
    pub fn mcp(&self) -> McpClient {
        self.try_mcp().expect("the handshake succeeds")
    }

    /// Starts `baton mcp` and performs the handshake.
    ///
    /// # Errors
    ///
    /// Fails if the process ends before it answers.
    pub fn try_mcp(&self) -> io::Result<McpClient> {
        let mut client = self.mcp_before_handshake();
        client.try_request("initialize", &initialize_params("2025-06-18"))?;
        client.try_send_line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(client)
    }

    /// Starts `baton mcp` without a handshake.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be started.
    #[must_use]
    pub fn mcp_before_handshake(&self) -> McpClient {
        self.start_mcp(&[])
    }

    /// Starts `baton mcp` with arguments and performs the handshake.
    ///
    /// # Panics
    ///
    /// Panics if it does not answer.
    #[must_use]
    pub fn mcp_with(&self, arguments: &[&str]) -> McpClient {
        let mut client = self.start_mcp(arguments);
        client.initialize("2025-06-18");
        client
    }

    fn start_mcp(&self, arguments: &[&str]) -> McpClient {
        let mut child = self
            .command()
            .arg("mcp")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the binary can be started");
        let input = child.stdin.take().expect("its standard input");
        let output = BufReader::new(child.stdout.take().expect("its standard output"));
        McpClient { child, input: Some(input), output, next_id: 1 }
    }
}

/// A running `baton serve`, killed on drop.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    url: String,
    agent: Agent,
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body as sent.
    pub text: String,
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

impl Answer {
    /// Parses the body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl ServerProcess {
    /// Returns the URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request with the relay key. An error means that the connection failed.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("x-relay-key")) {
            request = request.header("x-relay-key", RELAY_KEY);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).expect("a valid request");
        let mut response = self.agent.run(request)?;
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let text = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_string()?;
        Ok(Answer { status: response.status().as_u16(), headers, text })
    }

    /// Sends a request with the relay key.
    ///
    /// # Panics
    ///
    /// Panics if the connection fails.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body).expect("the server answers")
    }

    /// Sends a POST request with a JSON body.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    /// Sends a GET request.
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// Asks the server to stop with SIGTERM and returns its exit code.
    ///
    /// # Panics
    ///
    /// Panics if it does not stop within a minute, or is ended by a signal.
    pub fn stop(mut self) -> i32 {
        signal(self.id(), "TERM");
        let mut status = None;
        wait_until("the server stops", || {
            status = self.child.try_wait().expect("the server can be waited for");
            status.is_some()
        });
        status.and_then(|status| status.code()).expect("an exit code")
    }

    /// Kills the server with SIGKILL, like a crash.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the parameters of an `initialize` request.
pub fn initialize_params(version: &str) -> Value {
    json!({
        "protocolVersion": version, "capabilities": {},
        "clientInfo": { "name": "baton-testkit", "version": "1" },
    })
}

/// Returns the answer of a tool: its structured content, or the body of an error, which is sent as text only.
///
/// # Panics
///
/// Panics if an error has structured content, or text that is not JSON.
pub fn tool_answer(result: &Value) -> Value {
    if result["isError"] != true {
        return result["structuredContent"].clone();
    }
    assert!(result.get("structuredContent").is_none(), "an error does not match the output schema: {result}");
    let text = result["content"][0]["text"].as_str().expect("the text of an error");
    serde_json::from_str(text).expect("an error is JSON")
}

/// A client of a running `baton mcp`, which is killed on drop.
#[derive(Debug)]
pub struct McpClient {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl McpClient {
    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Performs the handshake for a protocol version and returns the server's answer.
    ///
    /// # Panics
    ///
    /// Panics if the connection fails.
    pub fn initialize(&mut self, version: &str) -> Value {
        let answer = self.request("initialize", &initialize_params(version));
        self.send_line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer["result"].clone()
    }

    /// Sends bytes and a line end.
    ///
    /// # Panics
    ///
    /// Panics if the connection fails.
    pub fn send_line(&mut self, line: &[u8]) {
        self.try_send_line(line).expect("the server reads");
    }

    fn try_send_line(&mut self, line: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        // A single write, so that lines are never interleaved.
        input.write_all(&[line, b"\n"].concat())?;
        input.flush()
    }

    /// Waits for the next message of any kind.
    ///
    /// # Panics
    ///
    /// Panics if the connection fails.
    pub fn receive(&mut self) -> Value {
        self.try_receive().expect("the server answers")
    }

    fn try_receive(&mut self) -> io::Result<Value> {
        Ok(serde_json::from_str(&self.try_receive_line()?).expect("JSON on the wire"))
    }

    /// Waits for the next line, without parsing it.
    ///
    /// # Errors
    ///
    /// Fails if the connection ends before it.
    pub fn try_receive_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Panics
    ///
    /// Panics if the connection fails.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.try_request(method, params);
        answer.unwrap_or_else(|error| panic!("the server went away before it answered {method}: {error}"))
    }

    /// Sends a request and waits for its answer. An error means that the server has ended.
    ///
    /// # Panics
    ///
    /// Panics if a complete line is not JSON.
    pub fn try_request(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.try_send_line(request.to_string().as_bytes())?;
        loop {
            let message = self.try_receive()?;
            if message["id"] == id {
                return Ok(message);
            }
        }
    }

    /// Sends bytes, closes the input, and returns the remaining messages and the exit code.
    ///
    /// # Panics
    ///
    /// Panics if the connection fails, or the server is ended by a signal.
    pub fn close_after(mut self, last: &[u8]) -> (Vec<Value>, i32) {
        if let Some(mut input) = self.input.take() {
            input.write_all(last).expect("the server reads");
        }
        let lines = (&mut self.output).lines().map(|line| line.expect("the server answers"));
        let messages = lines.map(|line| serde_json::from_str(&line).expect("JSON on the wire")).collect();
        let code = self.child.wait().ok().and_then(|status| status.code()).expect("an exit code");
        (messages, code)
    }

    /// Calls a tool and returns its result.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
