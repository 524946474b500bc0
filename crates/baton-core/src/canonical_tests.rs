use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use schemars::schema_for;
use serde_json::{Value, json};

use super::{Canonical, HashError, RoundedInteger, Sha256Hash, canonicalize};
use crate::json::read_strict;

macro_rules! vector {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!("../tests/data/rfc8785/input/", $name, ".json")).as_slice(),
            include_bytes!(concat!("../tests/data/rfc8785/output/", $name, ".json")).as_slice(),
        )
    };
}

#[test]
fn rfc_8785_test_vectors_are_reproduced_byte_for_byte() {
    let vectors = [
        vector!("arrays"),
        vector!("french"),
        vector!("structures"),
        vector!("unicode"),
        vector!("values"),
        vector!("weird"),
    ];
    for (name, input, output) in vectors {
        let value = read_strict(input).expect(name);
        assert_eq!(canonicalize(&value).expect(name).as_bytes(), output, "{name}");
        let again = read_strict(output).expect(name);
        assert_eq!(canonicalize(&again).expect(name).as_bytes(), output, "{name}");
    }
}

/// RFC 8785, appendix B: the bits of a double and how it is written.
const APPENDIX_B: [(u64, &str); 24] = [
    (0x0000000000000000, "0"),
    (0x8000000000000000, "0"),
    (0x0000000000000001, "5e-324"),
    (0x8000000000000001, "-5e-324"),
    (0x7fefffffffffffff, "1.7976931348623157e+308"),
    (0xffefffffffffffff, "-1.7976931348623157e+308"),
    (0x4340000000000000, "9007199254740992"),
    (0xc340000000000000, "-9007199254740992"),
    (0x4430000000000000, "295147905179352830000"),
    (0x44b52d02c7e14af5, "9.999999999999997e+22"),
    (0x44b52d02c7e14af6, "1e+23"),
    (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
    (0x444b1ae4d6e2ef4e, "999999999999999700000"),
    (0x444b1ae4d6e2ef4f, "999999999999999900000"),
    (0x444b1ae4d6e2ef50, "1e+21"),
    (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
    (0x3eb0c6f7a0b5ed8d, "0.000001"),
    (0x41b3de4355555553, "333333333.3333332"),
    (0x41b3de4355555554, "333333333.33333325"),
    (0x41b3de4355555555, "333333333.3333333"),
    (0x41b3de4355555556, "333333333.3333334"),
    (0x41b3de4355555557, "333333333.33333343"),
    (0xbecbf647612f3696, "-0.0000033333333333333333"),
    (0x43143ff3c1cb0959, "1424953923781206.2"),
];

#[test]
fn appendix_b_numbers_round_trip() {
    for (bits, expected) in APPENDIX_B {
        let double = f64::from_bits(bits);
        assert_eq!(canonicalize(&json!(double)).expect(expected), expected);
        let read = read_strict(expected.as_bytes()).expect(expected);
        assert_eq!(read.as_f64(), Some(double), "{expected}");
        assert_eq!(canonicalize(&read).expect(expected), expected);
    }
}

#[test]
fn not_a_number_and_infinity_have_no_json_value() {
    for bits in [0x7fffffffffffffff, 0x7ff0000000000000, 0xfff0000000000000] {
        assert_eq!(json!(f64::from_bits(bits)), Value::Null);
    }
}

#[test]
fn integers_keep_their_digits() {
    let exact =
        json!([0, -1, 9_007_199_254_740_991_i64, -9_007_199_254_740_992_i64, 1_000_000_000_000_000_000_u64]);
    let text = "[0,-1,9007199254740991,-9007199254740992,1000000000000000000]";
    assert_eq!(canonicalize(&exact).expect(text), text);
}

#[test]
fn integers_that_would_be_rounded_are_rejected_with_their_path() {
    let count = 9_007_199_254_740_993_u64;
    let cases = [
        (json!({"payload": {"count": count}}), "payload.count", "9007199254740993"),
        (json!([1, {"a b": [2, -9_007_199_254_740_993_i64]}]), "[1][\"a b\"][1]", "-9007199254740993"),
        (json!(u64::MAX), "", "18446744073709551615"),
        (json!(i64::MAX), "", "9223372036854775807"),
        // Exactly a double, but written as 9223372036854776000.
        (json!(1_u64 << 63), "", "9223372036854775808"),
        (json!(i64::MIN), "", "-9223372036854775808"),
    ];
    for (value, expected_path, expected_number) in cases {
        match canonicalize(&value) {
            Err(RoundedInteger { path, number }) => {
                assert_eq!((path.as_str(), number.as_str()), (expected_path, expected_number));
            }
            other => panic!("{value}: {other:?}"),
        }
    }
}

#[test]
fn rounding_error_contains_path_and_advice() {
    let message = |value: Value| canonicalize(&value).expect_err("an error").to_string();
    assert_eq!(
        message(json!({"payload": {"count": 9_007_199_254_740_993_u64}})),
        "integer 9007199254740993 at payload.count would be rounded by RFC 8785; send it as a string"
    );
    assert_eq!(
        message(json!(9_007_199_254_740_993_u64)),
        "integer 9007199254740993 would be rounded by RFC 8785; send it as a string"
    );
}

#[test]
fn keys_sort_by_utf16_code_units() {
    let value = json!({"\u{fffd}": 1, "\u{1f600}": 2, "\r": 3, "": 4, "b": 5, "B": 6});
    let text = "{\"\":4,\"\\r\":3,\"B\":6,\"b\":5,\"\u{1f600}\":2,\"\u{fffd}\":1}";
    assert_eq!(canonicalize(&value).expect(text), text);
}

const EMPTY_HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ABC_HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn hashes_match_the_published_examples() {
    assert_eq!(Sha256Hash::of(b"").to_string(), EMPTY_HASH);
    assert_eq!(Sha256Hash::of(b"abc").to_string(), ABC_HASH);
    assert_eq!(format!("{:?}", Sha256Hash::of(b"abc")), ABC_HASH);
    assert_eq!(Sha256Hash::of(b"abc").as_bytes()[..4], [0xba, 0x78, 0x16, 0xbf]);
}

#[test]
fn hashes_in_any_other_form_are_rejected() {
    assert_eq!(ABC_HASH.parse(), Ok(Sha256Hash::of(b"abc")));
    let longer = format!("{ABC_HASH}00");
    let not_ascii = "é".repeat(32);
    let refused =
        ["", &ABC_HASH[1..], &longer, &ABC_HASH.to_uppercase(), &ABC_HASH.replace('b', "g"), &not_ascii];
    for text in refused {
        assert_eq!(text.parse::<Sha256Hash>(), Err(HashError), "{text}");
    }
}

#[test]
fn hashes_are_serialized_as_strings() {
    let hash = Sha256Hash::of(b"abc");
    assert_eq!(serde_json::to_value(hash).expect("a value"), json!(ABC_HASH));
    assert_eq!(serde_json::from_value::<Sha256Hash>(json!(ABC_HASH)).expect("a hash"), hash);
    let error = serde_json::from_value::<Sha256Hash>(json!("abc")).expect_err("a refusal");
    assert_eq!(error.to_string(), "hash must be 64 lowercase hexadecimal digits");

    let schema = schema_for!(Sha256Hash);
    assert_eq!(schema.get("type"), Some(&json!("string")));
    assert_eq!(schema.get("pattern"), Some(&json!("^[0-9a-f]{64}$")));
}

#[test]
fn canonical_has_text_hash_and_size() {
    let canonical = Canonical::of(&json!({"b": 1.0, "a": "é"})).expect("a canonical");
    assert_eq!(canonical.text(), "{\"a\":\"é\",\"b\":1}");
    assert_eq!(canonical.size_bytes(), 16);
    assert_eq!(canonical.hash(), Sha256Hash::of("{\"a\":\"é\",\"b\":1}".as_bytes()));
    assert_eq!(canonical.clone().into_text(), "{\"a\":\"é\",\"b\":1}");
    assert!(Canonical::of(&json!(u64::MAX)).is_err());
}

#[test]
fn debug_output_does_not_contain_the_text() {
    let shown = format!("{:?}", Canonical::of(&json!("do not log me")).expect("a canonical"));
    assert!(!shown.contains("do not log me"), "{shown}");
    assert!(shown.contains("size_bytes: 15"), "{shown}");
}

fn finite() -> impl Strategy<Value = f64> {
    // Two of the three strategies cover magnitudes around and above 2^53 that RFC 8785 writes without an exponent.
    let any_finite = any::<f64>().prop_filter("JSON has finite numbers only", |double| double.is_finite());
    prop_oneof![any_finite, 9e15..2e21_f64, -2e21..-9e15_f64]
}

pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53)..=1_i64 << 53).prop_map(Value::from),
        finite().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..6).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn object_text(members: &[(String, Value)]) -> String {
    let member = |(key, value): &(String, Value)| format!("{}:{value}", json!(key));
    format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(" ,\n"))
}

type Members = Vec<(String, Value)>;

/// The members of an object in two orders.
fn two_orders() -> impl Strategy<Value = (Members, Members)> {
    btree_map(any::<String>(), any_value(), 0..8)
        .prop_map(|members: BTreeMap<String, Value>| Members::from_iter(members))
        .prop_flat_map(|members| (Just(members.clone()), Just(members).prop_shuffle()))
}

proptest! {
    #[test]
    fn canonical_text_is_its_own_canonical_form(value in any_value()) {
        let text = canonicalize(&value).expect("canonical text");
        let again = read_strict(text.as_bytes()).expect("canonical text is strict JSON");
        prop_assert_eq!(canonicalize(&again).expect("canonical again"), text);
    }

    #[test]
    fn text_equals_the_output_of_the_general_serializer(value in any_value()) {
        prop_assert_eq!(canonicalize(&value).unwrap(), serde_json_canonicalizer::to_string(&value).unwrap());
    }

    #[test]
    fn every_double_round_trips(double in finite()) {
        let text = canonicalize(&json!(double)).expect("canonical text");
        let read = read_strict(text.as_bytes()).expect("canonical text is strict JSON");
        prop_assert_eq!(read.as_f64(), Some(double), "{}", text);
    }

    #[test]
    fn member_order_and_whitespace_are_ignored((one, other) in two_orders()) {
        let canonical = |members: &Members| {
            let value = read_strict(object_text(members).as_bytes()).expect("strict JSON");
            Canonical::of(&value).expect("a canonical")
        };
        prop_assert_eq!(canonical(&one), canonical(&other));
    }

    #[test]
    fn integers_keep_their_digits_or_are_rejected(integer in any::<i64>(), shift in 0..64_u32) {
        let integer = integer >> shift;
        match canonicalize(&json!(integer)) {
            Ok(text) => prop_assert_eq!(text, integer.to_string()),
            Err(_) => prop_assert!(integer.unsigned_abs() > 1 << 53),
        }
    }

    #[test]
    fn hashes_round_trip(bytes in vec(any::<u8>(), 0..64)) {
        let hash = Sha256Hash::of(&bytes);
        prop_assert_eq!(hash.to_string().parse(), Ok(hash));
    }
}
