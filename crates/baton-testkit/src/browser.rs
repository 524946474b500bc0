//! Chromium, driven over the DevTools protocol through named pipes.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test whose browser does not start must fail loudly"
)]

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Time limit for an answer of the browser and for a condition on a page.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running browser with one page.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    next_id: u64,
    session: String,
    problems: Vec<String>,
    transferred_bytes: u64,
    _profile: TempDir,
}

impl Browser {
    /// Starts Chromium. Returns `None` if it is not installed.
    ///
    /// # Panics
    ///
    /// Panics if it is not installed and `CI` is set, and if it does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(program) = find() else {
            assert!(std::env::var_os("CI").is_none(), "chromium is missing: install the package chromium");
            return None;
        };
        let profile = tempfile::tempdir().expect("a temporary folder");
        let [input, output] = ["in", "out"].map(|name| profile.path().join(name));
        for pipe in [&input, &output] {
            assert!(Command::new("mkfifo").arg(pipe).status().expect("mkfifo").success());
        }
        // Opened for reading and writing, so that opening does not wait for the other side.
        let [commands, answers] = [&input, &output]
            .map(|pipe| OpenOptions::new().read(true).write(true).open(pipe).expect("a named pipe"));
        let child = Command::new("sh")
            .args(["-c", "in=$1 out=$2; shift 2; exec \"$@\" 3<\"$in\" 4>\"$out\"", "sh"])
            .args([&input, &output, &program])
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args(["--disable-extensions", "--hide-scrollbars", "--mute-audio"])
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser can be started");
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(answers);
            let mut message = Vec::new();
            while reader.read_until(0, &mut message).is_ok_and(|bytes| bytes > 0) {
                message.pop();
                let Ok(parsed) = serde_json::from_slice(&message) else { return };
                if sender.send(parsed).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            child,
            commands,
            messages,
            next_id: 0,
            session: String::new(),
            problems: Vec::new(),
            transferred_bytes: 0,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"]
            .as_str()
            .expect("a session")
            .to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.resize(1280, 900);
        Some(browser)
    }

    /// Sends a command and returns its result.
    ///
    /// # Panics
    ///
    /// Panics if the browser answers with an error or not at all.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a command and returns its result or the error of the browser.
    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next_id += 1;
        let mut message = json!({ "id": self.next_id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser reads commands");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self.messages.recv_timeout(left).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == self.next_id {
                return match &answer["error"] {
                    Value::Null => Ok(answer["result"].clone()),
                    error => Err(error.clone()),
                };
            }
            self.record_event(&answer);
        }
    }

    /// Records console errors, exceptions and the size of responses.
    fn record_event(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.problems.push(params["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled")
                if matches!(params["type"].as_str(), Some("error" | "warning")) =>
            {
                self.problems.push(params["args"].to_string());
            }
            Some("Log.entryAdded")
                if matches!(params["entry"]["level"].as_str(), Some("error" | "warning")) =>
            {
                self.problems.push(params["entry"].to_string());
            }
            Some("Network.loadingFinished") => {
                self.transferred_bytes += params["encodedDataLength"].as_u64().unwrap_or(0)
            }
            _ => {}
        }
    }

    /// Opens a page and waits until it is loaded.
    ///
    /// # Panics
    ///
    /// Panics if the page cannot be loaded.
    pub fn open(&mut self, url: &str) {
        self.transferred_bytes = 0;
        let opened = self.call("Page.navigate", json!({ "url": url }));
        assert!(opened["errorText"].is_null(), "{url}: {opened}");
        self.wait_for("location.href !== 'about:blank'");
    }

    /// Evaluates an expression on the page.
    ///
    /// # Panics
    ///
    /// Panics if the expression throws.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Waits until the page is loaded and an expression is true on it. The browser refuses to evaluate it while
    /// it leaves a page.
    ///
    /// # Panics
    ///
    /// Panics if it does not become true.
    pub fn wait_for(&mut self, expression: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            let loaded = format!("document.readyState === 'complete' && ({expression})");
            let params = json!({ "expression": loaded, "returnByValue": true });
            match self.try_call("Runtime.evaluate", params) {
                Ok(result) if result["result"]["value"] == true => return,
                Ok(_) => {}
                Err(error) => assert!(is_navigation(&error), "{expression}: {error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let text = self.evaluate("location.href + '\\n' + document.body.innerText");
        panic!("{expression} did not become true on {}", text.as_str().unwrap_or_default());
    }

    /// Presses a key, for example `j` or `Enter`.
    pub fn press(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            key if key.chars().count() == 1 => key,
            _ => "",
        };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            _ => 0,
        };
        let down = json!({ "type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", down);
        self.call(
            "Input.dispatchKeyEvent",
            json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code }),
        );
    }

    /// Types a text into the focused field.
    pub fn write(&mut self, text: &str) {
        for character in text.chars() {
            self.press(&character.to_string());
        }
    }

    /// Changes the size of the page and waits until the page has handled it.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.wait_for(&format!("innerWidth === {width} && document.documentElement.clientWidth === {width}"));
        // The event "resize" comes before the next frame.
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }

    /// Sets the color scheme of the operating system: `light` or `dark`.
    pub fn set_color_scheme(&mut self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// Saves a picture of the whole page when it is loaded.
    ///
    /// # Panics
    ///
    /// Panics if the file cannot be written.
    pub fn screenshot(&mut self, path: &Path) {
        self.wait_for("true");
        let taken =
            self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder for screenshots");
        let decoded = STANDARD.decode(taken["data"].as_str().expect("a picture")).expect("base64");
        std::fs::write(path, decoded).expect("a writable folder");
    }

    /// Returns the console errors, warnings and exceptions since the last call.
    pub fn take_problems(&mut self) -> Vec<String> {
        self.receive_events();
        let mut problems = std::mem::take(&mut self.problems);
        // Leaving a page aborts its requests, which htmx reports as two errors, one directly after the other.
        while let Some(place) = problems.iter().position(|problem| problem.contains("htmx:sendAbort")) {
            problems.drain(place.saturating_sub(1)..=place);
        }
        problems
    }

    /// Records the events that the browser has sent: they arrive before the answer to the next command.
    fn receive_events(&mut self) {
        self.evaluate("0");
    }

    /// Returns the number of bytes transferred since the last page was opened.
    pub fn transferred_bytes(&mut self) -> u64 {
        self.receive_events();
        self.transferred_bytes
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The result does not matter: the process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the browser refused a command because it was leaving the page.
fn is_navigation(error: &Value) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    message.contains("navigated") || message.contains("Cannot find default execution context")
}

/// Finds the program of the browser in `PATH`.
fn find() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file())
}
