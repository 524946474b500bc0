//! Time of whole processes: `baton --version`, and one durable write including the start.
#![expect(clippy::expect_used, reason = "a bench fails loudly")]

use std::process::Command;

use baton_benches::{machine, release_binary, table, time_processes};

const TIMES: usize = 300;

fn main() {
    machine();
    let (baton, floor) = (release_binary("baton"), release_binary("floor"));
    let folder = tempfile::tempdir().expect("a folder");
    let at_home = |arguments: &[&str]| {
        let mut command = Command::new(&baton);
        command.args(arguments).env("HOME", folder.path()).env("BATON_DATA_DIR", folder.path().join("data"));
        command.current_dir(folder.path());
        command
    };
    let started =
        at_home(&["session", "start", "--agent", "bench", "--repo", "o/r"]).output().expect("a session");
    let text = String::from_utf8_lossy(&started.stdout).into_owned();
    let id = text.split_whitespace().find(|word| word.starts_with("sess_")).expect("its id").to_owned();

    let floor_file = folder.path().join("floor.db");
    let timings = time_processes(
        TIMES,
        &mut [
            &mut || Command::new("/bin/true"),
            &mut || at_home(&["--version"]),
            &mut || {
                let mut command = Command::new(&floor);
                command.arg(&floor_file);
                command
            },
            &mut || at_home(&["session", "heartbeat", &id]),
        ],
    );
    let [bare, version, floor, write] = &timings[..] else { return };
    let row = |name: &str, timings: &baton_benches::Timings, ratio: f64| {
        vec![
            name.to_owned(),
            format!("{:.2}", timings.percentile_ms(50)),
            format!("{:.2}", timings.percentile_ms(95)),
            if ratio > 0.0 { format!("{ratio:.2}×") } else { String::new() },
        ]
    };
    let ratio = write.percentile_ms(50) / floor.percentile_ms(50);
    table(
        "Fresh processes",
        &["process", "p50 ms", "p95 ms", "to the floor"],
        &[
            row("`/bin/true`", bare, 0.0),
            row("`baton --version`", version, 0.0),
            row("floor: open SQLite, one durable insert", floor, 1.0),
            row("`baton session heartbeat` (open the store, one durable write, request log)", write, ratio),
        ],
    );
}
