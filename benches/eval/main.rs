//! How good the offline compressor is on real tool uses: `cargo bench -p baton-benches --bench eval -- FOLDER`.
//!
//! FOLDER holds `.jsonl` files, one session each, one hook event a line. Without an argument it is
//! `../shared/eval/transcripts` beside the repository; when there is none, only the latency of made-up outputs is
//! measured. `--show TOOL` prints the observations of one tool instead, to be read; `--lost TOOL` prints what its large
//! outputs lost.
//!
//! What is measured, for every `PostToolUse` event:
//!
//! - **Ratio**: the bytes of all text in the tool's response, as the hook hands it over (for an edit this includes the
//!   file as it was before), to the bytes of title, summary and detail.
//! - **Key facts kept**: facts are the paths, identifiers, numbers, names of tests and error lines in the response, found
//!   by the rules in `facts.rs`, which share no code with the compressor. Echoes are left out: what a response repeats of
//!   its input, and the file as it was before an edit (of which only the changed lines count). A fact is kept when it
//!   stands in title, summary or detail as a whole word (a path: whole, or as its folder and its name; an error line: four of
//!   five of its first twelve words). Every fact weighs as many as later events of the same session mention it, each event once:
//!   *mentioned* counts prompts, tool inputs and tool outputs, *written* only prompts and inputs, that is, what a person
//!   or an agent wrote. *Unweighted* counts every fact once, mentioned again or not. All are pooled: the sum of the
//!   weights that were kept by the sum of all.
//! - **Valid**: the limits of an observation hold (title of 3 to 12 words and at most 200 characters without a period at
//!   its end, summary of 1 to 1,000 characters, no control characters), and it survives being written and read as JSON.
//! - **Latency**: of the compression alone, the median of five runs of each event.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints its table and fails loudly")]

mod facts;
mod latency;
mod measure;
mod session;

use std::path::PathBuf;

use baton_benches::{machine, table};

use crate::measure::{Measured, Totals};

/// Outputs above this size are what a compressor is for.
const LARGE_BYTES: usize = 5_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let flag = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let folder = arguments
        .first()
        .filter(|argument| !argument.starts_with("--"))
        .map_or_else(default_folder, PathBuf::from);
    let sessions = session::read_folder(&folder);
    if let Some(tool) = flag("--show") {
        sessions.iter().for_each(|session| measure::show(session, tool));
        return;
    }
    if let Some(tool) = flag("--lost") {
        lost(
            sessions
                .iter()
                .flat_map(measure::measure)
                .filter(|one| one.tool == *tool && one.raw_bytes > LARGE_BYTES),
        );
        return;
    }
    machine();
    if sessions.is_empty() {
        println!("\nNo hook events in {}: only made-up outputs are measured.", folder.display());
    } else {
        let skipped: usize = sessions.iter().map(|session| session.skipped).sum();
        println!("\n{} sessions in {}, {skipped} lines could not be read", sessions.len(), folder.display());
        report(&sessions.iter().flat_map(measure::measure).collect::<Vec<_>>());
    }
    latency::report();
}

fn default_folder() -> PathBuf {
    let benches = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = benches.parent().expect("the repository").to_path_buf();
    root.parent().expect("the folder of the repository").join("shared/eval/transcripts")
}

/// Prints the facts that were lost, the heaviest first.
fn lost(measured: impl Iterator<Item = Measured>) {
    for one in measured {
        let mut lost: Vec<_> = one.facts.iter().filter(|fact| !fact.is_kept).collect();
        lost.sort_by_key(|fact| std::cmp::Reverse(fact.mentioned));
        println!("\n{} of {} facts lost of {} bytes:", lost.len(), one.facts.len(), one.raw_bytes);
        let words: Vec<String> = lost
            .iter()
            .take(40)
            .map(|fact| format!("{:?} {} ×{}", fact.kind, fact.words, fact.mentioned))
            .collect();
        println!("{}", words.join(", "));
    }
}

fn report(measured: &[Measured]) {
    let large: Vec<&Measured> = measured.iter().filter(|one| one.raw_bytes > LARGE_BYTES).collect();
    let all: Vec<&Measured> = measured.iter().collect();
    tools("Outputs over 5 KB", &large);
    tools("All outputs", &all);
    fact_kinds("Facts of outputs over 5 KB", &large);
    let edits: Vec<&&Measured> = large.iter().filter(|one| one.tool == "Edit").collect();
    let (raw, changed, compressed) = edits.iter().fold((0, 0, 0), |sum, one| {
        (sum.0 + one.raw_bytes, sum.1 + one.own_bytes, sum.2 + one.compressed_bytes)
    });
    println!(
        "\nOf the {raw} bytes of large edits, {changed} are changed lines; their observations have {compressed} bytes."
    );
}

fn tools(title: &str, measured: &[&Measured]) {
    let mut names: Vec<&str> = measured.iter().map(|one| one.tool.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
    for name in names {
        let totals = Totals::of(measured.iter().filter(|one| one.tool == name).copied());
        rows.push((totals.raw_bytes, totals.row(name)));
    }
    rows.sort_by_key(|(raw_bytes, _)| std::cmp::Reverse(*raw_bytes));
    let mut rows: Vec<Vec<String>> = rows.into_iter().map(|(_, row)| row).collect();
    rows.push(Totals::of(measured.iter().copied()).row("**total**"));
    table(title, measure::HEADER, &rows);
}

fn fact_kinds(title: &str, measured: &[&Measured]) {
    let rows: Vec<Vec<String>> = facts::Kind::ALL
        .iter()
        .map(|kind| {
            let facts = || measured.iter().flat_map(|one| &one.facts).filter(|fact| fact.kind == *kind);
            let percent = |weight: fn(&measure::Weighed) -> u64| {
                let (kept, all) = facts().fold((0, 0), |(kept, all), fact| {
                    (kept + if fact.is_kept { weight(fact) } else { 0 }, all + weight(fact))
                });
                measure::percent(kept, all)
            };
            vec![
                format!("{kind:?}"),
                facts().count().to_string(),
                percent(|fact| fact.mentioned),
                percent(|fact| fact.written),
                percent(|_| 1),
            ]
        })
        .collect();
    table(title, &["fact", "number", "kept, mentioned", "kept, written", "kept, unweighted"], &rows);
}
