//! Accuracy of offline observations: false statements, written text that was kept, size and repeated text.

use std::collections::{BTreeMap, HashSet};

use baton_benches::table;
use baton_core::observation::CompressedObservation;
use baton_llm::{Compressor, Offline};
use baton_observation::ToolUse;
use baton_secrets::redact_json;

use crate::checks::{self, Claim};
use crate::measure::{all_text, percent, text_of};
use crate::session::Session;
use crate::written::{self, Kept, Source};

/// Number of words of a sequence that counts as repeated text.
const SEQUENCE_WORDS: usize = 8;
/// Bytes of raw input and response that a sample prints.
const SAMPLE_BYTES: usize = 6_000;

/// Prints the tables.
pub(crate) fn report(sessions: &[Session]) {
    let mut claims: BTreeMap<Claim, (u64, u64)> = BTreeMap::new();
    let mut kept: BTreeMap<Source, Kept> = BTreeMap::new();
    let mut sizes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut repeated = Repeated::default();
    for session in sessions {
        let mut seen = HashSet::new();
        for tool_use in tool_uses(session) {
            let observation = observe(tool_use);
            for statement in checks::check(tool_use, &observation) {
                let (all, wrong) = claims.entry(statement.claim).or_default();
                *all += 1;
                *wrong += u64::from(statement.fault.is_some());
            }
            let text = text_of(&observation);
            if let Some((source, written)) = written::texts(tool_use) {
                let cwd = tool_use.cwd.as_deref().unwrap_or_default();
                kept.entry(source).or_default().add(written::compare(&written, &text, cwd));
            }
            let tool = if tool_use.tool_name.starts_with("mcp__") { "mcp" } else { &tool_use.tool_name };
            for name in [tool, "**all**"] {
                sizes.entry(name.to_owned()).or_default().push(text.len());
            }
            repeated.add(&text, &mut seen);
        }
    }
    let rows = Claim::ALL.iter().map(|claim| {
        let (all, wrong) = claims.get(claim).copied().unwrap_or_default();
        vec![claim.label().to_owned(), all.to_string(), wrong.to_string()]
    });
    table("Statements", &["statement", "checked", "false"], &rows.collect::<Vec<_>>());
    let rows = Source::ALL.iter().map(|source| {
        let kept = kept.get(source).copied().unwrap_or_default();
        vec![
            source.label().to_owned(),
            kept.texts.to_string(),
            format!("{:.1}", kept.bytes as f64 / 1e3),
            kept.facts.1.to_string(),
            percent(kept.facts.0, kept.facts.1),
            kept.statements.1.to_string(),
            percent(kept.statements.0, kept.statements.1),
        ]
    });
    table(
        "Written text",
        &["text", "number", "KB", "facts", "facts kept", "statements", "statements kept"],
        &rows.collect::<Vec<_>>(),
    );
    let rows = sizes.into_iter().map(|(tool, mut sizes)| {
        sizes.sort_unstable();
        let at = |percent: usize| sizes.get((sizes.len() * percent / 100).min(sizes.len() - 1));
        let at = |percent: usize| at(percent).copied().unwrap_or(0).to_string();
        vec![tool, sizes.len().to_string(), at(50), at(95), at(100)]
    });
    table(
        "Size per observation in bytes",
        &["tool", "number", "median", "p95", "max"],
        &rows.collect::<Vec<_>>(),
    );
    println!(
        "\nRepeated sequences of {SEQUENCE_WORDS} words: {} in the same observation, {} in earlier observations of the session.",
        percent(repeated.inside, repeated.all),
        percent(repeated.across, repeated.all)
    );
    print_redacted(sessions, false);
}

/// Prints the number of tool results in which something was redacted, and the lines if `is_verbose`. The transcripts hold
/// no secrets, so every redaction is a false positive.
pub(crate) fn print_redacted(sessions: &[Session], is_verbose: bool) {
    let (mut all, mut redacted) = (0_u64, 0_u64);
    for tool_use in sessions.iter().flat_map(tool_uses) {
        let mut response = tool_use.tool_response.clone();
        redact_json(&mut response);
        all += 1;
        if response == tool_use.tool_response {
            continue;
        }
        redacted += 1;
        let known = all_text(&tool_use.tool_response);
        let known: HashSet<&str> = known.lines().collect();
        let text = all_text(&response);
        let changed = text.lines().filter(|line| line.contains("[redacted:") && !known.contains(line));
        changed.filter(|_| is_verbose).for_each(|line| println!("{}: {line}", tool_use.tool_name));
    }
    println!("\nTool results with a redaction: {redacted} of {all} ({}).", percent(redacted, all));
}

/// Prints every false statement.
pub(crate) fn print_false(sessions: &[Session]) {
    let mut number = 0;
    for tool_use in sessions.iter().flat_map(tool_uses) {
        let observation = observe(tool_use);
        for statement in checks::check(tool_use, &observation) {
            let Some(fault) = statement.fault else { continue };
            number += 1;
            println!("\n=== {:?}: {fault}\n{}\n{}", statement.claim, observation.title, observation.summary);
        }
    }
    println!("\n{number} false statements");
}

/// Prints, for each written text, how much of it its observation kept.
pub(crate) fn print_written(sessions: &[Session]) {
    for tool_use in sessions.iter().flat_map(tool_uses) {
        let Some((source, text)) = written::texts(tool_use) else { continue };
        let observation = text_of(&observe(tool_use));
        let kept = written::compare(&text, &observation, tool_use.cwd.as_deref().unwrap_or_default());
        println!(
            "{source:?} of {} bytes to {}: facts {:?}, statements {:?}",
            text.len(),
            observation.len(),
            kept.facts,
            kept.statements
        );
    }
}

/// Prints random tool uses with their observations, for comparison by a reader. The same seed gives the same sample.
pub(crate) fn print_sample(sessions: &[Session], number: usize, seed: u64) {
    let all: Vec<&ToolUse> = sessions.iter().flat_map(tool_uses).collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut chosen = HashSet::new();
    while chosen.len() < number.min(all.len()) {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = usize::try_from(state % all.len() as u64).unwrap_or(0);
        if let Some(tool_use) = all.get(at).filter(|_| chosen.insert(at)) {
            print_pair(chosen.len(), tool_use);
        }
    }
}

fn print_pair(number: usize, tool_use: &ToolUse) {
    let observation = observe(tool_use);
    println!("\n\n######## {number}: {}", tool_use.tool_name);
    println!("T {}\nS {}", observation.title, observation.summary);
    println!("D {}", observation.detail.as_deref().unwrap_or("-"));
    println!("F {:?} {:?}", observation.files_touched, observation.functions_changed.len());
    let mut raw = serde_json::to_string_pretty(&tool_use.tool_input).expect("an input can be written");
    raw.push_str("\n-------- response\n");
    let mut response = tool_use.tool_response.clone();
    if let Some(members) = response.as_object_mut() {
        for echo in ["originalFile", "prompt", "oldTodos", "usage"] {
            members.remove(echo);
        }
    }
    raw.push_str(&all_text(&response));
    let cut = raw.len().saturating_sub(SAMPLE_BYTES);
    println!("-------- input\n{}", raw.get(..raw.floor_char_boundary(SAMPLE_BYTES)).unwrap_or(&raw));
    if cut > 0 {
        println!("[{cut} bytes left out]");
    }
}

/// Numbers of word sequences.
#[derive(Default)]
struct Repeated {
    all: u64,
    /// Sequences that occur earlier in the same observation.
    inside: u64,
    /// Sequences that occur in an earlier observation of the session.
    across: u64,
}

impl Repeated {
    fn add(&mut self, text: &str, seen: &mut HashSet<String>) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut own = HashSet::new();
        for sequence in words.windows(SEQUENCE_WORDS) {
            let sequence = sequence.join(" ");
            self.all += 1;
            self.across += u64::from(seen.contains(&sequence));
            self.inside += u64::from(!own.insert(sequence));
        }
        seen.extend(own);
    }
}

fn tool_uses(session: &Session) -> impl Iterator<Item = &ToolUse> {
    session.events.iter().filter_map(|event| event.tool_use.as_ref())
}

fn observe(tool_use: &ToolUse) -> CompressedObservation {
    Offline.compress(tool_use).expect("it never fails").observation
}
