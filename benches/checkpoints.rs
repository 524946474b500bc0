//! Checkpoints: a long series of saves of a large context, compression of single contexts, large stores, and MCP calls.
//!
//! All calls use the real binary like an agent does: tool calls over standard input and output, each save answered
//! after its fsync. The peer writes every context in full to a row of SQLite, as common checkpointers do.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints its table and fails loudly")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_benches::{Timings, machine, release_binary, table, transcripts};
use baton_checkpoint::SavedContext;
use baton_checkpoint::classify::{Classifier, Layer};
use baton_core::Sha256Hash;
use baton_store::{Effort, Packing};
use baton_testkit::binary::{Home, McpClient};
use serde_json::{Map, Value, json};

const CONTEXT_BYTES: usize = 100_000;
const SAVES: u32 = 200;

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap_or(0)
    }
}

const WORDS: &str = "the session cookie is kept until logout and then removed because a second tab may still use it we \
    decided to migrate accounts in batches of five hundred with a dry run before each batch failing tests point to the \
    retry loop in the payment client which sleeps without jitter and hides timeouts review asked for smaller commits";

fn sentence(dice: &mut Dice) -> String {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let count = 8 + dice.roll(14);
    (0..count).map(|_| words[dice.roll(words.len())]).collect::<Vec<_>>().join(" ")
}

/// Returns a typical context of an agent: goal, decisions, plan, findings and step.
fn context(bytes: usize) -> Map<String, Value> {
    let mut dice = Dice(0x5eed);
    let mut findings = Vec::new();
    let mut size = 0;
    while size < bytes {
        let finding = json!({
            "file": format!("crates/app/src/{}.rs", dice.roll(400)), "line": dice.roll(900),
            "note": sentence(&mut dice), "status": if dice.roll(3) == 0 { "open" } else { "done" },
        });
        size += finding.to_string().len();
        findings.push(finding);
    }
    let context = json!({
        "workflowId": "bench", "goal": sentence(&mut dice), "decisions": [sentence(&mut dice), sentence(&mut dice)],
        "plan": (0..20).map(|_| sentence(&mut dice)).collect::<Vec<_>>(), "findings": findings, "step": 0,
    });
    context.as_object().expect("an object").clone()
}

/// Makes a small change: the step, one finding, and one more line in the log.
fn step(context: &mut Map<String, Value>, dice: &mut Dice, number: u32) {
    context.insert("step".into(), number.into());
    if let Some(findings) = context.get_mut("findings").and_then(Value::as_array_mut) {
        let index = dice.roll(findings.len());
        findings[index]["note"] = sentence(dice).into();
    }
    let log = context.entry("log").or_insert_with(|| json!([])).as_array_mut().expect("a list");
    log.push(format!("step {number}: {}", sentence(dice)).into());
    if log.len() > 30 {
        log.remove(0);
    }
}

/// Calls a tool. The time is measured from the first byte of the request to the last byte of the response, without the
/// serialization and parsing by the client.
fn call(client: &mut McpClient, tool: &str, arguments: &Value) -> (Value, Duration) {
    let params = json!({ "name": tool, "arguments": arguments });
    let request = json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params }).to_string();
    let started = Instant::now();
    client.send_line(request.as_bytes());
    let line = client.try_receive_line().expect("an answer");
    let took = started.elapsed();
    let answer: Value = serde_json::from_str(&line).expect("JSON on the wire");
    let result = &answer["result"];
    assert_ne!(result["isError"], true, "{result}");
    (result["structuredContent"].clone(), took)
}

fn disk_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |path: PathBuf| match path.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&path),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(|entry| size(entry.path())).sum()
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}

fn series(binary: &str) {
    let home = Home::new(binary);
    let mut client = home.mcp();
    let (mut context, mut dice) = (context(CONTEXT_BYTES), Dice(7));
    let (mut ids, mut contexts, mut saves, mut plain) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let peer_folder = tempfile::tempdir().expect("a folder");
    let peer = rusqlite::Connection::open(peer_folder.path().join("peer.db")).expect("a database");
    peer.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
         CREATE TABLE checkpoints (id INTEGER PRIMARY KEY, thread TEXT, checkpoint BLOB);",
    )
    .expect("a table");
    let mut peer_saves = Vec::new();
    for number in 0..SAVES {
        step(&mut context, &mut dice, number);
        let (saved, took) = call(
            &mut client,
            "workflow_checkpoint_save",
            &json!({ "sessionId": "bench", "context": context }),
        );
        assert_eq!(saved["status"], "SAVED");
        saves.push(took);
        ids.push(saved["checkpointId"].clone());
        let text = serde_json::to_string(&context).expect("text");
        plain += text.len();
        contexts.push(context.clone());
        let started = Instant::now();
        peer.execute("INSERT INTO checkpoints (thread, checkpoint) VALUES ('bench', ?1)", [text.as_bytes()])
            .expect("a row");
        peer_saves.push(started.elapsed());
    }
    let mut loads = Vec::new();
    for _ in 0..200 {
        let index = dice.roll(ids.len());
        let (loaded, took) =
            call(&mut client, "workflow_checkpoint_load", &json!({ "checkpointId": ids[index] }));
        loads.push(took);
        assert_eq!(
            loaded["context"],
            Value::Object(contexts[index].clone()),
            "the loaded context must equal the saved one"
        );
    }
    let mut lists = Vec::new();
    for _ in 0..50 {
        let mut both = Duration::ZERO;
        for offset in [0, 100] {
            let (page, took) = call(
                &mut client,
                "workflow_checkpoint_list",
                &json!({ "sessionId": "bench", "limit": 100, "offset": offset }),
            );
            assert_eq!(page["checkpoints"].as_array().map(Vec::len), Some(100));
            both += took;
        }
        lists.push(both);
    }
    let open = disk_bytes(&home.data_dir());
    drop(client);
    // Opening and closing the database once more checkpoints the WAL of the ended process.
    home.run(&["status"]);
    let closed = disk_bytes(&home.data_dir());
    drop(peer);
    let peer_bytes = disk_bytes(peer_folder.path());
    let time = |timings: Vec<Duration>| {
        let timings = Timings::new(timings);
        format!("{:.2} / {:.2}", timings.percentile_ms(50), timings.percentile_ms(99))
    };
    table(
        &format!("{SAVES} saves of a context of {} kB with small changes", plain / SAVES as usize / 1000),
        &["", "baton, tool call over stdio", "peer: whole contexts in SQLite, in process"],
        &[
            vec!["save, p50 / p99 ms".into(), time(saves), time(peer_saves)],
            vec!["load of any, p50 / p99 ms".into(), time(loads), String::new()],
            vec![format!("list of {SAVES} (two pages), p50 / p99 ms"), time(lists), String::new()],
            vec!["on disk, process over".into(), megabytes(closed), megabytes(peer_bytes)],
            vec!["on disk, process alive (with its log)".into(), megabytes(open), String::new()],
        ],
    );
}

/// Returns contexts of real sessions, if available: prompts and tool uses, truncated to the size of a context.
fn real_contexts() -> Vec<Map<String, Value>> {
    let Some(folder) = transcripts() else { return Vec::new() };
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut contexts = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let (mut events, mut size) = (Vec::new(), 0);
        for line in text.lines() {
            let Ok(Value::Object(event)) = serde_json::from_str(line) else { continue };
            let kept: Map<String, Value> = event
                .into_iter()
                .filter(|(key, _)| {
                    ["prompt", "tool_name", "tool_input", "tool_response"].contains(&key.as_str())
                })
                .collect();
            size += line.len();
            if size > CONTEXT_BYTES {
                break;
            }
            events.push(Value::Object(kept));
        }
        if size > CONTEXT_BYTES / 2 {
            contexts.push(json!({ "events": events }).as_object().expect("an object").clone());
        }
    }
    contexts
}

fn single_contexts() {
    let efforts =
        [("basic", Effort::Basic), ("standard", Effort::Standard), ("aggressive", Effort::Aggressive)];
    let real = real_contexts();
    let made = vec![context(CONTEXT_BYTES)];
    let mut rows = Vec::new();
    for (kind, contexts) in [("real sessions", &real), ("made up", &made)] {
        for (name, effort) in efforts {
            let (mut plain, mut packed, mut timings) = (0, 0, Vec::new());
            for context in contexts {
                let text = serde_json::to_string(context).expect("text");
                let started = Instant::now();
                let frame = Packing { effort, min_bytes: 0 }.whole(text.as_bytes()).expect("a frame");
                timings.push(started.elapsed());
                assert_eq!(
                    frame
                        .unpack(None, text.len(), Some(Sha256Hash::of(text.as_bytes())))
                        .expect("it unpacks"),
                    text.as_bytes()
                );
                plain += text.len();
                packed += frame.bytes.len();
            }
            if packed > 0 {
                rows.push(vec![
                    format!("{kind} ({} contexts)", contexts.len()),
                    name.into(),
                    format!("{:.1}×", plain as f64 / packed as f64),
                    format!("{:.1}", Timings::new(timings).percentile_ms(50)),
                ]);
            }
        }
    }
    table(
        "Single contexts of about 100 kB, compressed by themselves",
        &["contexts", "level", "smaller", "p50 ms"],
        &rows,
    );
}

fn classification() {
    let mut rows = Vec::new();
    for part in ["tune", "held-out"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../crates/baton-checkpoint/tests/data/contexts")
            .join(part);
        let (mut labels, mut right) = (0_usize, 0_usize);
        for entry in std::fs::read_dir(folder).expect("labelled contexts").flatten() {
            let text = std::fs::read(entry.path()).expect("a file");
            let labelled: Value = serde_json::from_slice(&text).expect("labels");
            let wanted: BTreeMap<String, Layer> =
                serde_json::from_value(labelled["labels"].clone()).expect("labels");
            let context = saved(labelled["context"].as_object().expect("a context"));
            let classifier = Classifier::builtin();
            let classified = classifier.classify(context.json(), &[]);
            labels += wanted.len();
            right += wanted
                .iter()
                .filter(|(path, layer)| classified.explain(path).is_some_and(|found| found.layer == **layer))
                .count();
        }
        rows.push(vec![part.into(), labels.to_string(), format!("{:.2}", right as f64 / labels as f64)]);
    }
    table("Classification against labels", &["contexts", "labelled keys", "accuracy"], &rows);
    let context = saved(&context(CONTEXT_BYTES));
    let classifier = Classifier::builtin();
    let timings = (0..50).map(|_| {
        let started = Instant::now();
        assert!(classifier.classify(context.json(), &[]).bytes().critical > 0);
        started.elapsed()
    });
    println!("\nclassifying 100 kB: p50 {:.2} ms", Timings::new(timings.collect()).percentile_ms(50));
}

fn saved(context: &Map<String, Value>) -> SavedContext {
    SavedContext::of(context.clone()).expect("no integer that is rounded")
}

fn growth(binary: &str) {
    let home = Home::new(binary);
    let mut client = home.mcp();
    let mut rows = Vec::new();
    let small = |number: u32| json!({ "goal": "grow", "step": number, "note": WORDS.repeat(5) });
    let mut probe = |client: &mut McpClient, name: String, workflow: &str, number: u32| {
        let mut timings = [Vec::new(), Vec::new(), Vec::new()];
        for turn in 0..60 {
            let save = json!({ "sessionId": workflow, "context": small(number + turn) });
            timings[0].push(call(client, "workflow_checkpoint_save", &save).1);
            timings[1].push(call(client, "workflow_checkpoint_load", &json!({ "sessionId": workflow })).1);
            timings[2].push(call(client, "workflow_checkpoint_list", &json!({ "sessionId": workflow })).1);
        }
        let p50: Vec<String> = timings
            .into_iter()
            .map(|timings| format!("{:.2}", Timings::new(timings).percentile_ms(50)))
            .collect();
        rows.push([vec![name], p50].concat());
    };
    probe(&mut client, "the first 60 checkpoints of one workflow".into(), "one", 0);
    for number in 0..880 {
        call(
            &mut client,
            "workflow_checkpoint_save",
            &json!({ "sessionId": "one", "context": small(1_000 + number) }),
        );
    }
    probe(&mut client, "the last 60 of 1,000 in one workflow".into(), "one", 5_000);
    for number in 0..10_000 {
        let save = json!({ "sessionId": format!("w-{number}"), "context": { "goal": "one of many", "number": number } });
        call(&mut client, "workflow_checkpoint_save", &save);
    }
    probe(&mut client, "with 10,000 other workflows, a new one".into(), "two", 10_000);
    table(
        "A growing store: p50 of tool calls, a context of 2 kB",
        &["", "save ms", "load ms", "list ms"],
        &rows,
    );
}

fn tool_call(binary: &str) {
    let home = Home::new(binary);
    let mut starts = Vec::new();
    for _ in 0..20 {
        let started = Instant::now();
        let mut client = home.mcp();
        call(&mut client, "workflow_list", &json!({}));
        starts.push(started.elapsed());
    }
    let mut client = home.mcp();
    call(
        &mut client,
        "workflow_checkpoint_save",
        &json!({ "sessionId": "s", "context": context(CONTEXT_BYTES) }),
    );
    let mut timings = [Vec::new(), Vec::new()];
    for number in 0..500 {
        let save = json!({ "sessionId": "small", "context": { "goal": "be quick", "number": number } });
        timings[0].push(call(&mut client, "workflow_checkpoint_save", &save).1);
        timings[1].push(call(&mut client, "workflow_checkpoint_list", &json!({ "sessionId": "small" })).1);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.id())).unwrap_or_default();
    let resident =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default().trim().to_owned();
    let [save, list] = timings.map(|timings| format!("{:.2}", Timings::new(timings).percentile_ms(50)));
    table(
        "`baton mcp`",
        &["what", "measured"],
        &[
            vec![
                "start to first answered tool call, p50 ms".into(),
                format!("{:.1}", Timings::new(starts).percentile_ms(50)),
            ],
            vec!["small save (durable), p50 ms".into(), save],
            vec!["list of 20, p50 ms".into(), list],
            vec!["resident memory after 1,000 calls".into(), resident],
        ],
    );
}

fn main() {
    machine();
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let binary = release_binary("baton").to_string_lossy().into_owned();
    if wants("series") {
        series(&binary);
    }
    if wants("single") {
        single_contexts();
    }
    if wants("classify") {
        classification();
    }
    if wants("calls") {
        tool_call(&binary);
    }
    if wants("growth") {
        growth(&binary);
    }
}
