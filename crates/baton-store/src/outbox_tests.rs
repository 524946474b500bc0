use super::*;
use serde_json::json;

const LIMITS: ReplayLimits = ReplayLimits { lock: Duration::from_secs(60), total: Duration::from_secs(60) };

fn here() -> Target {
    Target::server("http://here")
}

fn write(number: u32, target: Option<Target>) -> SpooledWrite {
    SpooledWrite {
        operation: "test.write".to_owned(),
        key: Some(format!("key-{number}")),
        request_hash: None,
        actor: None,
        at: Timestamp::from_millis(i64::try_from(nanoseconds() / 1_000_000).unwrap()),
        target,
        params: json!({ "number": number }),
    }
}

fn put(outbox: &Outbox, number: u32, target: Option<Target>) {
    let body = format!("é ☕\nbody {number}");
    let put = outbox.put(&number.to_string(), &write(number, target), || Ok(body.as_bytes())).unwrap();
    assert_eq!(put, SpooledTo::Folder);
}

fn number(entry: &OutboxEntry) -> u64 {
    entry.write.params["number"].as_u64().unwrap()
}

fn replay_all(outbox: &Outbox) -> Vec<u64> {
    let mut seen = Vec::new();
    outbox.replay(LIMITS, |entry, mut body| {
        let mut text = String::new();
        body.read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("é ☕\nbody {}", number(entry)));
        assert_eq!(text.into_bytes(), entry.read_body().unwrap());
        seen.push(number(entry));
        ReplayResult::Stored
    });
    seen
}

#[test]
fn replays_in_order_once_the_store_is_available() {
    let home = tempfile::tempdir().unwrap();
    let outbox = Outbox::at(home.path().join("new"), Some(here()));
    assert_eq!(outbox.replay(LIMITS, |_, _| panic!("the outbox is empty")), Replay::default());
    for number in 0..3 {
        put(&outbox, number, Some(here()));
    }
    assert_eq!((outbox.count(), outbox.is_empty(), outbox.entries().len()), (3, false, 3));
    let blocked = outbox.replay(LIMITS, |_, _| ReplayResult::Unavailable);
    assert_eq!(blocked, Replay { is_blocked: true, ..Replay::default() });
    assert_eq!(replay_all(&outbox), [0, 1, 2]);
    assert!(outbox.is_empty() && outbox.entries().is_empty());
}

#[test]
fn replays_only_writes_for_its_target() {
    let home = tempfile::tempdir().unwrap();
    let for_target = |target: Target| Outbox::at(home.path(), Some(target));
    let (here, one) = (for_target(here()), for_target(Target::server("http://one")));
    put(&here, 1, one.target().cloned());
    put(&here, 2, here.target().cloned());
    assert_eq!(here.for_other_targets(), [("http://one".to_owned(), 1)]);
    assert_eq!(here.entries().iter().map(number).collect::<Vec<_>>(), [2]);
    assert!(for_target(Target::sqlite()).is_empty());
    put(&here, 3, None);
    assert_eq!(replay_all(&for_target(Target::server("http://other"))), [3]);
    assert_eq!((replay_all(&here), replay_all(&one), here.count()), (vec![2], vec![1], 0));
}

#[test]
fn sets_aside_writes_that_can_never_be_stored() {
    let home = tempfile::tempdir().unwrap();
    let outbox = Outbox::at(home.path(), Some(here()));
    put(&outbox, 1, None);
    std::fs::write(home.path().join("1-1.spooled"), b"{\"trunc").unwrap();
    let old = SpooledWrite { at: "2020-01-01T00:00:00.000Z".parse().unwrap(), ..write(2, None) };
    outbox.put("2", &old, || Ok(b"".as_slice())).unwrap();
    put(&outbox, 3, None);
    assert_eq!(outbox.entries().len(), 3, "an unreadable file hides no other");
    let replay = outbox.replay(LIMITS, |entry, _| match number(entry) {
        1 => ReplayResult::Rejected("it is wrong".to_owned()),
        _ => ReplayResult::Failed("it breaks".to_owned()),
    });
    assert_eq!((replay.stored, replay.left, replay.is_blocked), (0, 1, false));
    assert_eq!((outbox.count(), outbox.rejected()), (1, 3));
    // The name of the unreadable file sorts last.
    for (problem, why) in replay.problems.iter().zip(["it is wrong", "it breaks", "it cannot be read"]) {
        assert!(problem.contains(why) && problem.contains(".refused"), "{problem}");
    }
}

#[test]
fn write_saved_to_the_outbox_after_the_clock_was_set_back_is_replayed_last() {
    let home = tempfile::tempdir().unwrap();
    let outbox = Outbox::at(home.path(), Some(here()));
    put(&outbox, 1, Some(here()));
    let an_hour_ahead = nanoseconds() + 3_600_000_000_000;
    let (_, path) = outbox.files().pop().unwrap();
    std::fs::rename(path, home.path().join(format!("{an_hour_ahead:020}-1{SPOOLED}"))).unwrap();
    put(&outbox, 2, Some(here()));
    assert_eq!(replay_all(&outbox), [1, 2]);
}
