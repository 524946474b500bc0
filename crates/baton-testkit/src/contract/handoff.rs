//! Handoffs: fields, one ending handoff per session, a single acknowledgement, filters and pages.

use baton_core::{ActorKeyId, Cursor, Handoff, HandoffAuthor, Sha256Hash};
use baton_store::{Acknowledgement, HandoffFilter, Page, Store, StoreError};

use super::fixture::{
    AWKWARD, Dice, NOW, checkpoint_id, full_session, handoff, later, session, session_id, track, tuple,
};
use super::store::{TestStore, read, try_write, write};

const AGENTS: [&str; 3] = ["agent-a", "agent-b", "Agent-a"];
const VENTURES: [&str; 2] = ["vc", "dfg"];
const REPOS: [&str; 2] = ["owner/one", "owner/two"];

fn full_handoff() -> Handoff {
    let payload = format!("{{\"text\":{}}}", serde_json::to_string(AWKWARD).unwrap());
    Handoff {
        issue_number: Some(i64::MAX),
        branch: Some(AWKWARD.into()),
        commit_sha: Some("0123456789abcdef".into()),
        to_agent: Some("next.agent-1".parse().unwrap()),
        status_label: Some(AWKWARD.into()),
        summary: AWKWARD.into(),
        payload_hash: Sha256Hash::of(payload.as_bytes()),
        payload_json: payload,
        schema_version: "2.0".into(),
        late: true,
        written_by: HandoffAuthor::Hook,
        workflow_id: Some("flow-1".parse().unwrap()),
        checkpoint_id: Some(checkpoint_id()),
        automatic_json: Some(format!("{{\"summary\":{}}}", serde_json::to_string(AWKWARD).unwrap())),
        incomplete: true,
        acknowledged_at: Some(later(6)),
        acknowledged_by: Some("took.it".parse().unwrap()),
        acknowledged_session_id: Some(session_id()),
        created_at: later(5),
        actor_key_id: ActorKeyId::of("full"),
        creation_correlation_id: "corr:full.1".parse().unwrap(),
        ..handoff(&full_session())
    }
}

fn insert_all(store: &Store, handoffs: &[Handoff]) {
    let handoffs = handoffs.to_vec();
    write(store, move |tx| handoffs.iter().try_for_each(|handoff| tx.insert_handoff(handoff)));
}

/// Every field is read back as written, by handoff id and by session id.
pub fn reads_back_every_field(store: &TestStore) {
    let mut large = handoff(&session(tuple("agent")));
    large.payload_json = format!("[\"{}\"]", "接力".repeat(130_000));
    for written in [handoff(&session(tuple("agent"))), full_handoff(), large] {
        let (id, session_id) = (written.id, written.session_id);
        insert_all(store, std::slice::from_ref(&written));
        assert_eq!(read(store, move |tx| tx.handoff(id)).as_ref(), Some(&written));
        assert_eq!(read(store, move |tx| tx.ending_handoff(session_id)), Some(written));
    }
}

pub fn finds_nothing_under_an_unknown_id(store: &TestStore) {
    insert_all(store, &[full_handoff()]);
    let unknown = full_handoff();
    assert_eq!(read(store, move |tx| tx.handoff(unknown.id)), None);
    assert_eq!(read(store, move |tx| tx.ending_handoff(unknown.session_id)), None);
}

/// A session has one ending handoff; a second one is rejected. It may have other handoffs before.
pub fn session_has_one_ending_handoff(store: &TestStore) {
    let author = session(tuple("agent"));
    let interim = || Handoff { ends_session: false, ..handoff(&author) };
    insert_all(store, &[interim(), interim()]);
    let id = author.id;
    assert_eq!(read(store, move |tx| tx.ending_handoff(id)), None, "the session has not ended");

    let (first, second) = (handoff(&author), handoff(&author));
    insert_all(store, std::slice::from_ref(&first));
    let answer = try_write(store, move |tx| tx.insert_handoff(&second));
    assert!(matches!(answer, Err(StoreError::Statement { .. })), "{answer:?}");
    insert_all(store, &[interim()]);
    assert_eq!(read(store, move |tx| tx.ending_handoff(id)), Some(first));
}

/// A handoff is acknowledged once; nothing else of it changes.
pub fn handoffs_are_acknowledged_once(store: &TestStore) {
    let (taken, neighbour) = (handoff(&session(tuple("agent"))), handoff(&session(tuple("agent"))));
    insert_all(store, &[taken.clone(), neighbour.clone()]);
    let receiver = session_id();
    let acknowledge = |by: &str, at| {
        let (id, agent) = (taken.id, by.parse().unwrap());
        let by = Acknowledgement { agent, session_id: Some(receiver), at };
        write(store, move |tx| tx.acknowledge_handoff(id, &by))
    };
    assert!(acknowledge("first", later(1)));
    assert!(!acknowledge("second", later(2)), "it was already acknowledged");
    assert!(!acknowledge("first", later(3)), "the same agent cannot acknowledge it twice");

    let expected = Handoff {
        acknowledged_at: Some(later(1)),
        acknowledged_by: Some("first".parse().unwrap()),
        acknowledged_session_id: Some(receiver),
        ..taken.clone()
    };
    assert_eq!(read(store, move |tx| tx.handoff(expected.id)), Some(expected.clone()));
    assert_eq!(read(store, move |tx| tx.handoff(neighbour.id)), Some(neighbour.clone()));

    let unknown = handoff(&session(tuple("agent"))).id;
    let by = Acknowledgement { agent: "first".parse().unwrap(), session_id: None, at: NOW };
    assert!(!write(store, move |tx| tx.acknowledge_handoff(unknown, &by)), "there is no such handoff");
}

/// A withdrawn handoff is found by its id, but not listed and not the handoff of its session. It keeps its first time.
pub fn withdrawn_handoffs_are_not_listed(store: &TestStore) {
    let author = session(tuple("agent"));
    let (earlier, ending) = (Handoff { ends_session: false, ..handoff(&author) }, handoff(&author));
    insert_all(store, &[earlier.clone(), ending.clone()]);
    let (id, of) = (ending.id, author.id);
    write(store, move |tx| tx.withdraw_handoff(id, later(1)));
    write(store, move |tx| tx.withdraw_handoff(id, later(2)));
    let withdrawn = Handoff { withdrawn_at: Some(later(1)), ..ending };
    assert_eq!(read(store, move |tx| tx.handoff(id)), Some(withdrawn));
    assert_eq!(read(store, move |tx| tx.ending_handoff(of)), None);
    assert_eq!(read(store, move |tx| tx.latest_handoff_of(of)), Some(earlier.clone()));
    let all = list(store, &HandoffFilter::of(author.tuple.venture.clone()), Page::first(10));
    assert_eq!(all, [earlier]);

    let replacement = handoff(&author);
    insert_all(store, std::slice::from_ref(&replacement));
    assert_eq!(read(store, move |tx| tx.ending_handoff(of)), Some(replacement));
}

/// An update changes the content of one handoff and nothing else of it.
pub fn update_changes_only_the_content(store: &TestStore) {
    let (written, neighbour) = (full_handoff(), full_handoff());
    insert_all(store, &[written.clone(), neighbour.clone()]);
    let payload = "{\"new\":true}";
    let updated = Handoff {
        summary: "new".into(),
        payload_json: payload.into(),
        payload_hash: Sha256Hash::of(payload.as_bytes()),
        automatic_json: None,
        incomplete: false,
        ..written.clone()
    };
    let sent = Handoff { status_label: Some("ignored".into()), ..updated.clone() };
    write(store, move |tx| tx.update_handoff(&sent));
    assert_eq!(read(store, move |tx| tx.handoff(written.id)), Some(updated));
    assert_eq!(read(store, move |tx| tx.handoff(neighbour.id)), Some(neighbour.clone()));
}

fn random_handoff(dice: &mut Dice) -> Handoff {
    let recipient = dice.pick(&AGENTS).parse().unwrap();
    let issue_number = dice.below(3) as i64;
    Handoff {
        written_by: dice.pick(&[HandoffAuthor::Agent, HandoffAuthor::Person, HandoffAuthor::Hook]),
        venture: dice.pick(&VENTURES).parse().unwrap(),
        repo: dice.pick(&REPOS).parse().unwrap(),
        track: dice.pick(&[None, Some(track(0)), Some(track(1))]),
        issue_number: dice.maybe(issue_number),
        from_agent: dice.pick(&AGENTS).parse().unwrap(),
        to_agent: dice.maybe(recipient),
        ..handoff(&session(tuple("agent")))
    }
}

fn random_filter(dice: &mut Dice) -> HandoffFilter {
    let (repo, from, to) = (dice.pick(&REPOS), dice.pick(&AGENTS), dice.pick(&AGENTS));
    let (chosen_track, issue_number) =
        (dice.pick(&[None, Some(track(0)), Some(track(1))]), dice.below(3) as i64);
    HandoffFilter {
        venture: dice.pick(&VENTURES).parse().unwrap(),
        repo: dice.maybe(repo.parse().unwrap()),
        track: dice.maybe(chosen_track),
        issue_number: dice.maybe(issue_number),
        from_agent: dice.maybe(from.parse().unwrap()),
        to_agent: dice.maybe(to.parse().unwrap()),
        written_by: dice.pick(&[None, Some(HandoffAuthor::Agent), Some(HandoffAuthor::Hook)]),
    }
}

fn matches(filter: &HandoffFilter, handoff: &Handoff) -> bool {
    let HandoffFilter { venture, repo, track, issue_number, from_agent, to_agent, written_by } = filter;
    *venture == handoff.venture
        && repo.as_ref().is_none_or(|repo| *repo == handoff.repo)
        && track.is_none_or(|track| track == handoff.track)
        && issue_number.is_none_or(|number| handoff.issue_number == Some(number))
        && from_agent.as_ref().is_none_or(|agent| *agent == handoff.from_agent)
        && to_agent.as_ref().is_none_or(|agent| handoff.to_agent.as_ref() == Some(agent))
        && written_by.is_none_or(|author| author == handoff.written_by)
}

fn list(store: &Store, filter: &HandoffFilter, page: Page) -> Vec<Handoff> {
    let filter = filter.clone();
    read(store, move |tx| tx.handoffs(&filter, page))
}

fn list_by_pages(store: &Store, filter: &HandoffFilter, limit: u32) -> Vec<Handoff> {
    let (mut all, mut page) = (Vec::new(), Page::first(limit));
    loop {
        let found = list(store, filter, page);
        assert!(found.len() <= limit as usize, "a page of {limit} had {} rows", found.len());
        let Some(last) = found.last() else { return all };
        page.before = Some(Cursor { before: last.id.ulid() });
        all.extend(found);
    }
}

/// Filters, alone and combined, return the matching handoffs, newest first, in one page or many.
pub fn lists_filter_and_page(store: &TestStore) {
    let mut dice = Dice::new(4);
    let mut all: Vec<Handoff> = (0..200).map(|_| random_handoff(&mut dice)).collect();
    dice.shuffle(&mut all);
    insert_all(store, &all);
    all.sort_by_key(|handoff| std::cmp::Reverse(handoff.id));

    let of = |venture: &str| HandoffFilter::of(venture.parse().unwrap());
    let mut filters = vec![
        of("vc"),
        of("nobody"),
        HandoffFilter { repo: Some(REPOS[0].parse().unwrap()), ..of("vc") },
        HandoffFilter { track: Some(None), ..of("vc") },
        HandoffFilter { track: Some(Some(track(0))), ..of("vc") },
        HandoffFilter { issue_number: Some(0), ..of("vc") },
        HandoffFilter { from_agent: Some(AGENTS[0].parse().unwrap()), ..of("vc") },
        HandoffFilter { to_agent: Some(AGENTS[2].parse().unwrap()), ..of("vc") },
    ];
    filters.extend((0..60).map(|_| random_filter(&mut dice)));
    for filter in filters {
        let expected: Vec<Handoff> = all.iter().filter(|one| matches(&filter, one)).cloned().collect();
        assert_eq!(list(store, &filter, Page::first(1000)), expected, "{filter:?}");
        assert_eq!(list_by_pages(store, &filter, 7), expected, "by pages: {filter:?}");
    }
}

/// Paging returns each handoff once, even if new ones arrive meanwhile.
pub fn pages_neither_skip_nor_repeat(store: &TestStore) {
    let filter = HandoffFilter::of("vc".parse().unwrap());
    let mut expected: Vec<Handoff> = (0..20).map(|_| handoff(&session(tuple("agent")))).collect();
    insert_all(store, &expected);
    expected.reverse();
    let (mut seen, mut page) = (Vec::new(), Page::first(6));
    loop {
        let found = list(store, &filter, page);
        let Some(last) = found.last() else { break };
        page.before = Some(Cursor { before: last.id.ulid() });
        seen.extend(found);
        insert_all(store, &[handoff(&session(tuple("newcomer")))]);
    }
    assert_eq!(seen, expected);
}
