//! Idempotency keys: recorded responses are returned again, within their scope and lifetime.

use baton_core::{ActorKeyId, IdempotencyKey, KeyClaim, KeyRecord, KeyScope, Sha256Hash, Timestamp};
use baton_store::{Outcome, Store};

use super::fixture::{AWKWARD, NOW, key_record, key_scope, later, session, tuple};
use super::store::{TestStore, read, write};

fn claim(store: &Store, scope: &KeyScope, now: Timestamp) -> KeyClaim {
    let scope = scope.clone();
    write(store, move |tx| tx.claim_key(&scope, now))
}

/// Claims a new key and records its response in the same transaction.
fn record(store: &Store, scope: &KeyScope, record: &KeyRecord) {
    let (scope, record) = (scope.clone(), record.clone());
    write(store, move |tx| {
        assert_eq!(tx.claim_key(&scope, record.created_at)?, KeyClaim::Claimed);
        tx.record_key(&scope, &record)
    });
}

/// A recorded response is returned completely. A claim without a recorded response leaves the key new.
pub fn recorded_responses_are_returned(store: &TestStore) {
    let scope = key_scope(&"é".repeat(255));
    assert_eq!(claim(store, &scope, NOW), KeyClaim::Claimed);
    assert_eq!(claim(store, &scope, NOW), KeyClaim::Claimed, "nothing was recorded");

    let full = KeyRecord {
        request_hash: Sha256Hash::of(b"another request"),
        response_status: 409,
        response_code: Some("session_ended".into()),
        response_size_bytes: 70_000,
        response_truncated: true,
        created_at: later(1),
        expires_at: later(2),
        correlation_id: "corr:full.1".parse().unwrap(),
        ..key_record(AWKWARD)
    };
    record(store, &scope, &full);
    assert_eq!(claim(store, &scope, later(1)), KeyClaim::Answered(full));

    let plain = key_record("{}");
    record(store, &key_scope("plain"), &plain);
    assert_eq!(claim(store, &key_scope("plain"), NOW), KeyClaim::Answered(plain));
}

/// The same key of another actor or operation is a different key, and keys are case-sensitive.
pub fn scopes_are_separate(store: &TestStore) {
    let base = key_scope("key");
    let scopes = [
        base.clone(),
        KeyScope { actor_key_id: ActorKeyId::of("another"), ..base.clone() },
        KeyScope { operation: "session.end", ..base.clone() },
        KeyScope { key: IdempotencyKey::parse("KEY").unwrap(), ..base.clone() },
        KeyScope { key: IdempotencyKey::parse("key2").unwrap(), ..base },
    ];
    for (number, scope) in scopes.iter().enumerate() {
        record(store, scope, &key_record(&number.to_string()));
    }
    for (number, scope) in scopes.iter().enumerate() {
        let KeyClaim::Answered(found) = claim(store, scope, NOW) else { panic!("{scope:?} was not found") };
        assert_eq!(found.response_body, number.to_string());
    }
}

/// A key is valid until it expires; from then on it is new and can be recorded again.
pub fn expired_keys_are_new(store: &TestStore) {
    let scope = key_scope("key");
    let first = KeyRecord { expires_at: later(10), ..key_record("first") };
    record(store, &scope, &first);
    let just_before = Timestamp::from_millis(later(10).as_millis() - 1);
    assert_eq!(claim(store, &scope, just_before), KeyClaim::Answered(first));
    assert_eq!(claim(store, &scope, later(10)), KeyClaim::Claimed);

    let second = KeyRecord {
        request_hash: Sha256Hash::of(b"second"),
        response_status: 404,
        response_code: Some("not_found".into()),
        response_truncated: true,
        created_at: later(10),
        expires_at: later(20),
        correlation_id: "corr_second".parse().unwrap(),
        ..key_record("second")
    };
    record(store, &scope, &second);
    assert_eq!(claim(store, &scope, later(10)), KeyClaim::Answered(second));
}

/// Deletion removes only expired keys, and no more than the limit.
pub fn expired_keys_are_deleted_in_batches(store: &TestStore) {
    for number in 0..5 {
        let expiring = KeyRecord { expires_at: later(10), ..key_record("old") };
        record(store, &key_scope(&format!("old-{number}")), &expiring);
    }
    let living = KeyRecord { expires_at: later(11), ..key_record("living") };
    record(store, &key_scope("living"), &living);

    let forget = |limit| write(store, move |tx| tx.delete_expired_keys(later(10), limit));
    assert_eq!([forget(2), forget(2), forget(2), forget(2)], [2, 2, 1, 0]);
    assert_eq!(claim(store, &key_scope("living"), later(10)), KeyClaim::Answered(living));
    assert_eq!(
        claim(store, &key_scope("old-0"), NOW),
        KeyClaim::Claimed,
        "the key was deleted, not only expired"
    );
}

/// The effect of a rejected request is rolled back while its response is stored in the same transaction.
pub fn response_is_kept_when_its_effect_is_rolled_back(store: &TestStore) {
    let (scope, answer, effect) = (key_scope("key"), key_record("refused"), session(tuple("agent")));
    let id = effect.id;
    let (scope_inside, answer_inside) = (scope.clone(), answer.clone());
    write(store, move |tx| {
        assert_eq!(tx.claim_key(&scope_inside, NOW)?, KeyClaim::Claimed);
        tx.nested(&mut |tx| {
            tx.insert_session(&effect).unwrap();
            Outcome::RollBack
        })?;
        tx.record_key(&scope_inside, &answer_inside)
    });
    assert_eq!(claim(store, &scope, NOW), KeyClaim::Answered(answer));
    assert_eq!(read(store, move |tx| tx.session(id)), None);
}
