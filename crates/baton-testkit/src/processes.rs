//! Control of real processes: signals, running processes, waiting for conditions.
#![expect(clippy::expect_used, reason = "a timeout must fail the test")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time to wait for a condition.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
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
