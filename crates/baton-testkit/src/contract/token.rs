//! Tokens: fields, and revocation.

use baton_core::{Access, Sha256Hash, Timestamp, Token, TokenId, VentureScope};
use baton_store::{Store, StoreError};

use super::fixture::{AWKWARD, NOW, later};
use super::store::{TestStore, read, try_write, write};

fn token(number: u64, created_at: Timestamp) -> Token {
    Token {
        id: TokenId::new(number),
        name: "plain".into(),
        secret_hash: Sha256Hash::of(b"secret"),
        access: Access::Read,
        ventures: VentureScope::All,
        created_at,
        expires_at: None,
        revoked_at: None,
    }
}

fn insert(store: &Store, token: &Token) {
    let token = token.clone();
    write(store, move |tx| tx.insert_token(&token));
}

fn find(store: &Store, id: &TokenId) -> Option<Token> {
    let id = id.clone();
    read(store, move |tx| tx.token(&id))
}

fn revoke(store: &Store, id: &TokenId, at: Timestamp) -> bool {
    let id = id.clone();
    write(store, move |tx| tx.revoke_token(&id, at))
}

/// Every field is read back as written. A token without ventures does not become one for all ventures.
pub fn reads_back_every_field(store: &TestStore) {
    let full = Token {
        name: AWKWARD.into(),
        secret_hash: Sha256Hash::of(b"another secret"),
        access: Access::Write,
        ventures: VentureScope::Only(vec!["vc".parse().unwrap(), "d.f-g_1".parse().unwrap()]),
        expires_at: Some(later(1)),
        revoked_at: Some(later(2)),
        ..token(u64::MAX, later(3))
    };
    let nowhere = Token { ventures: VentureScope::Only(vec![]), ..token(2, later(1)) };
    for written in [token(0, NOW), full, nowhere] {
        insert(store, &written);
        assert_eq!(find(store, &written.id), Some(written));
    }
    assert_eq!(find(store, &TokenId::new(1)), None);
}

/// The list contains every token, newest first.
pub fn lists_newest_first(store: &TestStore) {
    let [oldest, middle, newest] = [token(3, NOW), token(1, later(1)), token(2, later(2))];
    for token in [&middle, &newest, &oldest] {
        insert(store, token);
    }
    assert_eq!(read(store, |tx| tx.tokens()), [newest, middle, oldest]);
}

/// A token is revoked once, and keeps the time of the first revocation. Other tokens do not change.
pub fn revokes_once(store: &TestStore) {
    let (revoked, neighbour) = (token(1, NOW), token(2, NOW));
    insert(store, &revoked);
    insert(store, &neighbour);
    assert!(revoke(store, &revoked.id, later(1)));
    assert!(!revoke(store, &revoked.id, later(2)), "it was revoked before");
    assert!(!revoke(store, &TokenId::new(3), later(2)), "there is no such token");
    assert_eq!(find(store, &revoked.id), Some(Token { revoked_at: Some(later(1)), ..revoked }));
    assert_eq!(find(store, &neighbour.id), Some(neighbour));
}

pub fn ids_are_unique(store: &TestStore) {
    let (first, second) = (token(1, NOW), token(1, later(1)));
    insert(store, &first);
    let answer = try_write(store, move |tx| tx.insert_token(&second));
    assert!(matches!(answer, Err(StoreError::Statement { .. })), "{answer:?}");
    assert_eq!(find(store, &first.id), Some(first));
}
