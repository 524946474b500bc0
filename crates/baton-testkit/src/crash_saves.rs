//! The crash harness of checkpoints: writers save to one workflow through MCP servers of their own, which are killed at
//! moments that nobody chose and started again; what was acknowledged is compared with what is there.
#![expect(clippy::expect_used, reason = "a harness that cannot look must fail loudly")]

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{Home, McpClient};
use crate::contract::fixture::Dice;

const WORKFLOW: &str = "crash";

/// How much a run does.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// How many write at once.
    pub writers: u32,
    /// Minimum number of acknowledged saves of each writer. Writers go on until a server was killed once per writer.
    pub saves: u32,
}

impl Load {
    /// Reads `BATON_CRASH_SAVES`, the saves of each writer.
    #[must_use]
    pub fn or_as_told(self) -> Self {
        let told = std::env::var("BATON_CRASH_SAVES").ok().and_then(|text| text.parse().ok());
        Self { saves: told.unwrap_or(self.saves), ..self }
    }
}

/// What the harness saw, for a test to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Saves that were acknowledged.
    pub acknowledged: usize,
    /// Saves that were done although the server died before it said so.
    pub unanswered: usize,
    /// How often a server was killed.
    pub kills: u32,
}

/// A save that was acknowledged, and where the writer stood then.
struct Acknowledged {
    checkpoint_id: String,
    number: u32,
}

/// Runs the writers to their end and checks what is there.
///
/// # Panics
///
/// When something acknowledged is missing, listed twice, out of order or other than it was, and when anything that is
/// listed was never sent.
pub fn run(home: &Home, load: Load) -> Tally {
    let done = AtomicBool::new(false);
    let kills = AtomicU32::new(0);
    let pids: Vec<AtomicU32> = (0..load.writers).map(|_| AtomicU32::new(0)).collect();
    // The first one makes the store, so that nobody is killed while doing so over and over.
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

/// The context of a save: large enough to be stored as a difference, and unlike any other.
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

/// Saves one number after the other; one that was not answered is not repeated, as a chat that died does not.
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
        // Nobody is killed by a number that somebody else may have by now.
        pid.store(0, Ordering::Release);
    }
    acknowledged
}

fn kill_at_random(pids: &[AtomicU32], done: &AtomicBool, kills: &AtomicU32) {
    let random = || RandomState::new().build_hasher().finish();
    while !done.load(Ordering::Acquire) {
        // The one place where waiting is the point: the crash comes at a moment that nobody chose.
        std::thread::sleep(Duration::from_millis(100 + random() % 400));
        let victim = &pids[usize::try_from(random() % pids.len() as u64).expect("an index")];
        let pid = victim.swap(0, Ordering::AcqRel);
        if pid != 0 {
            let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
            kills.fetch_add(u32::from(killed.expect("kill runs").success()), Ordering::Relaxed);
        }
    }
}

/// Looks through a server of its own: everything acknowledged is listed once, in its writer's order, and loads as it was.
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
    assert_eq!(places.len(), listed.len(), "nothing is listed twice");
    let mut expected: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (writer, saves) in (0..).zip(acknowledged) {
        let order: Vec<usize> = saves
            .iter()
            .map(|save| {
                *places.get(save.checkpoint_id.as_str()).expect("an acknowledged checkpoint is listed")
            })
            .collect();
        assert!(order.is_sorted_by(|one, next| one < next), "writer {writer} finds its own in order");
        expected.extend(saves.iter().map(|save| (save.checkpoint_id.as_str(), (writer, save.number))));
    }
    for id in &listed {
        let loaded = client.call("workflow_checkpoint_load", &json!({ "checkpointId": id }));
        let found = &loaded["structuredContent"]["context"];
        let part = |name: &str| found[name].as_u64().and_then(|number| u32::try_from(number).ok());
        let (writer, number) = part("writer").zip(part("number")).expect("a context that was sent");
        assert_eq!(*found, context(writer, number), "{id} is whole");
        assert!(expected.get(id.as_str()).is_none_or(|sent| *sent == (writer, number)), "{id} is its own");
    }
    Tally { acknowledged: expected.len(), unanswered: listed.len() - expected.len(), kills }
}
