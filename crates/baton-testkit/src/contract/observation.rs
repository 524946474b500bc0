//! Observations: fields, one per queue item, lists compared with an in-memory list, and which ones no summary covers.

use baton_core::observation::{
    CompressedObservation, FunctionAction, FunctionChange, Observation, Provenance, SessionSummary,
};
use baton_core::{Cursor, ObservationId, Timestamp, Ulid};
use baton_store::{NewSummary, ObservationFiles, ObservationFilter, Page, Store, StoreError, StoredSummary};

use super::fixture::{AWKWARD, Dice, NOW, earlier, later, observation, observation_id, session_id};
use super::store::{TestStore, read, try_write, write};

const VENTURES: [&str; 3] = ["vc", "dfg", "VC"];
const REPOS: [&str; 3] = ["owner/one", "owner/two", "Owner/one"];
const TOOLS: [&str; 4] = ["Bash", "bash", "naïve ☕", "%"];

/// Similar paths: they differ by case, by pattern characters, or by where a component starts.
const PATHS: [&str; 18] = [
    "store.rs",
    "src/store.rs",
    "Src/store.rs",
    "src/Store.rs",
    "a/src/store.rs",
    "a/SRC/store.rs",
    "src/restore.rs",
    "/src/store.rs",
    "src/100%.rs",
    "src/1000.rs",
    "src/a_b.rs",
    "src/axb.rs",
    "src/a\\b.rs",
    "src/ab.rs",
    "src/naïve ☕ '\".rs",
    "%",
    "_",
    "src/x",
];

/// Files to search for; some are the end of a path, others only look like it.
const FILES: [&str; 20] = [
    "store.rs",
    "src/store.rs",
    "SRC/store.rs",
    "/src/store.rs",
    "rc/store.rs",
    "ore.rs",
    "STORE.rs",
    "100%.rs",
    "src/100%.rs",
    "a_b.rs",
    "src/a_b.rs",
    "a\\b.rs",
    "src/a\\b.rs",
    "naïve ☕ '\".rs",
    "%",
    "_",
    "%/store.rs",
    "src/%",
    "src/_",
    "",
];

fn insert(store: &Store, observation: &Observation) -> bool {
    let observation = observation.clone();
    write(store, move |tx| Ok(tx.insert_observations(std::slice::from_ref(&observation))? == 1))
}

fn insert_all(store: &Store, observations: &[Observation]) {
    let observations = observations.to_vec();
    write(store, move |tx| {
        tx.insert_observations(&observations).map(|added| assert_eq!(added, observations.len()))
    });
}

fn find(store: &Store, id: ObservationId) -> Option<Observation> {
    read(store, move |tx| tx.observation(id))
}

fn list(store: &Store, filter: &ObservationFilter, page: Page) -> Vec<Observation> {
    let filter = filter.clone();
    read(store, move |tx| tx.observations(&filter, page))
}

fn ids(observations: &[Observation]) -> Vec<ObservationId> {
    observations.iter().map(|one| one.id).collect()
}

fn full_observation() -> Observation {
    let text = |mark: &str| format!("{mark} {AWKWARD}");
    let change = |name: &str, action| FunctionChange { file: text("file"), name: text(name), action };
    Observation {
        id: observation_id(),
        queue_id: i64::MAX,
        session_id: session_id(),
        venture: "other.venture".parse().unwrap(),
        repo: "other/repo_2".parse().unwrap(),
        tool_name: text("tool"),
        tool_use_id: Some(text("use")),
        compressed: CompressedObservation {
            title: text("title"),
            summary: text("summary"),
            detail: Some(text("detail")),
            files_touched: vec![text("touched"), String::new()],
            functions_changed: vec![
                change("new", FunctionAction::New),
                change("modified", FunctionAction::Modified),
                change("deleted", FunctionAction::Deleted),
            ],
        },
        files: vec![text("a/b"), text("a/b"), "c".into()],
        provenance: Provenance {
            compressor: text("compressor"),
            model: Some(text("model")),
            prompt_version: text("version"),
            tokens_in: 1 << 40,
            tokens_out: 1 << 41,
        },
        raw_bytes: 1 << 42,
        captured_at: earlier(3),
        compressed_at: later(4),
    }
}

/// Every field is read back as written: text, large numbers, absent values.
pub fn reads_back_every_field(store: &TestStore) {
    for expected in [full_observation(), observation(7)] {
        assert!(insert(store, &expected));
        assert_eq!(find(store, expected.id), Some(expected.clone()));
        assert!(list(store, &ObservationFilter::default(), Page::first(10)).contains(&expected));
    }
}

pub fn finds_nothing_under_an_unknown_id(store: &TestStore) {
    insert(store, &observation(1));
    assert_eq!(find(store, observation_id()), None);
}

/// A queue item has one observation; a second one is not stored.
pub fn item_has_one_observation(store: &TestStore) {
    let first = Observation { files: vec!["first.rs".into()], ..observation(1) };
    let second = Observation { id: observation_id(), files: vec!["second.rs".into()], ..first.clone() };
    assert!(insert(store, &first));
    assert!(!insert(store, &second));
    assert_eq!((find(store, first.id), find(store, second.id)), (Some(first), None));
    let filter = ObservationFilter { file: Some("second.rs".into()), ..ObservationFilter::default() };
    assert_eq!(list(store, &filter, Page::first(10)), []);
}

pub fn ids_are_unique(store: &TestStore) {
    let first = observation(1);
    insert(store, &first);
    let second = Observation { id: first.id, ..observation(2) };
    let answer = try_write(store, move |tx| tx.insert_observations(std::slice::from_ref(&second)));
    assert!(matches!(answer, Err(StoreError::Statement { .. })), "{answer:?}");
    assert_eq!(find(store, first.id), Some(first));
}

fn random_observation(dice: &mut Dice, number: i64, sessions: &[baton_core::SessionId]) -> Observation {
    Observation {
        session_id: dice.pick(sessions),
        venture: dice.pick(&VENTURES).parse().unwrap(),
        repo: dice.pick(&REPOS).parse().unwrap(),
        tool_name: dice.pick(&TOOLS).into(),
        files: (0..dice.below(4)).map(|_| dice.pick(&PATHS).into()).collect(),
        ..observation(number)
    }
}

fn matches(filter: &ObservationFilter, one: &Observation) -> bool {
    let ObservationFilter { ventures, repo, session_id, tool_name, file } = filter;
    let speaks_of =
        |file: &String| one.files.iter().any(|path| path == file || path.ends_with(&format!("/{file}")));
    ventures.as_ref().is_none_or(|ventures| ventures.contains(&one.venture))
        && repo.as_ref().is_none_or(|repo| *repo == one.repo)
        && session_id.is_none_or(|session| session == one.session_id)
        && tool_name.as_ref().is_none_or(|tool| *tool == one.tool_name)
        && file.as_ref().is_none_or(speaks_of)
}

/// Inserts 150 random observations in random order and returns them newest first.
fn populate(store: &Store, dice: &mut Dice, sessions: &[baton_core::SessionId]) -> Vec<Observation> {
    let mut all: Vec<Observation> =
        (0..150).map(|number| random_observation(dice, number, sessions)).collect();
    dice.shuffle(&mut all);
    insert_all(store, &all);
    all.sort_by_key(|one| std::cmp::Reverse(one.id));
    all
}

fn assert_lists(store: &Store, filter: &ObservationFilter, all: &[Observation]) {
    let expected: Vec<Observation> = all.iter().filter(|one| matches(filter, one)).cloned().collect();
    assert_eq!(ids(&list(store, filter, Page::first(1_000))), ids(&expected), "{filter:?}");
    let (mut paged, mut page) = (Vec::new(), Page::first(7));
    loop {
        let found = list(store, filter, page);
        assert!(found.len() <= 7, "a page of 7 had {} rows", found.len());
        let Some(last) = found.last() else { break };
        page.before = Some(Cursor { before: last.id.ulid() });
        paged.extend(found);
    }
    assert_eq!(paged, expected, "by pages: {filter:?}");
    let (asked, files_of) = (filter.clone(), |one: &Observation| ObservationFiles {
        id: one.id,
        session_id: one.session_id,
        title: one.compressed.title.clone(),
        files: one.files.clone(),
        files_touched: one.compressed.files_touched.clone(),
        captured_at: one.captured_at,
    });
    let files = read(store, move |tx| tx.files_of_observations(&asked, Page::first(1_000)));
    assert_eq!(files, expected.iter().map(files_of).collect::<Vec<_>>(), "files: {filter:?}");
}

/// Each filter alone returns the matching observations, newest first. A file is found by its path and by any suffix of
/// it that starts after a slash, exactly: nothing in a name is a pattern.
pub fn each_condition_filters(store: &TestStore) {
    let mut dice = Dice::new(1);
    let sessions = [session_id(), session_id(), session_id()];
    let all = populate(store, &mut dice, &sessions);
    let none = ObservationFilter::default;
    let mut filters = vec![
        none(),
        ObservationFilter { ventures: Some(vec![]), ..none() },
        ObservationFilter { ventures: Some(vec![]), file: Some("store.rs".into()), ..none() },
        ObservationFilter {
            ventures: Some(vec!["vc".parse().unwrap(), "dfg".parse().unwrap(), "no".parse().unwrap()]),
            ..none()
        },
        ObservationFilter { session_id: Some(session_id()), ..none() },
        ObservationFilter { tool_name: Some("BASH".into()), ..none() },
    ];
    let ventures = VENTURES.map(|name| name.parse().unwrap());
    filters.extend(ventures.map(|venture| ObservationFilter { ventures: Some(vec![venture]), ..none() }));
    filters.extend(REPOS.map(|repo| ObservationFilter { repo: Some(repo.parse().unwrap()), ..none() }));
    filters.extend(sessions.map(|session| ObservationFilter { session_id: Some(session), ..none() }));
    filters.extend(TOOLS.map(|tool| ObservationFilter { tool_name: Some(tool.into()), ..none() }));
    filters.extend(FILES.map(|file| ObservationFilter { file: Some(file.into()), ..none() }));
    for filter in &filters {
        assert_lists(store, filter, &all);
    }
    let found = filters.iter().filter(|filter| all.iter().any(|one| matches(filter, one))).count();
    assert!(found > 25, "most conditions should find something, {found} do");
}

/// Any combination of filters returns what matches all of them.
pub fn conditions_combine(store: &TestStore) {
    let mut dice = Dice::new(2);
    let sessions = [session_id(), session_id()];
    let all = populate(store, &mut dice, &sessions);
    for _ in 0..60 {
        let ventures = VENTURES.iter().filter(|_| dice.below(3) > 0).map(|name| name.parse().unwrap());
        let ventures = ventures.collect();
        let (repo, session, tool) = (dice.pick(&REPOS), dice.pick(&sessions), dice.pick(&TOOLS));
        let file = dice.pick(&FILES);
        let filter = ObservationFilter {
            ventures: dice.maybe(ventures),
            repo: dice.maybe(repo.parse().unwrap()),
            session_id: dice.maybe(session),
            tool_name: dice.maybe(tool.into()),
            file: dice.maybe(file.into()),
        };
        assert_lists(store, &filter, &all);
    }
}

/// Paging returns each observation once, even if newer ones arrive meanwhile.
pub fn pages_neither_skip_nor_repeat(store: &TestStore) {
    let filter =
        ObservationFilter { ventures: Some(vec!["vc".parse().unwrap()]), ..ObservationFilter::default() };
    let all: Vec<Observation> = (0..30).map(observation).collect();
    insert_all(store, &all);
    let (mut seen, mut page) = (Vec::new(), Page::first(7));
    loop {
        let found = list(store, &filter, page);
        let Some(last) = found.last() else { break };
        page.before = Some(Cursor { before: last.id.ulid() });
        seen.extend(ids(&found));
        insert(store, &observation(1_000 + seen.len() as i64));
    }
    assert_eq!(seen, ids(&all).into_iter().rev().collect::<Vec<_>>());
}

/// Returns the observations of a session that its summary does not cover, oldest first, even if they were stored late.
pub fn uncovered_observations_are_listed_in_order(store: &TestStore) {
    let (mine, other) = (session_id(), session_id());
    let mut all: Vec<Observation> = (0..20)
        .map(|number| Observation { session_id: [mine, other][number as usize % 2], ..observation(number) })
        .collect();
    Dice::new(3).shuffle(&mut all);
    insert_all(store, &all);
    all.retain(|one| one.session_id == mine);
    all.sort_by_key(|one| one.id);
    let expected = ids(&all);
    let open = |session, limit| read(store, move |tx| tx.observations_without_summary(session, limit));
    assert_eq!((open(mine, 100), open(session_id(), 100)), (expected.clone(), vec![]));
    assert_eq!(open(mine, 4), expected[..4]);

    let mut covered: Vec<ObservationId> = expected.iter().copied().step_by(2).collect();
    let mut rest: Vec<ObservationId> = expected.iter().copied().skip(1).step_by(2).collect();
    summarize(store, mine, &covered);
    assert_eq!(open(mine, 100), rest);
    assert_eq!(open(other, 100).len(), 10);

    // Captured long before the others, processed after them.
    let late = Observation { session_id: mine, ..observation(1_000) };
    insert(store, &late);
    rest.push(late.id);
    rest.sort_unstable();
    assert_eq!(open(mine, 100), rest);
    covered.append(&mut rest);
    summarize(store, mine, &covered);
    assert_eq!(open(mine, 100), []);
}

fn summarize(store: &Store, session: baton_core::SessionId, covers: &[ObservationId]) {
    let covers = covers.to_vec();
    let kept = write(store, move |tx| {
        let stored = StoredSummary {
            made_at: NOW,
            summary: SessionSummary::default(),
            observations: covers.len() as u64,
            provenance: Provenance::default(),
        };
        let replaces = tx.summary(session)?.map(|before| before.made_at);
        tx.keep_summary(
            session,
            &NewSummary { stored, replaces, covers: covers.clone(), is_rewritten: true },
            None,
        )
    });
    assert!(kept);
}

/// Observations are counted by the time of their tool use, to the millisecond.
pub fn observations_are_counted_since_a_time(store: &TestStore) {
    let used_at = |at: Timestamp, number: i64| Observation {
        id: ObservationId::new(Ulid::from_parts(at.as_millis() as u64, number as u128)),
        captured_at: at,
        compressed_at: later(10_000),
        ..observation(number)
    };
    insert_all(store, &[used_at(earlier(1), 1), used_at(NOW, 2), used_at(NOW, 3), used_at(later(9), 4)]);
    let since = |moment| read(store, move |tx| tx.count_observations_since(moment));
    let just_after = Timestamp::from_millis(NOW.as_millis() + 1);
    let counted = [Timestamp::EPOCH, earlier(1), NOW, just_after, later(9), later(10)].map(since);
    assert_eq!(counted, [4, 4, 3, 1, 1, 0]);
    let hour = NOW.as_millis() / 3_600_000;
    assert_eq!(read(store, move |tx| tx.observations_by_hour(NOW)), [(hour, 3)]);
}
