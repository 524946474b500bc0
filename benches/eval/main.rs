//! Quality of the offline compressor on real tool uses: `cargo bench -p baton-benches --bench eval`.
//!
//! `BATON_BENCH_TRANSCRIPTS` names a folder of `.jsonl` files, one session each, one hook event per line; without it, only
//! the latency of generated outputs is measured. `--show TOOL` prints the observations of one tool instead; `--lost
//! TOOL` prints the facts that its large outputs lost; `--false` prints the false statements, `--written` what each
//! written text kept, and `--sample NUMBER --seed NUMBER` random observations next to their raw input, `--redacted` the
//! lines that were redacted. `--accuracy` prints only the tables of the statements, the written text and the sizes,
//! without timings.
//!
//! Measurements, for every `PostToolUse` event:
//!
//! - **Ratio**: the bytes of all text in the tool response as reported by the hook (for an edit this includes the
//!   original file), divided by the bytes of title, summary and detail.
//! - **Key facts kept**: facts are the paths, identifiers, numbers, test names and error lines in the response, found
//!   by the rules in `facts.rs`, which share no code with the compressor. Echoes are excluded: parts of the response
//!   that repeat the input, and the original file of an edit (only changed lines count). A fact is kept if it occurs
//!   in title, summary or detail as a whole word (a path: in full, or as its folder and its name; an error line: four
//!   of five of its first twelve words). The weight of a fact is the number of later events of the same session that
//!   mention it: *mentioned* counts prompts, tool inputs and tool outputs, *written* only prompts and inputs, which
//!   users and agents wrote. *Unweighted* counts every fact once. The results are pooled: the sum of kept weights
//!   divided by the sum of all weights.
//! - **Valid**: the observation is within its limits (title of 3 to 12 words and at most 200 characters without a
//!   final period, summary of 1 to 1,000 characters, no control characters) and survives a JSON round trip.
//! - **Statements**: claims of title and summary against the raw event, see `checks.rs`.
//! - **Written text**: share kept of commit bodies, plans, reports and texts in JSON, see `written.rs`.
//! - **Repeated text**: sequences of eight words that occur twice.
//! - **Latency**: time of the compression alone, the median of five runs per event.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints its table and fails loudly")]

mod accuracy;
mod checks;
mod facts;
mod latency;
mod measure;
mod session;
mod written;

use baton_benches::{machine, table, transcripts};

use crate::measure::{Measured, Totals};

/// Minimum size of a large output in bytes.
const LARGE_BYTES: usize = 5_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let flag = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let folder = transcripts().unwrap_or_default();
    let sessions = session::read_folder(&folder);
    if let Some(tool) = flag("--show") {
        sessions.iter().for_each(|session| measure::show(session, tool));
        return;
    }
    let is_set = |name: &str| arguments.iter().any(|argument| argument == name);
    let number = |name: &str| flag(name).and_then(|value| value.parse::<u64>().ok());
    if let Some(samples) = number("--sample") {
        let samples = usize::try_from(samples).expect("a number of samples");
        return accuracy::print_sample(&sessions, samples, number("--seed").unwrap_or(1));
    }
    if is_set("--false") {
        return accuracy::print_false(&sessions);
    }
    if is_set("--written") {
        return accuracy::print_written(&sessions);
    }
    if is_set("--redacted") {
        return accuracy::print_redacted(&sessions, true);
    }
    if is_set("--accuracy") {
        return accuracy::report(&sessions);
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
        println!("\nNo hook events: only made-up outputs are measured.");
    } else {
        let skipped: usize = sessions.iter().map(|session| session.skipped).sum();
        println!("\n{} sessions in {}, {skipped} lines could not be read", sessions.len(), folder.display());
        accuracy::report(&sessions);
        report(&sessions.iter().flat_map(measure::measure).collect::<Vec<_>>());
    }
    latency::report();
}

/// Prints the lost facts of each tool use, highest weight first.
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
            let percent = |weight: fn(&measure::WeightedFact) -> u64| {
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
