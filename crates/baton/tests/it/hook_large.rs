//! Reports that are too large for memory are redacted and compressed while they are read, on every interface.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};

use baton_observation::make_private;
use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

use crate::hooked::{Hooked, files_below};
use crate::served::{Served, expect, refusal, with};

const PRIVATE: &str = "CANARYPRIVATECANARY";
const SECRET: &str = "cAnArY7sEcReTcAnArY9";
const MB: usize = 1024 * 1024;

/// Returns log lines that do not look like a secret and compress moderately.
fn log(bytes: usize) -> String {
    let mut log = String::with_capacity(bytes + 100);
    let mut number = 1_u64;
    while log.len() < bytes {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let end = if number.is_multiple_of(20) { '\n' } else { ' ' };
        log.push_str(&format!("INFO é request {number:x} took {} ms{end}", number % 999));
    }
    log
}

/// Returns a text of this size with private parts and secrets in many places, some across buffer boundaries.
fn canaries(bytes: usize) -> String {
    // Built at run time, because this file is scanned for secrets as well.
    let token = format!("gh{}_{SECRET}{}", "p", "k1L2m3N4o5P6q7R8");
    let key = ["BEGIN", "END"].map(|word| format!("-----{word} RSA PRIVATE KEY-----"));
    let body = format!("{SECRET}{SECRET}{SECRET}\n").repeat(40);
    let line = log(64 * 1024 - 200);
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&line);
        text.push_str(&format!("<private>{PRIVATE}\n{PRIVATE}</private>{token}\n"));
        text.push_str(&line);
        text.push_str(&format!("{}\n{body}{}\nDB_PASSWORD={SECRET}{SECRET}\n", key[0], key[1]));
    }
    text
}

/// Reports with the large text in different fields and structures.
fn shapes() -> Vec<(&'static str, Value)> {
    let (text, lines) = (canaries(2 * MB + MB / 4), canaries(2 * MB));
    let lines: Vec<&str> = lines.lines().collect();
    vec![
        ("a text", json!({ "tool_response": text })),
        ("a stream", json!({ "tool_response": { "stdout": text, "stderr": "", "interrupted": false } })),
        (
            "blocks",
            json!({ "tool_response": [{ "type": "text", "text": text }, { "type": "text", "text": text }] }),
        ),
        ("lines", json!({ "tool_response": { "structuredPatch": [{ "oldStart": 1, "lines": lines }] } })),
        (
            "what was asked",
            json!({ "tool_input": { "content": text, "file_path": "/src/a.rs" }, "tool_response": "ok" }),
        ),
        ("a failure", json!({ "error": text, "tool_response": null })),
        (
            "beside it",
            json!({ "tool_response": text, "unknown": { "deep": [text] }, "transcript_path": text }),
        ),
    ]
}

fn report(hooked: &Hooked, more: &Value) -> Value {
    let base = hooked.claude("PostToolUse", json!({ "tool_name": "Tool", "tool_input": { "a": 1 } }));
    with(base, more.clone())
}

/// Returns the expected input and response: the result for a report that is redacted in memory.
fn expected(report: &Value) -> (Value, Value) {
    let mut report = report.clone();
    make_private(&mut report);
    let response = match report["error"].take() {
        Value::Null => report["tool_response"].take(),
        error => json!({ "is_error": true, "content": error }),
    };
    (report["tool_input"].take(), response)
}

#[track_caller]
fn assert_kept(shown: &Value, report: &Value, what: &str) {
    let (input, response) = expected(report);
    assert!(shown["tool_input"] == input, "{what}: the tool input differs");
    assert!(shown["tool_response"] == response, "{what}: the tool response differs");
    let text = shown.to_string();
    assert!(!text.contains(PRIVATE) && !text.contains(SECRET), "{what}");
}

#[track_caller]
fn assert_no_canaries(hooked: &Hooked, what: &str) {
    for file in files_below(&hooked.home.data_dir()) {
        let bytes = std::fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for canary in [PRIVATE, SECRET] {
            assert!(!text.contains(canary), "{what}: {canary} in {}", file.display());
        }
    }
}

#[test]
fn large_reports_are_stored_without_private_text_and_secrets() {
    for hooked in Hooked::each() {
        for (what, more) in shapes() {
            let report = report(&hooked, &more);
            let finished = hooked.call(&["post-tool-use"], report.to_string().as_bytes());
            assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""), "{what}");
            assert_eq!(hooked.work(), 1, "{what}: {:?}", hooked.troubles());
            let seen = hooked.observations().remove(0);
            assert_kept(&hooked.raw(&seen), &report, what);
            if what == "what was asked" {
                assert_eq!(seen["files"], json!(["/src/a.rs"]));
            }
        }
        assert_no_canaries(&hooked, "stored");
        assert_eq!((hooked.queue(), hooked.sessions().len()), ([0, 0, 7, 0], 1));
    }
}

#[test]
fn large_reports_over_http_are_stored_without_private_text_and_secrets() {
    for served in Served::each() {
        let hooked = Hooked::new();
        for (number, (what, more)) in shapes().into_iter().enumerate() {
            let report = with(report(&hooked, &more), json!({ "repo": "o/shop" }));
            if number % 2 == 0 {
                expect(&served.post("/hooks/post-tool-use", &report), 200);
            } else {
                let arguments = ["post-tool-use", "--server", served.url()];
                let finished = hooked.call(&arguments, report.to_string().as_bytes());
                assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""), "{what}");
            }
            let mut seen = Vec::new();
            wait_until("the worker creates an observation", || {
                seen = served.found("/api/observations")["observations"].as_array().unwrap().clone();
                seen.len() == number + 1
            });
            let id = seen[0]["id"].as_str().unwrap();
            assert_kept(&served.found(&format!("/api/observations/{id}?raw=true")), &report, what);
        }
        assert_no_canaries(&hooked, "passed on");
        assert_no_canaries(&Hooked::at(served.into_home()), "stored by the server");
    }
}

#[test]
fn a_key_with_another_large_output_is_a_mismatch() {
    for served in Served::each_without_worker() {
        let hooked = Hooked::new();
        let text = log(3 * MB);
        let report = |text: &str| report(&hooked, &json!({ "tool_response": text, "repo": "o/shop" }));
        let send = |text: &str| served.keyed("/hooks/post-tool-use", "key-1", &report(text));
        expect(&send(&text), 200);
        assert!(send(&text).header("x-idempotency-hit").is_some());
        // One character more.
        refusal(&send(&format!("{text}.")), 422, "idempotency_mismatch");
        assert_eq!(served.found("/api/queue?status=raw")["items"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn large_reports_in_the_outbox_contain_no_private_text() {
    let hooked = Hooked::new();
    hooked.hook("stop", &hooked.claude("Stop", json!({})));
    let mend = hooked.break_database();
    let reports: Vec<(&str, Value)> =
        shapes().into_iter().map(|(what, more)| (what, report(&hooked, &more))).collect();
    for (what, report) in &reports {
        hooked.call(&["post-tool-use"], report.to_string().as_bytes());
        assert!(
            hooked.troubles().last().unwrap()["message"]
                .as_str()
                .unwrap()
                .contains("the report was saved to the outbox"),
            "{what}"
        );
    }
    assert_eq!(hooked.spilled().len(), reports.len());
    assert_no_canaries(&hooked, "waiting");
    mend();
    assert_eq!((hooked.work(), hooked.spilled().len()), (7, 0));
    let observations = hooked.observations();
    for ((what, report), seen) in reports.iter().rev().zip(&observations) {
        assert_kept(&hooked.raw(seen), report, what);
    }
    assert_no_canaries(&hooked, "stored later");
}

#[test]
fn observations_of_large_outputs_are_accurate() {
    let hooked = Hooked::new();
    let mut lines: Vec<String> = (0..120_000)
        .map(|number| format!("step {number}: processed a record in {} ms", number % 99))
        .collect();
    let content = lines.join("\n");
    let read = json!({ "tool_input": { "file_path": "/srv/steps.txt" }, "tool_response": { "file": { "content": content } } });
    lines[60_000] = "error: disk quota exceeded for /var/data/shard-17".to_owned();
    lines.push("done: 119999 records, 1 failed".to_owned());
    let run = json!({ "tool_name": "Bash", "tool_input": { "command": "./run.sh" }, "tool_response": { "stdout": lines.join("\n") } });
    for more in [read, run] {
        hooked.hook("post-tool-use", &report(&hooked, &with(json!({ "tool_name": "Read" }), more)));
    }
    assert_eq!(hooked.work(), 2);
    let seen = hooked.observations();
    let [run, read] = seen.as_slice() else { panic!("{seen:?}") };
    assert!(read["summary"].as_str().unwrap().contains("Read all 120000 lines"), "{read}");
    let detail = run["detail"].as_str().unwrap();
    for line in ["error: disk quota exceeded for /var/data/shard-17", "done: 119999 records, 1 failed"] {
        assert!(detail.contains(line), "{detail}");
    }
    assert!(!detail.contains("truncated"), "{detail}");
}

#[test]
fn large_output_of_baton_itself_is_not_captured() {
    let hooked = Hooked::new();
    let run = json!({ "tool_name": "Bash", "tool_input": { "command": "baton export" }, "tool_response": log(3 * MB) });
    hooked.hook("post-tool-use", &report(&hooked, &run));
    assert_eq!((hooked.queue(), hooked.sessions().len(), hooked.troubles()), ([0; 4], 1, Vec::new()));
}

/// Starts a hook and sends the beginning of a report.
fn begin(hooked: &Hooked, beginning: &[u8]) -> (Child, ChildStdin) {
    let mut command = hooked.home.command();
    let mut child = command.args(["hook", "post-tool-use"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(beginning).unwrap();
    (child, stdin)
}

#[test]
fn interrupted_large_reports_leave_no_blob() {
    let hooked = Hooked::new();
    let report = report(&hooked, &json!({ "tool_response": log(8 * MB) })).to_string();
    let part = &report.as_bytes()[..6 * MB];
    // Truncated input, invalid input, and a killed hook.
    hooked.call(&["post-tool-use"], part);
    hooked.call(&["post-tool-use"], &[part, b"\" 1}"].concat());
    let (mut child, stdin) = begin(&hooked, part);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    let messages: Vec<String> =
        hooked.troubles().iter().map(|trouble| trouble["message"].as_str().unwrap().to_owned()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("a text has no end at byte 6291456"), "{messages:?}");
    assert!(messages[1].contains("`,` or an end is expected"), "{messages:?}");
    let blobs = files_below(&hooked.home.data_dir().join("blobs"));
    let is_temporary = |blob: &PathBuf| blob.file_name().unwrap().as_encoded_bytes().starts_with(b".tmp-");
    assert!(blobs.iter().all(is_temporary), "{blobs:?}");
    assert!(blobs.len() <= 1, "only the killed hook may leave a temporary file: {blobs:?}");
    hooked.call(&["post-tool-use"], report.as_bytes());
    assert_eq!((hooked.work(), hooked.queue()), (1, [0, 0, 1, 0]));
}

/// Returns the peak memory of a process in bytes, without the pages of its executable: they depend on the size of the
/// debug build.
fn peak_memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    };
    (kilobytes("VmHWM:") - kilobytes("RssFile:")) * 1024
}

#[test]
fn hook_and_worker_process_large_outputs_with_bounded_memory() {
    let hooked = Hooked::new();
    let text = log(50 * MB);
    let report = report(&hooked, &json!({ "tool_response": { "stdout": text } })).to_string();
    let (last, most) = report.as_bytes().split_last().unwrap();
    let (mut child, mut stdin) = begin(&hooked, most);
    let peak = peak_memory(child.id());
    stdin.write_all(&[*last]).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!((hooked.queue(), hooked.troubles()), ([1, 0, 0, 0], Vec::new()));
    assert!(peak < 40 * MB, "the hook held {peak} bytes");

    hooked.data(&["worker", "start"]);
    wait_until("the worker creates an observation", || hooked.queue() == [0, 0, 1, 0]);
    let pid = hooked.data(&["worker", "status"])["pid"].as_u64().unwrap();
    let peak = peak_memory(u32::try_from(pid).unwrap());
    hooked.data(&["worker", "stop"]);
    assert!(peak < 40 * MB, "the worker held {peak} bytes");
    assert_eq!(hooked.observations()[0]["raw_bytes"], json!({ "stdout": text }).to_string().len());
}

#[test]
fn a_server_processes_large_outputs_with_bounded_memory() {
    let served = Served::sqlite();
    let hooked = Hooked::new();
    let report = report(&hooked, &json!({ "tool_response": log(50 * MB), "repo": "o/shop" })).to_string();
    let before = peak_memory(served.id());
    let answer = served.send(
        "POST",
        "/hooks/post-tool-use",
        &[("content-type", "application/json")],
        report.as_bytes(),
    );
    expect(&answer, 200);
    wait_until("the worker creates an observation", || {
        served.found("/api/observations")["observations"].as_array().unwrap().len() == 1
    });
    let peak = peak_memory(served.id()) - before;
    assert!(peak < 64 * MB, "the server held {peak} bytes more");
}
