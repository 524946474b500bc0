//! Measurements of one tool use, and totals of many.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use baton_benches::Timings;
use baton_core::observation::{CompressedObservation, MAX_SUMMARY_CHARS, MAX_TITLE_CHARS};
use baton_llm::{Compressor, Offline};
use baton_observation::ToolUse;
use serde_json::Value;

use crate::facts::{self, Fact, Kind, ObservationText};
use crate::session::Session;

/// Number of compressions per tool use; the median is reported.
const RUNS: usize = 5;

/// Measurements of one tool use.
pub(crate) struct Measured {
    /// Tool name; `mcp` for all tools of MCP servers.
    pub(crate) tool: String,
    /// Size of all text in the response.
    pub(crate) raw_bytes: usize,
    /// Size of the text in the response without echoes.
    pub(crate) own_bytes: usize,
    /// Size of title, summary and detail.
    pub(crate) compressed_bytes: usize,
    /// Facts of the response.
    pub(crate) facts: Vec<WeightedFact>,
    is_valid: bool,
    took: Duration,
}

/// A fact with its weights.
pub(crate) struct WeightedFact {
    pub(crate) kind: Kind,
    pub(crate) words: String,
    /// Number of later events that mention it.
    pub(crate) mentioned: u64,
    /// Number of later prompts and inputs that mention it.
    pub(crate) written: u64,
    /// True if title, summary or detail contains it.
    pub(crate) is_kept: bool,
}

/// Measures every tool use of a session.
pub(crate) fn measure(session: &Session) -> Vec<Measured> {
    let mut written: BTreeMap<Fact, u64> = BTreeMap::new();
    let mut mentioned: BTreeMap<Fact, u64> = BTreeMap::new();
    let mut measured = Vec::new();
    // In reverse order, so that the counts are those of later events.
    for event in session.events.iter().rev() {
        let mut inputs =
            event.prompt.as_deref().map(|prompt| facts::find(prompt, &event.cwd)).unwrap_or_default();
        let mut outputs = BTreeSet::new();
        if let Some(tool_use) = &event.tool_use {
            inputs.extend(facts::find(&all_text(&tool_use.tool_input), &event.cwd));
            let own = own_text(tool_use);
            outputs = facts::find(&own, &event.cwd);
            if is_command_or_failure(tool_use) {
                outputs.extend(facts::find_errors(&own));
            }
            measured.push(measure_tool_use(tool_use, &outputs, own.len(), (&written, &mentioned)));
        }
        for fact in &inputs {
            *written.entry(fact.clone()).or_default() += 1;
        }
        for fact in inputs.union(&outputs) {
            *mentioned.entry(fact.clone()).or_default() += 1;
        }
    }
    measured
}

/// Number of later prompts and inputs that mention each fact, and number of later events that do.
type Counts<'a> = (&'a BTreeMap<Fact, u64>, &'a BTreeMap<Fact, u64>);

/// Measures one tool use whose response contains `facts`.
fn measure_tool_use(
    tool_use: &ToolUse,
    facts: &BTreeSet<Fact>,
    own_bytes: usize,
    (written, mentioned): Counts<'_>,
) -> Measured {
    let mut timings = Vec::new();
    let mut observation = CompressedObservation::default();
    for _ in 0..RUNS {
        let started = Instant::now();
        observation = Offline.compress(tool_use).expect("it never fails").observation;
        timings.push(started.elapsed());
    }
    timings.sort_unstable();
    let text = text_of(&observation);
    let kept = ObservationText::of(&text);
    Measured {
        tool: if tool_use.tool_name.starts_with("mcp__") { "mcp".into() } else { tool_use.tool_name.clone() },
        raw_bytes: all_text(&tool_use.tool_response).len(),
        own_bytes,
        compressed_bytes: text.len(),
        facts: facts
            .iter()
            .map(|fact| WeightedFact {
                kind: fact.0,
                words: fact.1.clone(),
                mentioned: mentioned.get(fact).copied().unwrap_or(0),
                written: written.get(fact).copied().unwrap_or(0),
                is_kept: kept.contains(fact),
            })
            .collect(),
        is_valid: is_valid(&observation),
        took: timings.get(RUNS / 2).copied().unwrap_or_default(),
    }
}

/// Title, summary and detail.
pub(crate) fn text_of(observation: &CompressedObservation) -> String {
    let detail = observation.detail.as_deref().unwrap_or_default();
    format!("{}\n{}\n{detail}", observation.title, observation.summary)
}

fn is_valid(observation: &CompressedObservation) -> bool {
    let words = observation.title.split_whitespace().count();
    let title = &observation.title;
    let ends = title.ends_with('.') && !title.ends_with("...");
    let summary = observation.summary.chars().count();
    let controls =
        text_of(observation).chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t'));
    let written = serde_json::to_string(observation).expect("an observation can be written");
    (3..=12).contains(&words)
        && title.chars().count() <= MAX_TITLE_CHARS
        && !ends
        && (1..=MAX_SUMMARY_CHARS).contains(&summary)
        && !controls
        && serde_json::from_str::<CompressedObservation>(&written).ok().as_ref() == Some(observation)
}

/// Returns all strings and numbers of a value, one per line.
pub(crate) fn all_text(value: &Value) -> String {
    let mut text = String::new();
    collect(value, &[], &mut text);
    text
}

fn collect(value: &Value, without: &[&str], text: &mut String) {
    match value {
        Value::String(string) => {
            text.push_str(string);
            text.push('\n');
        }
        Value::Number(number) => text.push_str(&format!("{number}\n")),
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, without, text)),
        Value::Object(members) => {
            for (name, member) in members {
                if !without.contains(&name.as_str()) {
                    collect(member, without, text);
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Returns the text of a response without echoes: only the changed lines of an edit, and no repetition of the input.
fn own_text(tool_use: &ToolUse) -> String {
    let response = &tool_use.tool_response;
    let hunks = response.get("structuredPatch").and_then(Value::as_array).filter(|hunks| !hunks.is_empty());
    if let Some(hunks) = hunks {
        let lines = hunks.iter().filter_map(|hunk| hunk.get("lines").and_then(Value::as_array)).flatten();
        let changed = lines.filter_map(Value::as_str).filter_map(|line| line.strip_prefix(['+', '-']));
        let path = response.get("filePath").and_then(Value::as_str).unwrap_or_default();
        return std::iter::once(path).chain(changed).map(|line| format!("{line}\n")).collect();
    }
    let mut text = String::new();
    let echoes = [
        "originalFile",
        "oldString",
        "newString",
        "oldTodos",
        "prompt",
        "tool_use_id",
        "agentId",
        "usage",
        "durationMs",
        "totalTokens",
    ];
    collect(response, &echoes, &mut text);
    text
}

fn is_command_or_failure(tool_use: &ToolUse) -> bool {
    let failed = tool_use.tool_response.get("is_error").and_then(Value::as_bool) == Some(true);
    failed || matches!(tool_use.tool_name.as_str(), "Bash" | "shell" | "local_shell" | "exec_command")
}

/// The columns of [`Totals::row`].
pub(crate) const HEADER: &[&str] = &[
    "tool",
    "number",
    "raw KB",
    "observations KB",
    "ratio, lowest",
    "ratio, median",
    "ratio, total",
    "facts",
    "kept, mentioned",
    "kept, written",
    "kept, unweighted",
    "valid",
    "p50 ms",
    "p99 ms",
    "max ms",
];

/// Totals of many tool uses.
pub(crate) struct Totals {
    /// Size of all text in the responses.
    pub(crate) raw_bytes: usize,
    number: usize,
    compressed_bytes: usize,
    median_ratio: f64,
    lowest_ratio: f64,
    facts: usize,
    mentioned: (u64, u64),
    written: (u64, u64),
    plain: (u64, u64),
    valid: u64,
    timings: Timings,
}

impl Totals {
    /// Computes the totals.
    pub(crate) fn of<'a>(measured: impl Iterator<Item = &'a Measured>) -> Self {
        let measured: Vec<&Measured> = measured.collect();
        let mut ratios: Vec<f64> =
            measured.iter().map(|one| one.raw_bytes as f64 / one.compressed_bytes.max(1) as f64).collect();
        ratios.sort_by(f64::total_cmp);
        let facts = || measured.iter().flat_map(|one| &one.facts);
        let kept = |weight: fn(&WeightedFact) -> u64| {
            facts().fold((0, 0), |(kept, all), fact| {
                (kept + if fact.is_kept { weight(fact) } else { 0 }, all + weight(fact))
            })
        };
        Self {
            raw_bytes: measured.iter().map(|one| one.raw_bytes).sum(),
            number: measured.len(),
            compressed_bytes: measured.iter().map(|one| one.compressed_bytes).sum(),
            median_ratio: ratios.get(ratios.len() / 2).copied().unwrap_or(0.0),
            lowest_ratio: ratios.first().copied().unwrap_or(0.0),
            facts: facts().count(),
            mentioned: kept(|fact| fact.mentioned),
            written: kept(|fact| fact.written),
            plain: kept(|_| 1),
            valid: measured.iter().filter(|one| one.is_valid).count() as u64,
            timings: Timings::new(measured.iter().map(|one| one.took).collect()),
        }
    }

    /// Formats the totals as a table row.
    pub(crate) fn row(&self, name: &str) -> Vec<String> {
        let milliseconds = |percent| format!("{:.2}", self.timings.percentile_ms(percent));
        vec![
            name.to_owned(),
            self.number.to_string(),
            format!("{:.1}", self.raw_bytes as f64 / 1e3),
            format!("{:.1}", self.compressed_bytes as f64 / 1e3),
            format!("{:.1}", self.lowest_ratio),
            format!("{:.1}", self.median_ratio),
            format!("{:.1}", self.raw_bytes as f64 / self.compressed_bytes.max(1) as f64),
            self.facts.to_string(),
            percent(self.mentioned.0, self.mentioned.1),
            percent(self.written.0, self.written.1),
            percent(self.plain.0, self.plain.1),
            percent(self.valid, self.number as u64),
            milliseconds(50),
            milliseconds(99),
            milliseconds(100),
        ]
    }
}

/// Formats a share as a percentage.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "–".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// Prints the observations of one tool.
pub(crate) fn show(session: &Session, tool: &str) {
    for tool_use in session.events.iter().filter_map(|event| event.tool_use.as_ref()) {
        if tool_use.tool_name != tool && tool != "all" {
            continue;
        }
        let observation = Offline.compress(tool_use).expect("it never fails").observation;
        let raw = all_text(&tool_use.tool_response).len();
        println!("\n=== {} of {raw} bytes to {}", tool_use.tool_name, text_of(&observation).len());
        println!("T {}\nS {}", observation.title, observation.summary);
        println!("D {}", observation.detail.as_deref().unwrap_or("-"));
        if !observation.files_touched.is_empty() {
            println!("F {:?}", observation.files_touched);
        }
        for change in &observation.functions_changed {
            println!("C {:?} {}", change.action, change.name);
        }
    }
}
