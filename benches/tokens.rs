//! Token budgets of `checkpoint.load` compared with real tokenizers: real tokens per token of the budget.
//!
//! Reads real hook events from the folder that `BATON_BENCH_TRANSCRIPTS` names; without it nothing is measured.
//! `o200k_base` and `cl100k_base` are built in. A third tokenizer is read from the JSON file that
//! `BATON_BENCH_TOKENIZER` names (`pat_str`, `bpe_ranks`, as in the npm package `@anthropic-ai/tokenizer`).
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints its table and fails loudly")]

use std::collections::HashMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use baton_benches::{machine, table, transcripts};
use baton_checkpoint::classify::Classifier;
use baton_checkpoint::{Budget, Level, SavedContext, View, ViewOptions};
use serde_json::{Map, Value, json};
use tiktoken_rs::{CoreBPE, cl100k_base, o200k_base};

/// Budgets that are measured.
const BUDGETS: [usize; 6] = [500, 1_000, 2_000, 4_000, 8_000, 16_000];
/// Events of one context.
const EVENTS_PER_CONTEXT: usize = 12;

fn main() {
    let Some(folder) = transcripts() else { return };
    let contexts = contexts(&folder);
    assert!(!contexts.is_empty(), "{} contains no hook events", folder.display());
    machine();
    println!("\n{} contexts of real sessions", contexts.len());
    let mut tokenizers = vec![
        ("o200k_base".to_owned(), o200k_base().expect("built in")),
        ("cl100k_base".to_owned(), cl100k_base().expect("built in")),
    ];
    if let Ok(path) = std::env::var("BATON_BENCH_TOKENIZER") {
        tokenizers.push(("from file".to_owned(), read_tokenizer(Path::new(&path))));
    }
    let mut rows = Vec::new();
    for budget in BUDGETS {
        let answers = answers(&contexts, budget);
        for (name, tokenizer) in &tokenizers {
            let mut ratios: Vec<f64> = answers
                .iter()
                .map(|text| tokenizer.encode_ordinary(text).len() as f64 / budget as f64)
                .collect();
            ratios.sort_by(f64::total_cmp);
            let percentile = |percent: usize| ratios[(ratios.len() * percent / 100).min(ratios.len() - 1)];
            rows.push(vec![
                budget.to_string(),
                name.clone(),
                ratios.len().to_string(),
                format!("{:.2}", percentile(50)),
                format!("{:.2}", percentile(99)),
                format!("{:.2}", percentile(100)),
            ]);
        }
    }
    table(
        "Real tokens of context and omissions per token of budget",
        &["budget", "tokenizer", "views", "p50", "p99", "maximum"],
        &rows,
    );
}

/// Returns the answers of loads with a budget as compact JSON, except contexts that fit completely and overflows.
fn answers(contexts: &[SavedContext], budget: usize) -> Vec<String> {
    let classifier = Classifier::builtin();
    let options =
        ViewOptions { budget: Budget::Tokens(budget), level: Level::Standard, shares: classifier.shares() };
    let views = contexts.iter().map(|context| View::of(&classifier.classify(context.json(), &[]), options));
    views
        .filter(|view| view.overflow.is_none() && (!view.omissions.is_empty() || view.unlisted.is_some()))
        .map(|view| {
            let report = json!({
                "budgetBytes": null, "budgetTokens": budget, "shownBytes": view.size_bytes, "shownTokens": view.tokens,
                "omissions": view.omissions, "unlisted": view.unlisted, "overflow": null,
                "more": "load ckpt_01M7EXRXW3Z3JYP1SA8PW46N37 without a budget for the whole context",
            });
            format!(r#"{{"context":{},"view":{report}}}"#, view.context)
        })
        .collect()
}

/// Returns typical contexts of agents: a goal, and the messages and results of some steps.
fn contexts(folder: &Path) -> Vec<SavedContext> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut contexts = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let events: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for chunk in events.chunks(EVENTS_PER_CONTEXT) {
            let named: Map<String, Value> = chunk
                .iter()
                .enumerate()
                .map(|(index, event)| (format!("result{index}"), event["tool_response"].clone()))
                .collect();
            let context = json!({ "goal": "Finish the task.", "messages": chunk, "findings": named });
            let context = context.as_object().expect("an object").clone();
            contexts.push(SavedContext::of(context).expect("no integer that is rounded"));
        }
    }
    contexts
}

fn read_tokenizer(path: &Path) -> CoreBPE {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let mut ranks = HashMap::new();
    for line in file["bpe_ranks"].as_str().expect("bpe_ranks").lines() {
        let mut words = line.split(' ').skip(1);
        let first: u32 =
            words.next().and_then(|word| word.parse().ok()).expect("the rank of the first token");
        ranks.extend(words.zip(first..).map(|(token, rank)| (STANDARD.decode(token).expect("base64"), rank)));
    }
    let pattern = file["pat_str"].as_str().expect("pat_str");
    CoreBPE::new(ranks.into_iter().collect(), [("<EOT>".to_owned(), 0)].into_iter().collect(), pattern)
        .expect("a tokenizer")
}
