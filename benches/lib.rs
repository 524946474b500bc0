//! Shared code of the benches: timing, percentiles, tables and machine information.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints its table and fails loudly")]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

/// Sorted timings of one measurement.
#[derive(Debug)]
pub struct Timings(Vec<Duration>);

impl Timings {
    /// Sorts the timings.
    pub fn new(mut timings: Vec<Duration>) -> Self {
        timings.sort_unstable();
        Self(timings)
    }

    /// Returns a percentile in milliseconds.
    pub fn percentile_ms(&self, percent: usize) -> f64 {
        let index = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(index).map_or(0.0, |timing| timing.as_secs_f64() * 1_000.0)
    }
}

/// Prints a Markdown table.
pub fn table(title: &str, header: &[&str], rows: &[Vec<String>]) {
    println!("\n### {title}\n");
    println!("| {} |", header.join(" | "));
    println!("|{}", "---|".repeat(header.len()));
    for row in rows {
        println!("| {} |", row.join(" | "));
    }
}

/// Prints the number of cores and the processor model.
pub fn machine() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("", |m| m.1);
    println!("Machine: {cores} cores, {model}");
}

/// Returns the folder of recorded sessions that `BATON_BENCH_TRANSCRIPTS` names.
///
/// # Panics
///
/// If the folder does not exist.
pub fn transcripts() -> Option<PathBuf> {
    data("BATON_BENCH_TRANSCRIPTS", "a folder of recorded sessions (.jsonl, one hook event per line)")
}

/// Returns the path of data that an environment variable names. If it is not set, prints how to set it: `scripts/bench`
/// also runs the benches whose data is missing.
///
/// # Panics
///
/// If nothing exists at the path.
pub fn data(variable: &str, what: &str) -> Option<PathBuf> {
    let Some(path) = std::env::var_os(variable).map(PathBuf::from) else {
        println!("\nskipped: set {variable} to the absolute path of {what}");
        return None;
    };
    assert!(path.exists(), "{variable} names {}, which does not exist", path.display());
    Some(path)
}

/// Returns the file of a recorded tool use, relative to the working folder.
pub fn file_of(event: &Value) -> Option<String> {
    let input = &event["tool_input"];
    let path = input["file_path"].as_str().or_else(|| input["notebook_path"].as_str())?;
    let inside = path.strip_prefix(event["cwd"].as_str()?)?.trim_start_matches('/');
    Some(inside.to_owned())
}

/// Returns the path of a release binary of the workspace, which `scripts/bench` builds first.
///
/// # Panics
///
/// If the binary does not exist.
pub fn release_binary(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the path of this bench");
    let folder = own.parent().and_then(|deps| deps.parent()).expect("the release folder");
    let binary = folder.join(name);
    assert!(binary.exists(), "{} is missing: run scripts/bench", binary.display());
    binary
}

/// Measures whole processes in turns, so that other load on the machine affects all of them.
///
/// # Panics
///
/// If a process cannot be started or fails.
pub fn time_processes(times: usize, commands: &mut [&mut dyn FnMut() -> Command]) -> Vec<Timings> {
    let mut timings = vec![Vec::with_capacity(times); commands.len()];
    for _ in 0..times {
        for (command, timings) in commands.iter_mut().zip(&mut timings) {
            let mut command = command();
            let started = std::time::Instant::now();
            let output = command.output().expect("the process can be started");
            timings.push(started.elapsed());
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    timings.into_iter().map(Timings::new).collect()
}
