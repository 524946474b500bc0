//! One child process: fed, listened to, limited in time and output, never left behind.

use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::program::Limits;

/// Why a process gave no result.
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

/// How a process ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stderr: Vec<u8>,
}

/// What is kept of the standard error: the beginning says what is wrong.
const STDERR_BYTES: usize = 16 * 1_024;

/// Kills and reaps its child unless that has ended on its own.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // A child that was reaped already is not signalled: std remembers its status.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the command with `input` on its standard input and hands its output to `sink` piece by piece.
pub(crate) fn run(
    command: &mut Command,
    input: &[u8],
    limits: Limits,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<Ended, ProcessError> {
    let deadline = Instant::now() + limits.time;
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound { ProcessError::Missing } else { error.into() }
    })?;
    let mut child = Reaped(child);
    let stderr = converse(&mut child.0, input, deadline, limits.output_bytes, sink)?;
    Ok(Ended { status: await_end(&mut child.0, deadline)?, stderr })
}

/// Writes and reads until the child has closed its output; answers what it wrote to its standard error.
fn converse(
    child: &mut Child,
    input: &[u8],
    deadline: Instant,
    output_bytes: u64,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<Vec<u8>, ProcessError> {
    let mut feed = child.stdin.take().map(|stdin| Feed::new(stdin, input)).transpose()?;
    let mut stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    let (mut complaint, mut written) = (Vec::new(), 0_u64);
    let mut buffer = vec![0; 64 * 1_024];
    while stdout.is_some() || stderr.is_some() {
        let (mut out_ready, mut err_ready, mut in_ready) = (false, false, false);
        {
            let mut waits = Vec::with_capacity(3);
            let mut marks: Vec<&mut bool> = Vec::with_capacity(3);
            if let Some(stdout) = &stdout {
                waits.push(PollFd::new(stdout, PollFlags::IN));
                marks.push(&mut out_ready);
            }
            if let Some(stderr) = &stderr {
                waits.push(PollFd::new(stderr, PollFlags::IN));
                marks.push(&mut err_ready);
            }
            if let Some(feed) = &feed {
                waits.push(PollFd::new(&feed.stdin, PollFlags::OUT));
                marks.push(&mut in_ready);
            }
            let left = deadline.checked_duration_since(Instant::now()).ok_or(ProcessError::TimedOut)?;
            match poll(&mut waits, Some(&timespec(left))) {
                Ok(0) => return Err(ProcessError::TimedOut),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for (wait, mark) in waits.iter().zip(marks) {
                *mark = !wait.revents().is_empty();
            }
        }
        if out_ready && let Some(pipe) = &mut stdout {
            match read(pipe, &mut buffer)? {
                0 => stdout = None,
                count => {
                    written += count as u64;
                    if written > output_bytes {
                        return Err(ProcessError::TooLarge);
                    }
                    sink(&buffer[..count]);
                }
            }
        }
        if err_ready && let Some(pipe) = &mut stderr {
            match read(pipe, &mut buffer)? {
                0 => stderr = None,
                count => {
                    let room = STDERR_BYTES - complaint.len();
                    complaint.extend_from_slice(&buffer[..count.min(room)]);
                }
            }
        }
        if in_ready && feed.as_mut().is_some_and(|feed| feed.push()) {
            feed = None;
        }
    }
    Ok(complaint)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

fn read(pipe: &mut impl io::Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match pipe.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// What is still to be written to a child.
struct Feed<'a> {
    stdin: ChildStdin,
    left: &'a [u8],
}

impl<'a> Feed<'a> {
    fn new(stdin: ChildStdin, input: &'a [u8]) -> io::Result<Self> {
        // A pipe that is full must not stop us from reading what the child has to say.
        let flags = fcntl_getfl(&stdin)?;
        fcntl_setfl(&stdin, flags | OFlags::NONBLOCK)?;
        Ok(Self { stdin, left: input })
    }

    /// Writes what fits; answers whether nothing is left to do. A child that does not listen any more says why itself.
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

/// Waits for a child that has closed its output, which means that it ends now.
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
    fn a_large_conversation_does_not_stall() {
        let input = vec![b'x'; 3 << 20];
        let (answer, ended) = output(&mut shell("cat; echo problem >&2"), &input, LIMITS).ok().unwrap();
        assert_eq!(answer, input);
        assert_eq!(ended.stderr, b"problem\n");
        assert!(ended.status.success());
    }

    #[test]
    fn a_child_that_does_not_listen_is_no_error_of_ours() {
        let (_, ended) = output(&mut shell("exit 3"), &vec![b'x'; 1 << 20], LIMITS).ok().unwrap();
        assert_eq!(ended.status.code(), Some(3));
    }

    #[test]
    fn a_child_that_takes_too_long_is_ended_and_reaped() {
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
    fn too_much_output_ends_the_child() {
        let limits = Limits { output_bytes: 1_000, ..LIMITS };
        assert!(matches!(output(&mut shell("yes"), b"", limits), Err(ProcessError::TooLarge)));
    }
}
