//! Tests of the ranking: each feature changes the order as documented.

use proptest::prelude::*;
use ulid::Ulid;

use super::*;
use crate::recall::document::{Document, DocumentText};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const DAY: i64 = 86_400_000;

fn session(number: u64) -> SessionId {
    SessionId::new(Ulid::from_parts(number, 0))
}

fn candidate(number: i64, kind: ItemKind, title: &str, body: &str, files: &[&str]) -> Candidate {
    let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
    Candidate {
        number,
        place: None,
        document: Document {
            kind,
            item: format!("item_{number}"),
            external_id: None,
            venture: "v".parse().unwrap(),
            repo: None,
            session_id: None,
            branch: None,
            agent: None,
            author: None,
            turn: None,
            is_conversational: false,
            changes_files: false,
            is_pinned: false,
            created_at: NOW,
            text: DocumentText::of(title, &[body], &files),
            files,
        },
    }
}

fn message(number: i64, author: &str, text: &str) -> Candidate {
    let mut made = candidate(number, ItemKind::Observation, text, "", &[]);
    made.place = Some(number);
    made.document.is_conversational = true;
    made.document.session_id = Some(session(1));
    made.document.author = Some(author.to_owned());
    made
}

fn corpus(candidates: &[Candidate]) -> Corpus {
    let mut corpus = Corpus { documents: 1_000, length: 10_000, ..Corpus::default() };
    for candidate in candidates {
        for term in candidate.document.text.terms().collect::<std::collections::HashSet<_>>() {
            *corpus.with_term.entry(term.to_owned()).or_default() += 1;
        }
    }
    corpus
}

fn ranked(query: &str, candidates: &[Candidate]) -> Vec<(i64, String)> {
    ranked_for(query, candidates, &CallerContext::default())
}

fn ranked_for(query: &str, candidates: &[Candidate], caller: &CallerContext) -> Vec<(i64, String)> {
    let query = Query::parse(query, NOW);
    let found = Ranker::new(&query, &corpus(candidates), caller).best(candidates, 100);
    found.into_iter().map(|one| (candidates[one.index].number, one.why)).collect()
}

fn order(found: &[(i64, String)]) -> Vec<i64> {
    found.iter().map(|(number, _)| *number).collect()
}

#[test]
fn titles_count_more_and_rare_words_count_more() {
    let all = [
        candidate(1, ItemKind::Handoff, "other", "lease expired", &[]),
        candidate(2, ItemKind::Handoff, "lease expired", "other", &[]),
        candidate(3, ItemKind::Handoff, "other", "lease renewed", &[]),
        candidate(4, ItemKind::Handoff, "unrelated", "words", &[]),
    ];
    assert_eq!(order(&ranked("expired lease", &all)), [2, 1, 3]);
}

#[test]
fn quoted_phrases_come_first() {
    let all = [
        candidate(1, ItemKind::Handoff, "expired today: the lease", "", &[]),
        candidate(2, ItemKind::Handoff, "the lease expired today", "", &[]),
    ];
    assert_eq!(order(&ranked("\"lease expired\"", &all)), [2, 1]);
}

#[test]
fn neighbours_count_in_conversations_only() {
    let talk = [
        message(1, "Anna", "Do you remember the pottery class?"),
        message(2, "Ben", "It was on Tuesday."),
        message(9, "Ben", "Something else."),
    ];
    let found = ranked("pottery class", &talk);
    assert_eq!(order(&found), [1, 2]);
    assert_eq!(found[1].1, "next to matching parts of the conversation");
    let mut tools = talk.to_vec();
    for tool in &mut tools {
        tool.place = None;
        tool.document.is_conversational = false;
        tool.document.session_id = None;
    }
    assert_eq!(order(&ranked("pottery class", &tools)), [1]);
}

#[test]
fn the_only_named_author_is_preferred() {
    let far = |number: i64, author: &str, text: &str| message(number * 10, author, text);
    let all = [far(1, "Anna", "I like pottery"), far(2, "Ben", "I like pottery")];
    let found = ranked("does Ben like pottery", &all);
    assert_eq!(order(&found), [20, 10]);
    assert!(found[0].1.contains("said by Ben"), "{found:?}");
    assert!(!ranked("do Anna and Ben like pottery", &all)[0].1.contains("said by"));
}

#[test]
fn named_agents_files_branches_and_times_are_preferred() {
    let mut all: Vec<Candidate> = (1..=5)
        .map(|number| candidate(number, ItemKind::Handoff, "fix the lease", "", &["src/a.rs"]))
        .collect();
    all[1].document.agent = Some("codex-2".into());
    all[2].document.files = vec!["src/lease.rs".into()];
    all[3].document.branch = Some("fix/lease-renewal".into());
    all[4].document.created_at = Timestamp::from_millis(NOW.as_millis() - DAY);
    for (query, first, why) in [
        ("what did codex-2 fix about the lease", 2, "work of codex-2"),
        ("fix the lease in lease.rs", 3, "the query names src/lease.rs"),
        ("fix the lease on fix/lease-renewal", 4, "on branch fix/lease-renewal"),
        ("fix the lease yesterday", 5, "from the time of \"yesterday\""),
    ] {
        let found = ranked(query, &all);
        assert_eq!(found[0].0, first, "{query}: {found:?}");
        assert!(found[0].1.contains(why), "{query}: {found:?}");
    }
    let caller = CallerContext { branch: Some("fix/lease-renewal".into()), ..CallerContext::default() };
    assert_eq!(ranked_for("fix the lease", &all, &caller)[0].0, 4);
    let caller = CallerContext { files: vec!["src/lease.rs".into()], ..CallerContext::default() };
    assert_eq!(ranked_for("fix the lease", &all, &caller)[0].0, 3);
}

#[test]
fn of_equal_items_the_newer_one_is_preferred() {
    let mut all = [
        candidate(1, ItemKind::Handoff, "fix the lease", "", &[]),
        candidate(2, ItemKind::Handoff, "fix the lease", "", &[]),
    ];
    all[0].document.created_at = Timestamp::from_millis(NOW.as_millis() - 30 * DAY);
    assert_eq!(order(&ranked("lease", &all)), [2, 1]);
}

#[test]
fn a_file_appears_once_in_the_first_ten() {
    let mut all: Vec<Candidate> = (1..=12)
        .map(|number| {
            candidate(number, ItemKind::Observation, "edit lease", "lease lease", &["src/lease.rs"])
        })
        .collect();
    all.push(candidate(13, ItemKind::Observation, "edit", "lease and many other words", &["src/other.rs"]));
    let found = order(&ranked("lease", &all));
    assert_eq!(found.len(), 13, "repeated files come later, they are not dropped");
    assert_eq!(found[1], 13, "{found:?}");
}

#[test]
fn edits_of_a_matching_turn_are_found() {
    let mut turn = candidate(1, ItemKind::Turn, "", "Make the import faster", &["src/rows.rs"]);
    turn.document.turn = Some("turn_1".into());
    let mut change = candidate(2, ItemKind::Observation, "Modify read_rows", "import", &["src/rows.rs"]);
    change.document.turn = Some("turn_1".into());
    change.document.changes_files = true;
    let log = candidate(3, ItemKind::Observation, "git log", "import import import faster words", &[]);
    let found = order(&ranked("faster import", &[turn, change, log]));
    let place = |number: i64| found.iter().position(|found| *found == number);
    assert!(place(2) < place(3), "{found:?}");
}

#[test]
fn the_reason_for_an_item_without_the_words_is_its_turn_or_its_session() {
    let of_session = |number: i64, title: &str, turn: &str| {
        let mut made = candidate(number, ItemKind::Observation, title, "", &[]);
        made.document.session_id = Some(session(1));
        made.document.turn = Some(turn.to_owned());
        made
    };
    let all = [
        of_session(1, "Make the import faster", "turn_1"),
        of_session(2, "Modify read_rows", "turn_1"),
        of_session(3, "Run the linter", "turn_2"),
    ];
    let found = ranked("faster import", &all);
    let reason = |number: i64| found.iter().find(|found| found.0 == number).map(|found| found.1.as_str());
    assert_eq!(reason(2), Some("part of a matching turn"));
    assert_eq!(reason(3), Some("part of a matching session"));
}

proptest! {
    /// The result does not depend on the order in which a database returns candidates.
    #[test]
    fn order_of_candidates_does_not_matter(texts in prop::collection::vec("[a-d ]{0,12}", 0..12), turn in any::<bool>()) {
        let kind = if turn { ItemKind::Turn } else { ItemKind::Observation };
        let all: Vec<Candidate> = (1..)
            .zip(&texts)
            .map(|(number, text)| {
                let text = text.replace('a', "alpha ").replace('b', "beta ").replace('c', "gamma ");
                let mut made = candidate(number, kind, "", &text, &[]);
                made.document.session_id = Some(session(1));
                made.place = turn.then_some(number);
                made
            })
            .collect();
        let mut reversed = all.clone();
        reversed.reverse();
        prop_assert_eq!(order(&ranked("alpha gamma", &all)), order(&ranked("alpha gamma", &reversed)));
    }
}

#[test]
fn items_of_unmerged_branches_rank_lower_on_other_branches() {
    let mut candidates =
        [1, 2].map(|number| candidate(number, ItemKind::Note, "lease renewal", "", &[])).to_vec();
    for one in &mut candidates {
        one.document.repo = Some("o/r".parse().unwrap());
    }
    candidates[0].document.branch = Some("experiment".into());
    candidates[1].document.branch = Some("main".into());
    let query = Query::parse("lease renewal", NOW);
    let unmerged = vec![UnmergedBranch { repo: "o/r".parse().unwrap(), branch: "experiment".into() }];
    let ranked = |branch: Option<&str>| {
        let caller = CallerContext {
            branch: branch.map(str::to_owned),
            unmerged: unmerged.clone(),
            ..CallerContext::default()
        };
        Ranker::new(&query, &corpus(&candidates), &caller).best(&candidates, 10)
    };
    let of_experiment = |ranked: &[Ranked]| ranked.iter().find(|one| one.index == 0).unwrap().clone();
    let elsewhere = ranked(Some("main"));
    assert_eq!(elsewhere[1].index, 0);
    assert!(elsewhere[1].why.contains("branch experiment is not merged"), "{}", elsewhere[1].why);
    let there = ranked(Some("experiment"));
    assert_eq!(there[0].index, 0);
    assert!(!there[0].why.contains("not merged"), "{}", there[0].why);
    let unknown = ranked(None);
    assert!(of_experiment(&unknown).why.contains("not merged"));
    assert!(of_experiment(&unknown).score > of_experiment(&elsewhere).score);
}

#[test]
fn pinned_items_rank_higher() {
    let mut candidates =
        [1, 2].map(|number| candidate(number, ItemKind::Note, "lease renewal", "", &[])).to_vec();
    for pinned in [0, 1] {
        candidates.iter_mut().enumerate().for_each(|(at, one)| one.document.is_pinned = at == pinned);
        let query = Query::parse("lease", NOW);
        let ranked =
            Ranker::new(&query, &corpus(&candidates), &CallerContext::default()).best(&candidates, 10);
        assert_eq!(ranked[0].index, pinned);
        assert!(ranked[0].why.contains("pinned"), "{}", ranked[0].why);
    }
}

#[test]
fn similar_items_are_joined_by_rank_and_explained() {
    let note = |number, text| candidate(number, ItemKind::Note, text, "", &[]);
    let candidates = [note(1, "lease expired twice"), note(2, "lease"), note(3, "token ran out")];
    let (query, corpus) = (Query::parse("lease expired", NOW), corpus(&candidates));
    let caller = CallerContext::default();
    let mut ranker = Ranker::new(&query, &corpus, &caller);
    let items = |ranked: &[Ranked]| ranked.iter().map(|one| one.index + 1).collect::<Vec<_>>();
    let by_words = ranker.best(&candidates, 10);
    assert_eq!(items(&by_words), [1, 2]);
    let fused = ranker.best_with_similar(&candidates, &[(3, 0.9), (1, 0.5), (99, 0.4)], 10);
    assert_eq!(items(&fused), [1, 3, 2]);
    assert_eq!(fused[1].why, "similar meaning (0.90)");
    assert!(fused[0].why.starts_with("matches lease, expired; similar meaning (0.50)"), "{}", fused[0].why);
    assert_eq!(ranker.best_with_similar(&candidates, &[], 10), by_words);
}
