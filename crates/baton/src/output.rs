//! Output of a verb: text by default, one JSON document with `--format json`. Data goes to standard output, everything else
//! to standard error.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use baton_app::read_error;
use baton_core::{ErrorCode, Fault, visible};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::config::ConfigError;
use crate::exit::Exit;

/// Output format of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    #[default]
    Human,
    /// JSON object with success, data and error
    Json,
}

/// Failure of a verb.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Failure {
    /// Stable error code.
    pub(crate) code: String,
    /// What failed, and on which input.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hint: Option<String>,
    /// Structured details for programs.
    pub(crate) details: Option<Value>,
    #[serde(skip)]
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), hint: None, details: None, exit }
    }

    /// Creates the failure of a wrong command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// Creates a failure without a more specific code.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Exit::Failure, "internal", message)
    }

    /// Adds a hint: what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the body of a reply with status 200; otherwise the failure in the body.
    pub(crate) fn unless_ok(status: u16, code: Option<ErrorCode>, body: String) -> Result<String, Self> {
        match code {
            None if status == 200 => Ok(body),
            code => Err(read_error(code.unwrap_or(ErrorCode::Internal), &body).into()),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self {
            code: fault.code.to_string(),
            message: fault.message,
            hint: fault.hint,
            details: fault.details,
            exit: fault.code.into(),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(Exit::Usage, "invalid_config", error.to_string()).hint(error.hint())
    }
}

/// Result of a verb: data for `--format json`, and the same as text.
#[derive(Debug)]
pub(crate) struct Answer {
    /// As JSON; `None` if the verb used standard output itself.
    pub(crate) data: Option<Box<RawValue>>,
    pub(crate) text: String,
    pub(crate) exit: Exit,
    /// Next command, printed on standard error for verbs whose standard output is read by other programs.
    pub(crate) next: Option<String>,
}

impl Answer {
    pub(crate) fn new(data: &impl Serialize, text: String) -> Result<Self, Failure> {
        Ok(Self::of_json(to_json(data)?, text))
    }

    /// Creates a response from data that is JSON already.
    pub(crate) const fn of_json(data: Box<RawValue>, text: String) -> Self {
        Self { data: Some(data), text, exit: Exit::Ok, next: None }
    }

    /// Creates a response that prints nothing, for verbs that used standard output themselves.
    pub(crate) const fn silent() -> Self {
        Self { data: None, text: String::new(), exit: Exit::Ok, next: None }
    }
}

/// Serializes data. The members of objects are sorted by name.
pub(crate) fn to_json(data: &impl Serialize) -> Result<Box<RawValue>, Failure> {
    let json = serde_json::to_value(data).and_then(|sorted| to_raw_value(&sorted));
    json.map_err(|error| Failure::internal(format!("cannot serialize the response: {error}")))
}

/// Prints the outcome of a verb and returns the exit code.
pub(crate) fn finish(format: Format, outcome: Result<Answer, Failure>) -> Exit {
    let (text, exit) = match (format, &outcome) {
        (_, Ok(Answer { data: None, exit, .. })) => return *exit,
        (Format::Json, Ok(answer)) => (document(answer.data.as_deref(), None), answer.exit),
        (Format::Json, Err(failure)) => (document(None, Some(failure)), failure.exit),
        (Format::Human, Ok(answer)) => (for_stdout(&answer.text).into_owned(), answer.exit),
        (Format::Human, Err(failure)) => {
            print_error(&failure.message, failure.hint.as_deref());
            return failure.exit;
        }
    };
    print(&text);
    if let (Format::Human, Ok(Answer { next: Some(next), .. })) = (format, &outcome) {
        print_message(&format!("next: {next}"));
    }
    exit
}

/// Formats an outcome as a JSON document.
fn document(data: Option<&RawValue>, error: Option<&Failure>) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        success: bool,
        data: Option<&'a RawValue>,
        error: Option<&'a Failure>,
    }
    let document = Document { success: error.is_none(), data, error };
    serde_json::to_string(&document).unwrap_or_default()
}

/// Prepares text for standard output. On a terminal, control characters are escaped, because the text may contain tool
/// output, and colours are added. Pipes and files get the text unchanged.
fn for_stdout(text: &str) -> Cow<'_, str> {
    let stdout = std::io::stdout();
    match (stdout.is_terminal(), AutoStream::choice(&stdout)) {
        (false, _) => Cow::Borrowed(text),
        (true, ColorChoice::Never) => visible(text),
        (true, _) => Cow::Owned(coloured(&visible(text))),
    }
}

/// Adds colours for a terminal: bold table headers, and the first word of lines that state a result or the next command.
fn coloured(text: &str) -> String {
    let line = |line: &str| {
        let is_header =
            line.contains("  ") && line.chars().all(|c| c.is_ascii_uppercase() || c == ' ' || c == '…');
        let word = line.trim_start().split(' ').next().unwrap_or_default();
        let style = match word {
            _ if is_header => "1",
            "ok" => "32",
            "warning" | "warning:" => "33",
            "ERROR" | "error" | "error:" => "1;31",
            "next:" | "fix:" => "36",
            _ => return line.to_owned(),
        };
        if is_header {
            return format!("\x1b[{style}m{line}\x1b[0m");
        }
        line.replacen(word, &format!("\x1b[{style}m{word}\x1b[0m"), 1)
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Prints a line of data. A closed pipe, for example of `| head`, is not an error.
pub(crate) fn print(text: &str) {
    print_line(text);
}

/// Whether a line reached the reader of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    /// The line was written.
    Written,
    /// Standard output is closed or cannot be written.
    ReaderGone,
}

/// Prints a line of data, for verbs that print until their reader is gone.
pub(crate) fn print_line(text: &str) -> Printed {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{}", text.trim_end_matches('\n')).and_then(|()| stdout.flush());
    match written {
        Ok(()) => Printed::Written,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                print_error(&format!("cannot write the output: {error}"), None);
            }
            Printed::ReaderGone
        }
    }
}

pub(crate) fn print_error(message: &str, hint: Option<&str>) {
    let mut stderr = anstream::stderr().lock();
    // A failed write to standard error cannot be reported anywhere.
    let _ = writeln!(stderr, "\x1b[1;31merror:\x1b[0m {}", visible(message));
    if let Some(hint) = hint {
        let _ = writeln!(stderr, "\x1b[1;36mnext:\x1b[0m {}", visible(hint));
    }
}

pub(crate) fn warn(message: &str) {
    let _ = writeln!(anstream::stderr().lock(), "\x1b[1;33mwarning:\x1b[0m {}", visible(message));
}

/// Prints a message to standard error.
pub(crate) fn print_message(message: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_mark_headers_and_results_and_change_no_text() {
        let text = "ID  AGENT\na-1  b\nok       database: fine\nok\n         fix: chmod 700";
        let styled = coloured(text);
        assert!(styled.starts_with("\x1b[1mID  AGENT\x1b[0m\na-1  b\n\x1b[32mok\x1b[0m "), "{styled:?}");
        assert!(styled.ends_with("\x1b[36mfix:\x1b[0m chmod 700"), "{styled:?}");
        assert_eq!(anstream::adapter::strip_str(&styled).to_string(), text);
    }
}
