//! A shell command: its words, output and exit status, in the formats of all supported agents.

use baton_core::{contains_any, starts_with_any, strip_any};
use serde_json::Value;

use super::call::{Call, without_error_tags};
use super::command::CommandLine;
use super::text::{clean, one_line};

/// A command and its result.
pub(super) struct Run {
    pub(super) command: String,
    /// Description given by the agent.
    pub(super) purpose: Option<String>,
    pub(super) output: String,
    pub(super) status: Option<i64>,
    /// Whether the response is marked as an error. The exit status, if known, takes precedence.
    is_error: bool,
    pub(super) interrupted: bool,
    pub(super) background: bool,
    /// What the agent's shell says about a status that is no failure, for example `No matches found`.
    pub(super) remark: Option<String>,
    /// Whether the response states how the command ended.
    is_known: bool,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Interrupted,
    /// The command continues in the background.
    Background,
    /// The command failed, with its exit status if that is known.
    Failed(Option<i64>),
    /// The command ends with a search that found nothing.
    NoMatch,
    Succeeded,
    /// The command ran; whether it succeeded is not known.
    Unknown,
}

impl Run {
    pub(super) fn of(call: &Call<'_>) -> Self {
        // The command of a background task is in the response.
        let named = call.input.get("command").or_else(|| call.input.get("cmd"));
        let command = match named.or_else(|| call.response.get("command")) {
            Some(Value::String(command)) => command.clone(),
            // `["bash", "-lc", "the command"]`, or a program and its arguments.
            Some(Value::Array(words)) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                match words.as_slice() {
                    [shell, flag, script] if shell.ends_with("sh") && flag.starts_with('-') => {
                        (*script).to_owned()
                    }
                    _ => words.join(" "),
                }
            }
            _ => String::new(),
        };
        let (output, wrapper) = unpack(call);
        let is_error = call.is_error();
        let output = without_notes(without_error_tags(output));
        let interrupted = call.response["interrupted"] == true || is_error && is_interruption(&output);
        let (output, status) = exit_status(&output, call, &wrapper);
        let purpose =
            call.input_text(&["description", "justification"]).or_else(|| wrapper["description"].as_str());
        Self {
            command: clean(&command).into_owned(),
            purpose: purpose.map(|purpose| one_line(&clean(purpose), 160)),
            output,
            status,
            is_error,
            interrupted,
            // A background task that has not ended has the status `running`.
            background: call.response.get("backgroundTaskId").is_some() || wrapper["status"] == "running",
            remark: call
                .response_text(&["returnCodeInterpretation"])
                .map(|remark| one_line(&clean(remark), 60)),
            // Claude Code answers with an object and marks failures; a plain text may be anything.
            is_known: status.is_some() || call.response.get("stdout").is_some(),
        }
    }

    /// Returns how the command ended, as far as the response and the command line show.
    pub(super) fn ending(&self, line: &CommandLine) -> Ending {
        let is_no_match = || line.ends_with_search() && self.is_silent();
        match self.status {
            _ if self.interrupted => Ending::Interrupted,
            _ if self.background => Ending::Background,
            Some(1) if is_no_match() => Ending::NoMatch,
            Some(status) if status != 0 => Ending::Failed(Some(status)),
            _ if self.failed() => Ending::Failed(None),
            _ if !self.is_known || line.hides_status() => Ending::Unknown,
            _ => Ending::Succeeded,
        }
    }

    pub(super) fn failed(&self) -> bool {
        self.status.map_or(self.is_error, |status| status != 0) || self.interrupted
    }

    pub(super) fn is_silent(&self) -> bool {
        self.output.trim().is_empty()
    }
}

/// Returns the output, and the object of Codex or of a background task that contained it.
fn unpack(call: &Call<'_>) -> (String, Value) {
    let wrapped = match call.response {
        Value::String(text) if text.trim_start().starts_with("{\"output\"") => {
            serde_json::from_str(text).unwrap_or_default()
        }
        Value::Object(members) if members.contains_key("output") => call.response.clone(),
        // Gemini.
        response if let Some(output) = response["llmContent"].as_str() => {
            return (clean(output).into_owned(), Value::Null);
        }
        response => response["task"].clone(),
    };
    match wrapped["output"].as_str() {
        Some(output) => (clean(output).into_owned(), wrapped),
        None => (call.output(), Value::Null),
    }
}

/// Removes the lines that Claude Code adds to an output, and the hints of git.
fn without_notes(output: String) -> String {
    const NOTES: &str = "Shell cwd was reset to |hint: ";
    if !contains_any(&output, NOTES) {
        return output;
    }
    output.lines().filter(|line| !starts_with_any(line, NOTES)).map(|line| format!("{line}\n")).collect()
}

/// Returns true if the message of a failed tool says that the user stopped it.
fn is_interruption(output: &str) -> bool {
    output.lines().next().is_some_and(|line| line.to_ascii_lowercase().contains("interrupted by user"))
}

/// Returns the output without the lines that state the exit status, and the exit status.
fn exit_status(output: &str, call: &Call<'_>, wrapper: &Value) -> (String, Option<i64>) {
    const MARKS: &str = "Exit code |Exit code: |Process exited with code ";
    // Messages of an agent about a failed command. They count only in an error response, because a command may print
    // them too.
    const ERRORS: &str = "Command exited with non-zero status code |Command failed with exit code ";
    let known = ["exit_code", "exitCode", "returnCode", "return_code", "code"].iter().find_map(|name| {
        let places = [&call.response[name], &wrapper[name], &wrapper["metadata"][name]];
        places.into_iter().find_map(Value::as_i64)
    });
    let (first, rest) = output.split_once('\n').unwrap_or((output, ""));
    let said = strip_any(first, MARKS).or_else(|| strip_any(first, ERRORS).filter(|_| call.is_error()));
    let said = said.and_then(|code| code.trim().trim_end_matches(['.', ':']).parse().ok());
    // Gemini and others print the exit status below the output.
    let last = || {
        let lines = output.lines().rev().take(12).filter(|_| call.response.get("stdout").is_none());
        lines.filter_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok()).next()
    };
    let Some(status) = said else { return (output.to_owned(), known.or_else(last)) };
    // Codex: `Wall time: 0.1 seconds` and `Output:` before the output itself.
    let rest = match rest.split_once("Output:\n") {
        Some((head, output)) if head.starts_with("Wall time") => output,
        _ => rest,
    };
    (rest.trim_start_matches('\n').to_owned(), Some(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_observation::ToolUse;
    use serde_json::json;

    fn run(tool: &str, tool_input: Value, tool_response: Value) -> Run {
        Run::of(&Call::new(&ToolUse {
            tool_name: tool.into(),
            tool_input,
            tool_response,
            cwd: None,
            turn: None,
        }))
    }

    #[test]
    fn exit_status_is_found_in_every_format() {
        let command = json!({ "command": ["bash", "-lc", "make all"] });
        let wrapped = json!("{\"output\":\"boom\\n\",\"metadata\":{\"exit_code\":2}}");
        let codex = run("shell", command.clone(), wrapped);
        assert_eq!(
            (codex.command.as_str(), codex.output.as_str(), codex.status),
            ("make all", "boom\n", Some(2))
        );
        let newer = run("shell", command, json!("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nhello\n"));
        assert_eq!((newer.output.as_str(), newer.status), ("hello\n", Some(0)));
        let claude = run(
            "Bash",
            json!({ "command": "x" }),
            json!({ "content": "Exit code 127\nnot found", "is_error": true }),
        );
        assert_eq!((claude.output.as_str(), claude.status), ("not found", Some(127)));
        for (error, status, interrupted) in [
            ("Command exited with non-zero status code 3", Some(3), false),
            ("Command timed out", None, false),
            ("[Request interrupted by user for tool use]", None, true),
        ] {
            let failed =
                run("Bash", json!({ "command": "x" }), json!({ "is_error": true, "content": error }));
            assert_eq!(
                (failed.status, failed.interrupted, failed.failed()),
                (status, interrupted, true),
                "{error}"
            );
        }
        let gemini =
            json!({ "llmContent": "Command: x\nOutput: boom\nError: (none)\nExit Code: 2\nSignal: (none)" });
        assert_eq!(run("run_shell_command", json!({ "command": "x" }), gemini).status, Some(2));
        let printed = run("Bash", json!({ "command": "x" }), json!("Command failed with exit code 1"));
        assert_eq!((printed.status, printed.failed()), (None, false));
        let fine = run(
            "Bash",
            json!({ "command": "x" }),
            json!({ "stdout": "a", "stderr": "b", "interrupted": false }),
        );
        assert_eq!((fine.output.as_str(), fine.status, fine.failed()), ("a\nb", None, false));
    }

    #[test]
    fn success_is_stated_only_if_it_is_known() {
        let ended = |command: &str, response: Value| {
            run("Bash", json!({ "command": command }), response).ending(&CommandLine::read(command))
        };
        let printed = |output: &str| json!({ "stdout": output, "stderr": "" });
        assert_eq!(ended("make", printed("ok")), Ending::Succeeded);
        assert_eq!(ended("make | tail -3", printed("ok")), Ending::Unknown);
        assert_eq!(ended("make", json!("built\n")), Ending::Unknown);
        assert_eq!(ended("make", json!("Exit code: 0\nOutput:\nbuilt\n")), Ending::Succeeded);
        assert_eq!(ended("make", json!("Exit code: 2\nOutput:\nboom\n")), Ending::Failed(Some(2)));
        let nothing = json!({ "is_error": true, "content": "Exit code 1" });
        assert_eq!(ended("make test | grep FAIL", nothing), Ending::NoMatch);
    }
}
