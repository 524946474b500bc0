//! Token usage: it is summed by day and model.

use baton_store::{DailyUsage, Spent, Store};

use super::fixture::session_id;
use super::store::{TestStore, read, write};

fn usage(day: &str, compressor: &str, model: &str, counts: [u64; 3]) -> DailyUsage {
    let [calls, tokens_in, tokens_out] = counts;
    DailyUsage {
        day: day.into(),
        compressor: compressor.into(),
        model: model.into(),
        calls,
        tokens_in,
        tokens_out,
        // Any number that is also summed.
        micro_usd: tokens_in + 5 * tokens_out,
    }
}

fn add(store: &Store, added: &DailyUsage) {
    let added = added.clone();
    write(store, move |tx| tx.add_usage(&added));
}

/// Usage is summed per day and model; days, compressors and models are separate, newest day first.
pub fn usage_adds_up_by_day_and_model(store: &TestStore) {
    let spent_on = |day: &'static str| read(store, move |tx| tx.spent_on(day));
    assert_eq!((read(store, |tx| tx.usage(10)), spent_on("2026-01-17")), (vec![], Spent::default()));
    for added in [
        usage("2026-01-17", "anthropic", "haiku", [1, 100, 10]),
        usage("2026-01-17", "anthropic", "haiku", [2, 1 << 40, 5]),
        usage("2026-01-17", "anthropic", "Haiku", [1, 7, 0]),
        usage("2026-01-17", "openai", "haiku", [1, 3, 4]),
        usage("2026-01-18", "anthropic", "haiku", [1, 1, 1]),
        usage("2025-12-31", "anthropic", "haiku", [9, 9, 9]),
    ] {
        add(store, &added);
    }
    let today = [
        usage("2026-01-17", "anthropic", "haiku", [3, (1 << 40) + 100, 15]),
        usage("2026-01-17", "anthropic", "Haiku", [1, 7, 0]),
        usage("2026-01-17", "openai", "haiku", [1, 3, 4]),
    ];
    let listed = read(store, |tx| tx.usage(10));
    let days: Vec<&str> = listed.iter().map(|row| row.day.as_str()).collect();
    assert_eq!(days, ["2026-01-18", "2026-01-17", "2026-01-17", "2026-01-17", "2025-12-31"]);
    assert!(today.iter().all(|row| listed.contains(row)), "{listed:?}");
    assert_eq!(read(store, |tx| tx.usage(2)), listed[..2]);
    let tokens_in = (1 << 40) + 100 + 7 + 3;
    let expected = Spent { tokens: tokens_in + 15 + 4, micro_usd: tokens_in + 5 * (15 + 4) };
    assert_eq!(spent_on("2026-01-17"), expected);
    assert_eq!(spent_on("2026-01-18"), Spent { tokens: 2, micro_usd: 6 });
    assert_eq!(spent_on("2026-01-19"), Spent::default());
}

/// The usage of a session adds up and is listed newest session first.
pub fn session_usage_adds_up(store: &TestStore) {
    let (older, newer) = (session_id(), session_id());
    for (session, tokens, micro_usd) in [(newer, 5, 50), (older, 1, 10), (newer, 7, 70)] {
        write(store, move |tx| tx.add_session_usage(session, Spent { tokens, micro_usd }));
    }
    let expected =
        [(newer, Spent { tokens: 12, micro_usd: 120 }), (older, Spent { tokens: 1, micro_usd: 10 })];
    assert_eq!(read(store, |tx| tx.session_usage(10)), expected);
    assert_eq!(read(store, |tx| tx.session_usage(1)), expected[..1]);
}
