//! Crash harness of checkpoints: writers save to one workflow through their own MCP servers, which are killed at random
//! times and restarted. Acknowledged saves are compared with the stored checkpoints.
#![expect(clippy::expect_used, reason = "a harness that cannot read the store must fail loudly")]

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{Home, McpClient};
use crate::contract::fixture::Dice;

const WORKFLOW: &str = "crash";

/// Amount of work of a run.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Number of concurrent writers.
    pub writers: u32,
    /// Minimum number of acknowledged saves per writer. Writers continue until a server was killed once per writer.
    pub saves: u32,
}

/// Counts, for a test to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Acknowledged saves.
    pub acknowledged: usize,
    /// Saves that were stored although the server died before it answered.
    pub unanswered: usize,
    /// Number of killed servers.
    pub kills: u32,
}

/// An acknowledged save, and the writer's number of it.
struct Acknowledged {
    checkpoint_id: String,
    number: u32,
}

/// Runs the writers and verifies the result.
///
/// # Panics
///
/// Panics if an acknowledged save is missing, listed twice, out of order or changed, or if a listed checkpoint was
/// never sent.
pub fn run(home: &Home, load: Load) -> Tally {
    let done = AtomicBool::new(false);
    let kills = AtomicU32::new(0);
    let pids: Vec<AtomicU32> = (0..load.writers).map(|_| AtomicU32::new(0)).collect();
    // The store is created here, so that no server is killed while creating it.
    drop(home.mcp());
    let acknowledged: Vec<Vec<Acknowledged>> = std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_at_random(&pids, &done, &kills));
        let writers: Vec<_> = (0..load.writers)
            .map(|writer| {
                let (pid, kills) = (&pids[writer as usize], &kills);
                let is_done = move |acknowledged: usize| {
                    acknowledged >= load.saves as usize && kills.load(Ordering::Relaxed) >= load.writers
                };
                scope.spawn(move || write(home, writer, pid, is_done))
            })
            .collect();
        let acknowledged = writers.into_iter().map(|writer| writer.join().expect("a writer ends")).collect();
        done.store(true, Ordering::Release);
        killer.join().expect("the killer ends");
        acknowledged
    });
    verify(home, &acknowledged, kills.into_inner())
}

/// Returns the context of a save: large enough to be stored as a delta, and unique.
fn context(writer: u32, number: u32) -> Value {
    let mut dice = Dice::new(u64::from(writer) << 32 | u64::from(number));
    let changing: Vec<u64> = (0..8).map(|_| dice.below(1 << 50)).collect();
    let same: Vec<u64> = (0..200).map(|key| key * 7_919).collect();
    json!({ "writer": writer, "number": number, "changing": changing, "same": same })
}

fn save(client: &mut McpClient, writer: u32, number: u32) -> std::io::Result<Value> {
    let arguments = json!({ "sessionId": WORKFLOW, "context": context(writer, number) });
    let call = json!({ "name": "workflow_checkpoint_save", "arguments": arguments });
    Ok(client.try_request("tools/call", &call)?["result"].clone())
}

/// Saves consecutive numbers. A save without an answer is not repeated, like in a chat that died.
fn write(home: &Home, writer: u32, pid: &AtomicU32, is_done: impl Fn(usize) -> bool) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    let mut number = 0;
    while !is_done(acknowledged.len()) {
        let Ok(mut client) = home.try_mcp() else { continue };
        pid.store(client.id(), Ordering::Release);
        while !is_done(acknowledged.len()) {
            number += 1;
            let Ok(result) = save(&mut client, writer, number) else { break };
            let body = &result["structuredContent"];
            assert_eq!(body["status"], "SAVED", "writer {writer}, number {number}: {result}");
            let checkpoint_id = body["checkpointId"].as_str().expect("an id").to_owned();
            acknowledged.push(Acknowledged { checkpoint_id, number });
        }
        // The id may be reused by another process from now on.
        pid.store(0, Ordering::Release);
    }
    acknowledged
}

fn kill_at_random(pids: &[AtomicU32], done: &AtomicBool, kills: &AtomicU32) {
    let random = || RandomState::new().build_hasher().finish();
    while !done.load(Ordering::Acquire) {
        // Sleeping is intended here: the crash must happen at a random time.
        std::thread::sleep(Duration::from_millis(100 + random() % 400));
        let victim = &pids[usize::try_from(random() % pids.len() as u64).expect("an index")];
        let pid = victim.swap(0, Ordering::AcqRel);
        if pid != 0 {
            let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
            kills.fetch_add(u32::from(killed.expect("kill runs").success()), Ordering::Relaxed);
        }
    }
}

/// Verifies through a new server that every acknowledged save is listed once, in its writer's order, and loads
/// unchanged.
fn verify(home: &Home, acknowledged: &[Vec<Acknowledged>], kills: u32) -> Tally {
    let mut client = home.mcp();
    let mut listed: Vec<String> = Vec::new();
    loop {
        let window = json!({ "sessionId": WORKFLOW, "limit": 100, "offset": listed.len() });
        let result = client.call("workflow_checkpoint_list", &window);
        let page = result["structuredContent"]["checkpoints"].as_array().expect("a list").clone();
        for checkpoint in &page {
            assert_eq!(checkpoint["metadata"]["status"], "active", "{checkpoint}");
            listed.push(checkpoint["checkpointId"].as_str().expect("an id").to_owned());
        }
        if page.len() < 100 {
            break;
        }
    }
    listed.reverse();
    let places: BTreeMap<&str, usize> =
        listed.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
    assert_eq!(places.len(), listed.len(), "no checkpoint may be listed twice");
    let mut expected: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (writer, saves) in (0..).zip(acknowledged) {
        let order: Vec<usize> = saves
            .iter()
            .map(|save| {
                *places.get(save.checkpoint_id.as_str()).expect("an acknowledged checkpoint is listed")
            })
            .collect();
        assert!(order.is_sorted_by(|one, next| one < next), "writer {writer} must find its saves in order");
        expected.extend(saves.iter().map(|save| (save.checkpoint_id.as_str(), (writer, save.number))));
    }
    for id in &listed {
        let loaded = client.call("workflow_checkpoint_load", &json!({ "checkpointId": id }));
        let found = &loaded["structuredContent"]["context"];
        let part = |name: &str| found[name].as_u64().and_then(|number| u32::try_from(number).ok());
        let (writer, number) = part("writer").zip(part("number")).expect("a context that was sent");
        assert_eq!(*found, context(writer, number), "{id} must load unchanged");
        assert!(
            expected.get(id.as_str()).is_none_or(|sent| *sent == (writer, number)),
            "{id} must be the acknowledged save"
        );
    }
    Tally { acknowledged: expected.len(), unanswered: listed.len() - expected.len(), kills }
}
