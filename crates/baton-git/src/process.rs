//! Runs one child process with limits on inactivity and output, and always reaps it.

use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Limits of one git call.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time without input or output after which the call is killed. A long transfer may take longer in total.
    pub time: Duration,
    /// Output limit in bytes. The call is killed when it is exceeded.
    pub output_bytes: u64,
    /// Minimum number of files for which asking git is faster than reading them.
    pub files_worth_a_call: usize,
    /// Files of at least this size are not part of patches, because git would hold them in memory.
    pub large_file_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(120),
            output_bytes: 1 << 30,
            files_worth_a_call: 500,
            large_file_bytes: 64 << 20,
        }
    }
}

/// Why a process failed.
pub(crate) enum ProcessError {
    Missing,
    Io(io::Error),
    TimedOut,
    TooLarge,
}

impl From<io::Error> for ProcessError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rustix::io::Errno> for ProcessError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

/// Exit status and standard error of a process.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stderr: Vec<u8>,
}

/// Maximum number of bytes kept of standard error; the beginning states the problem.
const MAX_STDERR_BYTES: usize = 16 * 1_024;

/// Kills and reaps its child on drop, unless the child has already ended.
struct ReapOnDrop(Child);

impl Drop for ReapOnDrop {
    fn drop(&mut self) {
        // `Child` remembers the status of a reaped child and does not signal it again.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the command with `input` on standard input and passes its output to `sink` in pieces.
pub(crate) fn run(
    command: &mut Command,
    input: &[u8],
    limits: Limits,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<Ended, ProcessError> {
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound { ProcessError::Missing } else { error.into() }
    })?;
    let mut child = ReapOnDrop(child);
    let stderr = exchange(&mut child.0, input, limits, sink)?;
    Ok(Ended { status: await_end(&mut child.0, Instant::now() + limits.time)?, stderr })
}

/// Writes and reads until the child has closed its output. Returns its standard error.
fn exchange(
    child: &mut Child,
    input: &[u8],
    limits: Limits,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<Vec<u8>, ProcessError> {
    let timeout = timespec(limits.time);
    let mut input_writer = child.stdin.take().map(|stdin| InputWriter::new(stdin, input)).transpose()?;
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    stdout.as_ref().map_or(Ok(()), set_nonblocking)?;
    stderr.as_ref().map_or(Ok(()), set_nonblocking)?;
    let (mut stderr_text, mut written) = (Vec::new(), 0_u64);
    let mut buffer = vec![0; 64 * 1_024];
    while stdout.is_some() || stderr.is_some() {
        let mut waits = Vec::with_capacity(3);
        waits.extend(stdout.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        waits.extend(stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        waits.extend(input_writer.as_ref().map(|writer| PollFd::new(&writer.stdin, PollFlags::OUT)));
        match poll(&mut waits, Some(&timeout)) {
            Ok(0) => return Err(ProcessError::TimedOut),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        // The pipes do not block, so each one is tried.
        if let Some(pipe) = &mut stdout {
            match read(pipe, &mut buffer)? {
                None => {}
                Some(0) => stdout = None,
                Some(count) => {
                    written += count as u64;
                    if written > limits.output_bytes {
                        return Err(ProcessError::TooLarge);
                    }
                    sink(&buffer[..count]);
                }
            }
        }
        if let Some(pipe) = &mut stderr {
            match read(pipe, &mut buffer)? {
                None => {}
                Some(0) => stderr = None,
                Some(count) => {
                    let room = MAX_STDERR_BYTES - stderr_text.len();
                    stderr_text.extend_from_slice(&buffer[..count.min(room)]);
                }
            }
        }
        if input_writer.as_mut().is_some_and(InputWriter::push) {
            input_writer = None;
        }
    }
    Ok(stderr_text)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// Reads the available bytes; `None` if none are available yet.
fn read(pipe: &mut impl io::Read, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match pipe.read(buffer) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        other => other.map(Some),
    }
}

fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(pipe)?;
    Ok(fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?)
}

/// Input that is still to be written to a child.
struct InputWriter<'a> {
    stdin: ChildStdin,
    left: &'a [u8],
}

impl<'a> InputWriter<'a> {
    fn new(stdin: ChildStdin, input: &'a [u8]) -> io::Result<Self> {
        // Non-blocking, so that a full pipe does not prevent reading the output of the child.
        set_nonblocking(&stdin)?;
        Ok(Self { stdin, left: input })
    }

    /// Writes as much as possible. Returns true if nothing is left to write or the child closed its input; the child
    /// then reports the reason itself.
    fn push(&mut self) -> bool {
        match self.stdin.write(self.left) {
            Ok(count) => {
                self.left = &self.left[count..];
                self.left.is_empty()
            }
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }
}

/// Waits for a child that has closed its output and is about to exit.
fn await_end(child: &mut Child, deadline: Instant) -> Result<ExitStatus, ProcessError> {
    let mut pause = Duration::from_micros(50);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            return Err(ProcessError::TimedOut);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        time: Duration::from_secs(20),
        output_bytes: 1 << 24,
        files_worth_a_call: 0,
        large_file_bytes: 1 << 24,
    };

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    fn output(command: &mut Command, input: &[u8], limits: Limits) -> Result<(Vec<u8>, Ended), ProcessError> {
        let mut output = Vec::new();
        let ended = run(command, input, limits, &mut |piece| output.extend_from_slice(piece))?;
        Ok((output, ended))
    }

    #[test]
    fn large_input_and_output_do_not_deadlock() {
        let input = vec![b'x'; 3 << 20];
        let (answer, ended) = output(&mut shell("cat; echo problem >&2"), &input, LIMITS).ok().unwrap();
        assert_eq!(answer, input);
        assert_eq!(ended.stderr, b"problem\n");
        assert!(ended.status.success());
    }

    #[test]
    fn child_that_ignores_its_input_is_not_an_error() {
        let (_, ended) = output(&mut shell("exit 3"), &vec![b'x'; 1 << 20], LIMITS).ok().unwrap();
        assert_eq!(ended.status.code(), Some(3));
    }

    #[test]
    fn child_is_killed_and_reaped_after_the_timeout() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("echo $$ > '{}'; exec sleep 600", file.display());
        let limits = Limits { time: Duration::from_millis(300), ..LIMITS };
        assert!(matches!(output(&mut shell(&script), b"", limits), Err(ProcessError::TimedOut)));
        let pid: i32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        assert!(rustix::process::test_kill_process(pid).is_err(), "the child is still there");
    }

    #[test]
    fn child_that_keeps_writing_may_run_longer_than_the_time_limit() {
        let limits = Limits { time: Duration::from_secs(5), ..LIMITS };
        let script = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.7; done";
        let (answer, _) = output(&mut shell(script), b"", limits).ok().unwrap();
        assert_eq!(answer, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    }

    #[test]
    fn child_is_killed_when_it_exceeds_the_output_limit() {
        let limits = Limits { output_bytes: 1_000, ..LIMITS };
        assert!(matches!(output(&mut shell("yes"), b"", limits), Err(ProcessError::TooLarge)));
    }
}
