//! Runs a QA command in the checkout and collects its output.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use baton_core::{ErrorCode, Fault};

/// Maximum size of a stored log. Only the end of a longer log is kept.
const MAX_LOG_BYTES: usize = 32 * 1024 * 1024;

/// Timeout for reading output after the command ended. A background process may keep the pipe open.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// A finished command.
pub(crate) struct Finished {
    /// Exit code; 128 and the number of the signal for a command that a signal ended.
    pub(crate) exit_code: i32,
    pub(crate) duration_ms: u64,
    /// Standard output and standard error in the order in which they were written.
    pub(crate) output: Vec<u8>,
    /// True if the beginning of the output was dropped.
    pub(crate) truncated: bool,
}

/// A command line, run by the shell or directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandLine {
    /// A line for `sh -c`.
    Shell(String),
    /// A program and its arguments.
    Words(Vec<String>),
}

impl CommandLine {
    /// Treats one word as a line for the shell, and several as a program with its arguments.
    pub(crate) fn of(words: &[String]) -> Self {
        match words {
            [line] => Self::Shell(line.clone()),
            words => Self::Words(words.to_vec()),
        }
    }

    /// Returns true if the line contains only comments and blanks. The shell accepts it and checks nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let blank = |line: &str| line.trim().is_empty() || line.trim().starts_with('#');
        matches!(self, Self::Shell(text) if text.lines().all(blank))
    }

    /// Formats the command as text.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Shell(line) => line.clone(),
            Self::Words(words) => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        }
    }

    /// Runs the command in a folder, with standard input empty.
    pub(crate) fn run(&self, folder: &Path, context_path: &Path) -> Result<Finished, Fault> {
        self.spawn(folder, context_path).map_err(|error| {
            Fault::new(ErrorCode::InvalidRequest, format!("cannot run `{}`: {error}", self.text()))
                .hint("check the command and that its program is installed")
        })
    }

    fn spawn(&self, folder: &Path, context_path: &Path) -> io::Result<Finished> {
        let (reader, writer) = io::pipe()?;
        let mut command = match self {
            Self::Shell(line) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(line);
                shell
            }
            Self::Words(words) => {
                let (program, arguments) =
                    words.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
        };
        command.current_dir(folder).env("TASK_CONTEXT_PATH", context_path).stdin(Stdio::null());
        command.stdout(writer.try_clone()?).stderr(writer);
        let started = Instant::now();
        let mut child = command.spawn()?;
        // `command` holds the write end of the pipe; the reader sees end of file only when every write end is closed.
        drop(command);
        let log = Arc::new(Mutex::new(Log::default()));
        let (sender, receiver) = mpsc::channel();
        let collected = Arc::clone(&log);
        thread::Builder::new().name("qa-output".into()).spawn(move || {
            collect(reader, &collected);
            let _ = sender.send(());
        })?;
        let status = child.wait()?;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let _ = receiver.recv_timeout(OUTPUT_GRACE);
        let log = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Finished { exit_code: code(status), duration_ms, output: log.bytes, truncated: log.truncated })
    }
}

#[derive(Default)]
struct Log {
    bytes: Vec<u8>,
    truncated: bool,
}

fn collect(mut reader: impl Read, log: &Mutex<Log>) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(count) = reader.read(&mut piece) {
        if count == 0 {
            return;
        }
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.bytes.extend_from_slice(&piece[..count]);
        if log.bytes.len() > MAX_LOG_BYTES {
            let surplus = log.bytes.len() - MAX_LOG_BYTES / 2;
            log.bytes.drain(..surplus);
            log.truncated = true;
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str]) -> Finished {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        CommandLine::of(&words).run(Path::new("/"), Path::new("/context.json")).unwrap()
    }

    #[test]
    fn exit_code_and_both_outputs_are_collected_in_order() {
        let finished = run(&["echo one; echo two >&2; echo $TASK_CONTEXT_PATH; exit 3"]);
        assert_eq!((finished.exit_code, finished.truncated), (3, false));
        assert_eq!(String::from_utf8(finished.output).unwrap(), "one\ntwo\n/context.json\n");
        assert_eq!(run(&["kill -9 $$"]).exit_code, 137);
        let words = run(&["printf", "%s", "a b"]);
        assert_eq!((words.exit_code, words.output.as_slice()), (0, b"a b".as_slice()));
    }

    #[test]
    fn background_process_does_not_keep_the_command_running() {
        let finished = run(&["sleep 600 & echo done"]);
        assert_eq!(finished.output, b"done\n");
    }

    #[test]
    fn long_output_keeps_its_end() {
        let finished = run(&["yes x | head -c 40000000; echo end"]);
        assert!(finished.truncated && finished.output.ends_with(b"end\n"));
    }

    #[test]
    fn missing_program_is_an_error_and_words_are_quoted() {
        let line = CommandLine::of(&["no-such-program-here".to_owned(), "it's".to_owned()]);
        assert_eq!(line.text(), r"no-such-program-here 'it'\''s'");
        let fault = line.run(Path::new("/"), Path::new("/c")).err().unwrap();
        assert!(fault.message.starts_with("cannot run `no-such-program-here"), "{}", fault.message);
    }
}
