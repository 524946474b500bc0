use chacha20poly1305::aead::{Aead, Payload};
use proptest::prelude::*;

use super::*;

fn key(seed: u8) -> SecretKey {
    SecretKey::new(&std::array::from_fn(|index| seed.wrapping_add(index as u8)))
}

fn ring(seeds: &[u8]) -> KeyRing {
    KeyRing::new(seeds.iter().copied().map(key).collect()).unwrap()
}

fn nonce(seed: u8) -> [u8; NONCE_BYTES] {
    [seed; NONCE_BYTES]
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// draft-irtf-cfrg-xchacha-03, appendix A.3.1.
mod draft {
    pub(super) const KEY: &str = "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f";
    pub(super) const NONCE: &str = "404142434445464748494a4b4c4d4e4f5051525354555657";
    pub(super) const ASSOCIATED: &str = "50515253c0c1c2c3c4c5c6c7";
    pub(super) const PLAIN: &[u8] = b"Ladies and Gentlemen of the class of '99: \
        If I could offer you only one tip for the future, sunscreen would be it.";
    pub(super) const SEALED: &str = "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb\
        731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e\
        3f3fac2bc369488f76b2383565d3fff921f9664c97637da9768812f615c68b13b52e\
        c0875924c1c7987947deafd8780acf49";
}

#[test]
fn cipher_matches_the_published_test_vector() {
    let cipher = SecretKey::new(&unhex(draft::KEY).try_into().unwrap()).cipher();
    let nonce = XNonce::try_from(unhex(draft::NONCE).as_slice()).unwrap();
    let associated = unhex(draft::ASSOCIATED);
    let sealed = cipher.encrypt(&nonce, Payload { msg: draft::PLAIN, aad: &associated }).unwrap();
    assert_eq!(sealed, unhex(draft::SEALED));
}

/// Created with another implementation. Stored data must stay readable, so these bytes must never change.
const STORED: &str = "42534c315ba42482b3aac752404142434445464748494a4b4c4d4e4f5051525354555657\
    92631d803e8880c2ac764ceb23d8e813d1ac69c932ad33";

#[test]
fn stored_format_does_not_change() {
    let ring = KeyRing::from(SecretKey::new(&unhex(draft::KEY).try_into().unwrap()));
    let nonce = unhex(draft::NONCE).try_into().unwrap();
    let sealed = ring.seal(b"context", b"ckpt_1", nonce);
    assert_eq!(sealed, unhex(STORED));
    assert_eq!(ring.open(&unhex(STORED), b"ckpt_1").unwrap(), b"context");
}

/// Built with the cipher alone, to show that header and associated data are authenticated as documented.
#[test]
fn the_header_is_authenticated_in_front_of_the_associated_data() {
    let (ring, nonce) = (ring(&[1]), nonce(9));
    let header = [MAGIC.as_slice(), &ring.current_id().0, &nonce].concat();
    let authenticated = [header.as_slice(), b"ids"].concat();
    let body = key(1)
        .cipher()
        .encrypt(&XNonce::from(nonce), Payload { msg: b"plain", aad: &authenticated })
        .unwrap();
    assert_eq!(ring.seal(b"plain", b"ids", nonce), [header, body].concat());
}

#[test]
fn every_flipped_bit_is_an_error() {
    let ring = ring(&[1, 2]);
    let sealed = ring.seal(b"a context worth keeping", b"ckpt_1", nonce(3));
    for bit in 0..sealed.len() * 8 {
        let mut changed = sealed.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let error = ring.open(&changed, b"ckpt_1").unwrap_err();
        match bit / 8 {
            0..4 => assert_eq!(error, SealError::NotSealed, "bit {bit}"),
            4..12 => assert!(matches!(error, SealError::UnknownKey { .. }), "bit {bit}: {error}"),
            _ => assert_eq!(error, SealError::Damaged, "bit {bit}"),
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    let ring = ring(&[1]);
    let sealed = ring.seal(b"a context worth keeping", b"ckpt_1", nonce(3));
    for length in 0..sealed.len() {
        let expected = if length < MAGIC.len() { SealError::NotSealed } else { SealError::Damaged };
        assert_eq!(ring.open(&sealed[..length], b"ckpt_1"), Err(expected), "{length} bytes");
    }
    let longer = [sealed.as_slice(), b"\0"].concat();
    assert_eq!(ring.open(&longer, b"ckpt_1"), Err(SealError::Damaged));
}

/// The header names another key of the ring: the key exists, but it did not seal the bytes.
#[test]
fn changing_the_key_id_in_the_header_is_an_error() {
    let ring = ring(&[1, 2]);
    let mut sealed = ring.seal(b"plain", b"", nonce(3));
    sealed[4..12].copy_from_slice(&key(2).id().0);
    assert_eq!(ring.open(&sealed, b""), Err(SealError::Damaged));
}

#[test]
fn older_keys_open_and_only_the_first_seals() {
    let old = ring(&[1]);
    let sealed = old.seal(b"plain", b"ids", nonce(0));
    let rotated = old.rotated(key(2));
    assert_eq!(rotated, ring(&[2, 1]));
    assert_eq!(rotated.current_id(), key(2).id());
    assert_eq!(rotated.open(&sealed, b"ids").unwrap(), b"plain");
    assert_eq!(sealed_with(&rotated.seal(b"plain", b"ids", nonce(1))), Some(key(2).id()));

    let kept = rotated.clone().without_unneeded(|id| id == key(1).id());
    assert_eq!(kept, rotated);
    let dropped = rotated.without_unneeded(|_| false);
    assert_eq!(dropped.ids().collect::<Vec<_>>(), [key(2).id()]);
    assert_eq!(dropped.open(&sealed, b"ids"), Err(SealError::UnknownKey { key_id: key(1).id() }));
}

#[test]
fn ring_is_never_empty_and_holds_each_key_once() {
    assert_eq!(KeyRing::new(Vec::new()), None);
    assert_eq!(ring(&[1, 2, 1, 2]), ring(&[1, 2]));
    assert_eq!(ring(&[1, 2]).rotated(key(2)), ring(&[2, 1]));
    assert!(ring(&[1, 2]).has(&key(2).id()));
    assert!(!ring(&[1, 2]).has(&key(3).id()));
}

#[test]
fn debug_output_does_not_contain_keys() {
    let shown = format!("{:?}", ring(&[0x41]));
    assert!(shown.contains(&key(0x41).id().to_string()), "{shown}");
    assert!(!shown.contains("65, 66") && !shown.contains("4142") && !shown.contains("ABC"), "{shown}");
}

#[test]
fn key_ids_read_back_and_are_not_bare_hashes() {
    let id = key(1).id();
    assert_eq!(id.to_string().parse(), Ok(id));
    assert_eq!(id.to_string().len(), 16);
    assert_ne!(id.0, Sha256Hash::of(key(1).expose()).as_bytes()[..8]);
    for text in ["", "0123", "0123456789ABCDEF", "0123456789abcdeg", "+123456789abcdef"] {
        assert_eq!(text.parse::<KeyId>(), Err(KeyIdError), "{text:?}");
    }
}

#[test]
fn random_keys_and_nonces_differ() {
    assert_ne!(SecretKey::random().unwrap(), SecretKey::random().unwrap());
    assert_ne!(random_nonce().unwrap(), random_nonce().unwrap());
}

fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..longest)
}

proptest! {
    #[test]
    fn sealed_bytes_open(
        plain in bytes(5000), associated in bytes(100), nonce: [u8; NONCE_BYTES], key: [u8; KEY_BYTES],
    ) {
        let ring = KeyRing::from(SecretKey::new(&key));
        let sealed = ring.seal(&plain, &associated, nonce);
        prop_assert_eq!(sealed.len(), plain.len() + SEAL_OVERHEAD_BYTES);
        prop_assert!(is_sealed(&sealed));
        prop_assert_eq!(sealed_with(&sealed), Some(ring.current_id()));
        prop_assert_eq!(ring.open(&sealed, &associated), Ok(plain));
    }

    #[test]
    fn a_changed_byte_is_an_error(
        plain in bytes(500), associated in bytes(50), at: prop::sample::Index, change in 1..=u8::MAX,
    ) {
        let ring = ring(&[1, 2]);
        let mut sealed = ring.seal(&plain, &associated, nonce(7));
        let at = at.index(sealed.len());
        sealed[at] ^= change;
        prop_assert!(ring.open(&sealed, &associated).is_err());
    }

    #[test]
    fn other_associated_data_is_an_error(plain in bytes(200), given in bytes(50), other in bytes(50)) {
        prop_assume!(given != other);
        let ring = ring(&[1]);
        let sealed = ring.seal(&plain, &given, nonce(7));
        prop_assert_eq!(ring.open(&sealed, &other), Err(SealError::Damaged));
    }

    #[test]
    fn another_key_is_an_error(plain in bytes(200), one: [u8; KEY_BYTES], other: [u8; KEY_BYTES]) {
        prop_assume!(one != other);
        let (one, other) = (SecretKey::new(&one), SecretKey::new(&other));
        let key_id = one.id();
        let sealed = KeyRing::from(one).seal(&plain, b"", nonce(7));
        prop_assert_eq!(KeyRing::from(other).open(&sealed, b""), Err(SealError::UnknownKey { key_id }));
    }

    #[test]
    fn arbitrary_bytes_are_an_error(bytes in bytes(300), is_marked: bool) {
        let ring = ring(&[1]);
        let header = [MAGIC.as_slice(), &ring.current_id().0].concat();
        let bytes = if is_marked { [header, bytes].concat() } else { bytes };
        prop_assert!(ring.open(&bytes, b"").is_err());
    }
}
