use super::*;
use proptest::prelude::*;
use ulid::Ulid;

const MINUTE: i64 = 60_000;

fn session(number: u128, heartbeat: i64) -> Session {
    Session {
        id: SessionId::new(Ulid(number)),
        tuple: SessionTuple {
            agent: "a".parse().unwrap(),
            venture: "v".parse().unwrap(),
            repo: "o/r".parse().unwrap(),
            track: None,
            client_session_id: None,
        },
        facts: SessionFacts::default(),
        status: SessionStatus::Active,
        created_at: Timestamp::EPOCH,
        last_heartbeat_at: Timestamp::from_millis(heartbeat),
        ended_at: None,
        end_reason: None,
        schema_version: "1.0".into(),
        actor_key_id: ActorKeyId::of("k"),
        creation_correlation_id: "corr_1".parse().unwrap(),
        meta: None,
    }
}

#[test]
fn heartbeats_never_move_backwards() {
    let mut session = session(1, 1_000);
    session.beat(Timestamp::from_millis(500)).unwrap();
    assert_eq!(session.last_heartbeat_at.as_millis(), 1_000);
    session.beat(Timestamp::from_millis(1_500)).unwrap();
    assert_eq!(session.last_heartbeat_at.as_millis(), 1_500);
}

#[test]
fn ended_session_rejects_every_change() {
    let mut session = session(1, 1_000);
    session.end(Timestamp::from_millis(2_000), EndReason::Manual).unwrap();
    assert_eq!(session.status, SessionStatus::Ended);
    for refused in [
        session.clone().beat(Timestamp::from_millis(3_000)),
        session.clone().end(Timestamp::from_millis(3_000), EndReason::Error),
        session.clone().resume(Timestamp::from_millis(3_000), SessionFacts::default()),
    ] {
        let fault = refused.unwrap_err();
        assert_eq!(fault.code, ErrorCode::SessionEnded);
        assert_eq!(fault.details.unwrap()["status"], "ended");
    }
}

#[test]
fn abandoned_session_ends_at_its_last_heartbeat() {
    let mut session = session(1, 1_000);
    session.abandon();
    assert_eq!(session.status, SessionStatus::Abandoned);
    assert_eq!(session.ended_at, Some(Timestamp::from_millis(1_000)));
    assert_eq!(session.end_reason, Some(EndReason::Stale));
}

#[test]
fn resume_updates_given_fields_and_keeps_the_others() {
    let mut session = session(1, 0);
    session.facts.branch = Some("old".into());
    session.facts.host = Some("crane1".into());
    let newer = SessionFacts { branch: Some("new".into()), issue_number: Some(7), ..SessionFacts::default() };
    session.resume(Timestamp::from_millis(5), newer).unwrap();
    assert_eq!(session.facts.branch.as_deref(), Some("new"));
    assert_eq!(session.facts.host.as_deref(), Some("crane1"));
    assert_eq!(session.facts.issue_number, Some(7));
}

#[test]
fn session_is_stale_after_more_than_forty_five_minutes() {
    let liveness = Liveness::default();
    let session = session(1, 0);
    assert!(!session.is_stale(Timestamp::from_millis(45 * MINUTE), &liveness));
    assert!(session.is_stale(Timestamp::from_millis(45 * MINUTE + 1), &liveness));
}

#[test]
fn start_resumes_the_most_recent_session() {
    let now = Timestamp::from_millis(100 * MINUTE);
    let (fresh, newest, stale) = (session(1, 90 * MINUTE), session(2, 95 * MINUTE), session(3, 10 * MINUTE));
    let all = [fresh.clone(), newest.clone(), stale.clone()];
    let decision = StartDecision::over(&all, now, &Liveness::default());
    assert_eq!(decision.resume, Some(newest.id));
    assert_eq!(decision.supersede, vec![fresh.id]);
    assert_eq!(decision.abandon, vec![stale.id]);
}

#[test]
fn start_abandons_a_single_stale_session() {
    let decision =
        StartDecision::over(&[session(1, 0)], Timestamp::from_millis(46 * MINUTE), &Liveness::default());
    assert_eq!(decision.resume, None);
    assert_eq!(decision.abandon.len(), 1);
}

#[test]
fn jitter_includes_both_ends_of_the_range() {
    let policy = HeartbeatPolicy::default();
    assert_eq!(policy.interval(0), 480);
    assert_eq!(policy.interval(240), 720);
    assert_eq!(policy.interval(241), 480);
    let none = HeartbeatPolicy { interval_seconds: 5, jitter_seconds: 0 };
    assert_eq!(none.interval(u64::MAX), 5);
}

proptest! {
    #[test]
    fn intervals_stay_in_their_range(interval in 1u32..100_000, jitter in 0u32..200_000, random in any::<u64>()) {
        let policy = HeartbeatPolicy { interval_seconds: interval, jitter_seconds: jitter };
        let picked = policy.interval(random);
        prop_assert!(picked >= 1);
        prop_assert!(picked <= interval.saturating_add(jitter));
    }

    #[test]
    fn start_leaves_at_most_one_active_session(heartbeats in prop::collection::vec(0i64..200, 0..8), now in 0i64..300) {
        let sessions: Vec<_> =
            heartbeats.iter().zip(1u128..).map(|(beat, id)| session(id, beat * MINUTE)).collect();
        let decision = StartDecision::over(&sessions, Timestamp::from_millis(now * MINUTE), &Liveness::default());
        let kept = usize::from(decision.resume.is_some());
        prop_assert_eq!(kept + decision.supersede.len() + decision.abandon.len(), sessions.len());
    }
}
