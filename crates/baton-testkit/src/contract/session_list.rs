//! Lists of sessions: filters compared with an in-memory list, pages that neither skip nor repeat, silent sessions.

use baton_core::{
    Cursor, EndReason, Session, SessionId, SessionStatus, SessionTuple, Timestamp, TrackFilter, Ulid,
};
use baton_store::{Page, SessionFilter, Store};

use super::fixture::{Dice, NOW, earlier, later, session, track, tuple};
use super::store::{TestStore, read, write};

const AGENTS: [&str; 3] = ["agent-a", "agent-b", "Agent-a"];
const VENTURES: [&str; 3] = ["vc", "dfg", "VC"];
const REPOS: [&str; 3] = ["owner/one", "owner/two", "Owner/one"];

fn random_session(dice: &mut Dice, number: usize) -> Session {
    let mut made = session(SessionTuple {
        agent: dice.pick(&AGENTS).parse().unwrap(),
        venture: dice.pick(&VENTURES).parse().unwrap(),
        repo: dice.pick(&REPOS).parse().unwrap(),
        track: dice.pick(&[None, Some(track(0)), Some(track(1))]),
        // Distinct, so that the tuples are distinct.
        client_session_id: Some(format!("chat-{number}").parse().unwrap()),
    });
    made.last_heartbeat_at = random_time(dice);
    match dice.below(6) {
        0 => made.end(later(200), EndReason::Manual).unwrap(),
        1 => made.abandon(),
        _ => {}
    }
    made
}

fn random_time(dice: &mut Dice) -> Timestamp {
    later(dice.below(20))
}

fn random_filter(dice: &mut Dice) -> SessionFilter {
    let ventures = VENTURES.iter().filter(|_| dice.below(2) == 0).map(|name| name.parse().unwrap()).collect();
    let (venture, repo, agent) = (dice.pick(&VENTURES), dice.pick(&REPOS), dice.pick(&AGENTS));
    let (number, since) = (dice.below(4), random_time(dice));
    SessionFilter {
        venture: dice.maybe(venture.parse().unwrap()),
        ventures: dice.maybe(ventures),
        repo: dice.maybe(repo.parse().unwrap()),
        track: dice.maybe(match number {
            0 => TrackFilter::Untracked,
            number => TrackFilter::Track(track(number as i64 - 1)),
        }),
        agent: dice.maybe(agent.parse().unwrap()),
        alive_since: dice.maybe(since),
    }
}

fn matches(filter: &SessionFilter, session: &Session) -> bool {
    let SessionFilter { venture, ventures, repo, track, agent, alive_since } = filter;
    let tuple = &session.tuple;
    session.status == SessionStatus::Active
        && venture.as_ref().is_none_or(|venture| *venture == tuple.venture)
        && ventures.as_ref().is_none_or(|ventures| ventures.contains(&tuple.venture))
        && repo.as_ref().is_none_or(|repo| *repo == tuple.repo)
        && track.is_none_or(|track| tuple.track == track.track())
        && agent.as_ref().is_none_or(|agent| *agent == tuple.agent)
        && alive_since.is_none_or(|since| session.last_heartbeat_at >= since)
}

fn insert_all(store: &Store, sessions: &[Session]) {
    let sessions = sessions.to_vec();
    write(store, move |tx| sessions.iter().try_for_each(|session| tx.insert_session(session)));
}

fn list(store: &Store, filter: &SessionFilter, page: Page) -> Vec<Session> {
    let filter = filter.clone();
    read(store, move |tx| tx.active_sessions(&filter, page))
}

fn list_by_pages(store: &Store, filter: &SessionFilter, limit: u32) -> Vec<Session> {
    let (mut all, mut page) = (Vec::new(), Page::first(limit));
    loop {
        let found = list(store, filter, page);
        assert!(found.len() <= limit as usize, "a page of {limit} had {} rows", found.len());
        let Some(last) = found.last() else { return all };
        page.before = Some(Cursor { before: last.id.ulid() });
        all.extend(found);
    }
}

/// Inserts 200 random sessions in random order and returns them newest first.
fn populate(store: &Store, dice: &mut Dice) -> Vec<Session> {
    let mut sessions: Vec<Session> = (0..200).map(|number| random_session(dice, number)).collect();
    dice.shuffle(&mut sessions);
    insert_all(store, &sessions);
    sessions.sort_by_key(|session| std::cmp::Reverse(session.id));
    sessions
}

fn assert_lists(store: &Store, filter: &SessionFilter, all: &[Session]) {
    let expected: Vec<Session> = all.iter().filter(|session| matches(filter, session)).cloned().collect();
    assert_eq!(list(store, filter, Page::first(1000)), expected, "{filter:?}");
    assert_eq!(list_by_pages(store, filter, 7), expected, "by pages: {filter:?}");
}

/// Sessions of one status, or of every status, are listed newest first.
pub fn every_status_is_listed(store: &TestStore) {
    let mut dice = Dice::new(5);
    let all = populate(store, &mut dice);
    let statuses =
        [None, Some(SessionStatus::Active), Some(SessionStatus::Ended), Some(SessionStatus::Abandoned)];
    for status in statuses {
        let filter =
            SessionFilter { repo: dice.maybe(REPOS[0].parse().unwrap()), ..SessionFilter::default() };
        let expected: Vec<SessionId> = all
            .iter()
            .filter(|session| status.is_none_or(|status| session.status == status))
            .filter(|session| filter.repo.as_ref().is_none_or(|repo| *repo == session.tuple.repo))
            .map(|session| session.id)
            .collect();
        let found = read(store, move |tx| tx.sessions(status, &filter, Page::first(1000)));
        assert_eq!(found.iter().map(|session| session.id).collect::<Vec<_>>(), expected, "{status:?}");
    }
}

/// Sessions and turns are counted by day and venture.
pub fn sessions_and_turns_are_counted_by_day(store: &TestStore) {
    const DAY: i64 = 86_400_000;
    let today = NOW.as_millis() / DAY;
    let mut made = Vec::new();
    for (number, (venture, days_ago)) in
        [("vc", 0), ("vc", 0), ("dfg", 0), ("vc", 3), ("vc", 40)].into_iter().enumerate()
    {
        let mut one = random_session(&mut Dice::new(number as u64), number);
        one.tuple.venture = venture.parse().unwrap();
        one.created_at = Timestamp::from_millis(NOW.as_millis() - days_ago * DAY);
        made.push(one);
    }
    insert_all(store, &made);
    let starts: Vec<_> = made.iter().map(|session| (session.id, session.created_at)).collect();
    write(store, move |tx| starts.iter().try_for_each(|(id, at)| tx.start_turn(*id, "do it", *at)));
    let since = Timestamp::from_millis((today - 30) * DAY);
    let counted = |ventures: Option<&[&str]>| {
        let ventures: Option<Vec<_>> =
            ventures.map(|names| names.iter().map(|name| name.parse().unwrap()).collect());
        let (also, of_turns) = (ventures.clone(), ventures);
        let mut sessions = read(store, move |tx| tx.sessions_by_day(also.as_deref(), since));
        let mut turns = read(store, move |tx| tx.turns_by_day(of_turns.as_deref(), since));
        sessions.sort_unstable();
        turns.sort_unstable();
        assert_eq!(sessions, turns, "each session has one turn, which starts with it");
        sessions
    };
    assert_eq!(counted(None), [(today - 3, 1), (today, 3)]);
    assert_eq!(counted(Some(&["vc"])), [(today - 3, 1), (today, 2)]);
    assert_eq!(counted(Some(&["dfg", "no"])), [(today, 1)]);
}

/// Every venture with a session is listed once.
pub fn ventures_are_listed_once(store: &TestStore) {
    assert!(read(store, |tx| tx.session_ventures()).is_empty());
    populate(store, &mut Dice::new(6));
    let mut found: Vec<String> =
        read(store, |tx| tx.session_ventures()).into_iter().map(Into::into).collect();
    found.sort();
    assert_eq!(found, ["VC", "dfg", "vc"]);
}

/// Each filter alone returns the matching sessions, newest first, and never an ended one.
pub fn each_condition_filters(store: &TestStore) {
    let all = populate(store, &mut Dice::new(1));
    let none = SessionFilter::default;
    let mut filters = vec![
        none(),
        SessionFilter { ventures: Some(vec![]), ..none() },
        SessionFilter {
            ventures: Some(vec!["vc".parse().unwrap(), "dfg".parse().unwrap(), "no".parse().unwrap()]),
            ..none()
        },
        SessionFilter { track: Some(TrackFilter::Untracked), ..none() },
        SessionFilter { alive_since: Some(later(10)), ..none() },
        SessionFilter { alive_since: Some(later(1000)), ..none() },
    ];
    for index in 0..3 {
        filters.extend([
            SessionFilter { venture: Some(VENTURES[index].parse().unwrap()), ..none() },
            SessionFilter { repo: Some(REPOS[index].parse().unwrap()), ..none() },
            SessionFilter { track: Some(TrackFilter::Track(track(index as i64))), ..none() },
            SessionFilter { agent: Some(AGENTS[index].parse().unwrap()), ..none() },
        ]);
    }
    for filter in filters {
        assert_lists(store, &filter, &all);
    }
}

/// Any combination of filters returns what matches all of them.
pub fn conditions_combine(store: &TestStore) {
    let mut dice = Dice::new(2);
    let all = populate(store, &mut dice);
    for _ in 0..60 {
        assert_lists(store, &random_filter(&mut dice), &all);
    }
}

/// Paging returns each session once, even if heartbeats and new sessions arrive meanwhile.
pub fn pages_neither_skip_nor_repeat(store: &TestStore) {
    let filter = SessionFilter { venture: Some("vc".parse().unwrap()), ..SessionFilter::default() };
    let sessions: Vec<Session> = (0..40).map(|number| session(tuple(&format!("agent-{number}")))).collect();
    insert_all(store, &sessions);
    let expected: Vec<SessionId> = sessions.iter().rev().map(|session| session.id).collect();

    let (mut seen, mut page, mut dice) = (Vec::new(), Page::first(7), Dice::new(3));
    loop {
        let found = list(store, &filter, page);
        let Some(last) = found.last() else { break };
        page.before = Some(Cursor { before: last.id.ulid() });
        seen.extend(found.iter().map(|session| session.id));

        insert_all(store, &[session(tuple(&format!("newcomer-{}", seen.len())))]);
        let beaten: Vec<SessionId> = (0..10).map(|_| dice.pick(&expected)).collect();
        let at = later(seen.len() as u64);
        write(store, move |tx| beaten.iter().try_for_each(|id| tx.beat_session(*id, at)));
    }
    assert_eq!(seen, expected);
}

/// Active sessions without a heartbeat since a time are listed longest silent first, up to the limit.
pub fn silent_sessions_are_listed_longest_silent_first(store: &TestStore) {
    let silent_for = [30, 10, 50, 0, 20, 40];
    let mut sessions: Vec<Session> = silent_for
        .iter()
        .map(|seconds| Session {
            id: SessionId::new(Ulid::from_parts(earlier(1_000).as_millis() as u64, u128::from(*seconds))),
            created_at: earlier(1_000),
            last_heartbeat_at: earlier(*seconds),
            ..session(tuple(&format!("agent-{seconds}")))
        })
        .collect();
    let mut over = Session { last_heartbeat_at: earlier(60), ..session(tuple("agent-60")) };
    over.abandon();
    sessions.push(over);
    insert_all(store, &sessions);

    for (before, limit, expected) in [
        (NOW, 100, &[50, 40, 30, 20, 10][..]),
        (later(1), 100, &[50, 40, 30, 20, 10, 0]),
        (earlier(30), 100, &[50, 40]),
        (later(1), 2, &[50, 40]),
        (earlier(50), 100, &[]),
    ] {
        let found = write(store, move |tx| tx.lock_stale_sessions(before, limit));
        let found: Vec<Timestamp> = found.iter().map(|session| session.last_heartbeat_at).collect();
        let expected: Vec<Timestamp> = expected.iter().map(|seconds| earlier(*seconds)).collect();
        assert_eq!(found, expected, "silent since before {before}, {limit} at the most");
    }
}
