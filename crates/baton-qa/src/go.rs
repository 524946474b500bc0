//! `go test`, with `-v`, with `-json` and without.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::{contains_any, starts_with_any, strip_any};
use serde_json::Value;

use super::report::{QaFailure, QaRun, file_and_line};
use super::section::{Section, is_harmless};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut reader = Reader { run: QaRun::of("go-test"), ..Reader::default() };
    for line in text.lines() {
        match event(line) {
            // Output that test2json repeats has the same lines as a verbose run.
            Some(event) => {
                let output = event["Output"].as_str().unwrap_or_default();
                output.lines().for_each(|line| reader.line(line));
                if event["Action"] == "build-fail" {
                    reader.build_failed = true;
                }
            }
            None => reader.line(line),
        }
    }
    reader.finish()
}

/// Parses an event of `go test -json`.
fn event(line: &str) -> Option<Value> {
    let line = line.strip_prefix('{').filter(|rest| rest.contains("\"Action\":")).map(|_| line)?;
    serde_json::from_str(line).ok()
}

#[derive(Default)]
struct Reader {
    run: QaRun,
    seen: bool,
    began: bool,
    build_failed: bool,
    /// True if a package ran tests.
    ran_tests: bool,
    /// Number of failed tests of the current package.
    failed_here: u64,
    panicked: Option<String>,
    /// Test whose output follows: with `-v` the running test, otherwise the test that was reported last.
    current: Option<String>,
    /// Messages of each test of the current package. Logs and assertions have the same form.
    messages: BTreeMap<String, Vec<Message>>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let bare = line.trim_start();
        if let Some(name) = bare.strip_prefix("--- PASS: ") {
            self.messages.remove("");
            self.run.passed += u64::from(!name.is_empty());
            self.ran_tests = true;
        } else if let Some(name) = bare.strip_prefix("--- SKIP: ") {
            self.run.skipped += u64::from(!name.is_empty());
            self.ran_tests = true;
        } else if let Some(name) = bare.strip_prefix("--- FAIL: ") {
            self.fail(name.split_whitespace().next().unwrap_or_default());
        } else if let Some(name) = running_test(line) {
            self.began = true;
            self.current = Some(name.to_owned());
        } else if starts_with_any(line, "panic: |fatal error: ") {
            self.panicked.get_or_insert_with(|| line.to_owned());
            let current = self.current.as_deref();
            let known = self.run.failures.iter_mut().rev().find(|known| Some(known.name.as_str()) == current);
            if let Some(failure) = known.filter(|failure| failure.message.is_none()) {
                failure.message = QaFailure::message(line);
            }
        } else if is_package(line) {
            self.end_package(line);
        } else if let Some((file, at, message)) = file_line_and_message(bare) {
            // A truncated log may lack the line that names the running test.
            let name = self.current.as_deref().unwrap_or_default().to_owned();
            let message = Message { file: file.to_owned(), line: at, text: message.to_owned() };
            let messages = self.messages.entry(name).or_default();
            if messages.len() < MAX_MESSAGES {
                messages.push(message);
            }
        } else if let Some(rest) = assertion_part(bare)
            && let Some(last) = self
                .messages
                .get_mut(self.current.as_deref().unwrap_or_default())
                .and_then(|all| all.last_mut())
        {
            let space = if last.text.is_empty() { "" } else { " " };
            last.text.push_str(&format!("{space}{rest}"));
        }
    }

    fn fail(&mut self, name: &str) {
        self.run.failed += 1;
        self.failed_here += 1;
        self.ran_tests = true;
        self.run.add_failure(QaFailure::test(name));
        self.current = Some(name.to_owned());
        if let Some(messages) = self.messages.remove("") {
            self.messages.entry(name.to_owned()).or_insert(messages);
        }
    }

    fn end_package(&mut self, line: &str) {
        self.seen = true;
        self.ran_tests |= line.starts_with("ok") && !line.contains("[no tests to run]");
        for (name, messages) in std::mem::take(&mut self.messages) {
            let known = self.run.failures.iter_mut().find(|known| known.name == name && known.file.is_none());
            // A test logs before it fails: without an assertion the last message is the reason.
            let asserted = messages.iter().find(|message| message.asserts()).or(messages.last());
            if let (Some(failure), Some(message)) = (known, asserted) {
                failure.file = Some(message.file.clone());
                failure.line = Some(message.line);
                failure.message = QaFailure::message(&message.text);
            }
        }
        // A package fails without a failed test when it does not build, panics, times out or exits.
        if line.starts_with("FAIL") && self.failed_here == 0 {
            let package = line.split_whitespace().nth(1).unwrap_or_default();
            let reason = ["[build failed]", "[setup failed]"].into_iter().find(|mark| line.contains(mark));
            let reason = reason.map(|mark| mark.trim_matches(['[', ']']).to_owned());
            let reason = reason.or(self.panicked.take()).unwrap_or_else(|| "failed".to_owned());
            self.run.add_error(package, &reason);
        }
        (self.failed_here, self.began, self.panicked, self.current) = (0, false, None, None);
    }

    fn finish(mut self) -> Option<QaRun> {
        if self.build_failed && self.run.is_clean() {
            self.run.errors = 1;
            self.run.add_failure(QaFailure::test("build"));
        }
        if let Some(panic) = self.panicked.take().filter(|_| self.run.is_clean() && (self.seen || self.began))
        {
            self.run.add_error("run", &panic);
        }
        let any = self.seen || self.began || !self.run.is_clean();
        self.run.no_tests = self.seen && !self.ran_tests && self.run.is_clean();
        any.then_some(self.run)
    }
}

/// Maximum number of messages kept per test.
const MAX_MESSAGES: usize = 200;

/// A message such as `sum_test.go:12: got 3, want 4`, with the lines that testify prints below it.
struct Message {
    file: String,
    line: u64,
    text: String,
}

impl Message {
    /// Returns true if the words of a message indicate that it states the expected value.
    fn asserts(&self) -> bool {
        const WORDS: &str =
            "want|expected|should|unexpected|fail|error|must|mismatch|not equal|cannot|missing";
        contains_any(&self.text.to_lowercase(), WORDS)
    }
}

/// Returns the content of a line of testify: `Error:      Not equal:`, `expected: 1`, `actual  : 2`,
/// `Messages: after retry`.
fn assertion_part(line: &str) -> Option<String> {
    let (label, rest) = line.split_once(':')?;
    let label = label.trim();
    matches!(label, "Error" | "expected" | "actual" | "Messages").then(|| match label {
        "Error" => rest.trim().to_owned(),
        _ => format!("{label}: {}", rest.trim()),
    })
}

/// Returns the test of `=== RUN   TestA`, `=== CONT  TestA` and `=== NAME  TestA`.
fn running_test(line: &str) -> Option<&str> {
    let (word, name) = line.strip_prefix("=== ")?.split_once(' ')?;
    matches!(word, "RUN" | "CONT" | "NAME").then_some(name.trim())
}

/// Matches the results of packages, with `-v` after the results of their tests.
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let mut open = BTreeSet::new();
    let (mut began, mut end) = (false, 0);
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        if is_package(line) {
            if line.starts_with("FAIL") || !open.is_empty() {
                return None;
            }
            (began, end) = (false, at + 1);
        } else if let Some(name) = line.strip_prefix("=== RUN ") {
            began = true;
            if !open.insert(name.trim()) {
                return None;
            }
        } else if let Some(name) = strip_any(bare, "--- PASS: |--- SKIP: ") {
            if !open.remove(name.split_whitespace().next()?) {
                return None;
            }
        } else if bare.starts_with("--- FAIL: ") {
            return None;
        } else if line.is_empty() || *line == "PASS" || starts_with_any(line, "=== |coverage: ") {
            continue;
        } else if line.starts_with('\t') && line.contains("coverage: ") {
            end = at + 1;
        } else if !began {
            break;
        } else if !(line.starts_with("    ") || is_harmless(line)) {
            return None;
        }
    }
    Section::new("go", end).filter(|_| !began)
}

/// Matches events up to the end of every package that was started, without a failure.
pub(super) fn clean_json(lines: &[&str]) -> Option<Section> {
    let mut open = BTreeSet::new();
    let mut end = 0;
    for line in lines {
        let Some(event) = event(line) else { break };
        let package = event["Package"].as_str().unwrap_or_default().to_owned();
        let whole = event["Test"].is_null();
        match event["Action"].as_str()? {
            "fail" | "build-fail" => return None,
            "start" if !open.insert(package.clone()) => return None,
            "pass" | "skip" if whole => {
                open.remove(&package);
            }
            _ => {}
        }
        end += 1;
    }
    Section::new("go", end).filter(|_| open.is_empty())
}

/// Returns true for the result of a package, in tab-separated columns: verdict, package, time or `[no test files]`.
fn is_package(line: &str) -> bool {
    let Some((verdict, rest)) = line.split_once('\t') else { return false };
    let finished =
        contains_any(rest, "[no test files]|[build failed]|[setup failed]") || ends_in_seconds(rest);
    matches!(verdict.trim_end(), "ok" | "FAIL" | "?") && finished
}

fn ends_in_seconds(rest: &str) -> bool {
    rest.split_whitespace().any(|word| {
        word == "(cached)" || word.strip_suffix('s').is_some_and(|number| number.parse::<f64>().is_ok())
    })
}

/// Splits `    sum_test.go:12: got 3, want 4` into file, line and message.
fn file_line_and_message(line: &str) -> Option<(&str, u64, &str)> {
    let (at, message) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
    let (file, number) = file_and_line(at)?;
    file.ends_with(".go").then_some((file, number, message))
}
