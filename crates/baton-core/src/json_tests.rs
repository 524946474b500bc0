use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::JsonErrorKind::{
    ControlCharacter, DuplicateKey, Empty, IntegerWouldRound, InvalidUtf8, LoneSurrogate, NumberOutOfRange,
    Syntax, TooDeep, TrailingCharacters, Truncated,
};
use super::{JsonError, JsonErrorKind, MAX_DEPTH, plain_length, read_strict, read_strict_within};

fn refusal(document: impl AsRef<[u8]>) -> JsonError {
    let document = document.as_ref();
    match read_strict(document) {
        Ok(value) => panic!("{:?} was read as {value}", String::from_utf8_lossy(document)),
        Err(error) => error,
    }
}

fn nested_arrays(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// A document and the kind, path, line and column of its error.
type RejectedDocument<'a> = (&'a [u8], JsonErrorKind, &'a str, (usize, usize));

#[track_caller]
fn assert_refused<const N: usize>(cases: [RejectedDocument<'_>; N]) {
    for (document, kind, path, (line, column)) in cases {
        let expected = JsonError { kind, path: path.to_owned(), line, column };
        assert_eq!(refusal(document), expected, "{:?}", String::from_utf8_lossy(document));
    }
}

#[test]
fn an_empty_document_is_refused_where_it_ends() {
    assert_refused([(b"", Empty, "", (1, 1)), (b" ", Empty, "", (1, 2)), (b"\r\n\t\n  ", Empty, "", (3, 3))]);
}

#[test]
fn a_byte_order_mark_is_refused_by_name() {
    let error = refusal(b"\xEF\xBB\xBF{}");
    assert_eq!(error.to_string(), "expected a document without a byte order mark at line 1 column 1");
}

#[test]
fn syntax_errors_name_what_was_expected() {
    assert_refused([
        (b"@", Syntax("a value"), "", (1, 1)),
        (b"[,1]", Syntax("a value"), "[0]", (1, 2)),
        (b"[1,]", Syntax("a value"), "[1]", (1, 4)),
        (b"[1 2]", Syntax("',' or ']'"), "", (1, 4)),
        (b"[1}", Syntax("',' or ']'"), "", (1, 3)),
        (b"{]", Syntax("a quoted key or '}'"), "", (1, 2)),
        (b"{a:1}", Syntax("a quoted key or '}'"), "", (1, 2)),
        (b"{\"a\":1,}", Syntax("a quoted key"), "", (1, 8)),
        (b"{\"a\" 1}", Syntax("':'"), "", (1, 6)),
        (b"{\"a\":}", Syntax("a value"), "a", (1, 6)),
        (b"{\"a\":1 \"b\"", Syntax("',' or '}'"), "", (1, 8)),
        (b"tru3", Syntax("true"), "", (1, 4)),
        (b"fALSE", Syntax("false"), "", (1, 2)),
        (b"{\"n\":nul}", Syntax("null"), "n", (1, 9)),
        (b"01", Syntax("a number without leading zeros"), "", (1, 2)),
        (b"-01", Syntax("a number without leading zeros"), "", (1, 3)),
        (b"-x", Syntax("a digit"), "", (1, 2)),
        (b"1.e1", Syntax("a digit"), "", (1, 3)),
        (b"[1e+]", Syntax("a digit"), "[0]", (1, 5)),
        (b"\"\\x\"", Syntax("an escape character"), "", (1, 3)),
        (b"\"\\u12g4\"", Syntax("four hexadecimal digits"), "", (1, 6)),
        (b"\"\\u+123\"", Syntax("four hexadecimal digits"), "", (1, 4)),
        (b"\xFF", Syntax("a value"), "", (1, 1)),
        (b"\x0C1", Syntax("a value"), "", (1, 1)),
    ]);
}

#[test]
fn a_cut_document_is_truncated_at_its_end() {
    let document = r#"{"kéy": [true, -1.5e+3, "a\n\ud83d\ude00é", null, {}], "b": false}"#.as_bytes();
    read_strict(document).expect("the whole document");
    for end in 1..document.len() {
        let error = refusal(&document[..end]);
        assert_eq!((error.kind, error.line, error.column), (Truncated, 1, end + 1), "cut at {end}");
    }
    assert_refused([
        (b"-", Truncated, "", (1, 2)),
        (b"{\"a\":[1,\n", Truncated, "a[1]", (2, 1)),
        (b"{\"a\":\"b", Truncated, "a", (1, 8)),
    ]);
}

#[test]
fn a_duplicate_key_is_refused_at_its_second_place() {
    let key = |key: &str| DuplicateKey(key.to_owned());
    assert_refused([
        (br#"{"a":1, "a":1}"#, key("a"), "", (1, 9)),
        (br#"{"a":1,"\u0061":2}"#, key("a"), "", (1, 8)),
        (b"[0,{\"x\":{\"a\":1,\n\"a\":2}}]", key("a"), "[1].x", (2, 1)),
        (br#"{"":1,"":2}"#, key(""), "", (1, 7)),
    ]);
    assert_eq!(refusal(br#"{"a":1, "a":1}"#).to_string(), "duplicate key \"a\" at line 1 column 9");
    assert_eq!(refusal(br#"[{"a":1, "a":1}]"#).to_string(), "duplicate key \"a\" in [0] at line 1 column 10");
    read_strict(br#"{"a":{"a":[{"a":1},{"a":1}]},"A":1}"#).expect("the same key in other objects");
}

#[test]
fn keys_that_differ_only_by_normalisation_are_not_duplicates() {
    let value = read_strict(br#"{"\u00e9":1,"e\u0301":2}"#).expect("two keys");
    assert_eq!(value.as_object().expect("an object").len(), 2);
}

#[test]
fn nesting_stops_at_the_limit() {
    read_strict(nested_arrays(MAX_DEPTH).as_bytes()).expect("arrays at the limit");
    let error = refusal(nested_arrays(MAX_DEPTH + 1));
    assert_eq!((error.kind, error.line, error.column), (TooDeep(MAX_DEPTH), 1, MAX_DEPTH + 1));
    assert_eq!(error.path, "[0]".repeat(MAX_DEPTH));

    let objects = |depth: usize| format!("{}1{}", "{\"k\":".repeat(depth), "}".repeat(depth));
    read_strict(objects(MAX_DEPTH).as_bytes()).expect("objects at the limit");
    assert_eq!(refusal(objects(MAX_DEPTH + 1)).kind, TooDeep(MAX_DEPTH));

    assert_eq!(refusal("[".repeat(1_000_000)).kind, TooDeep(MAX_DEPTH));
    let wide = format!("[{}]", vec![nested_arrays(MAX_DEPTH - 1); 100].join(","));
    read_strict(wide.as_bytes()).expect("depth does not add up across siblings");

    read_strict_within(nested_arrays(3).as_bytes(), 3).expect("arrays at a limit of one's own");
    let error = read_strict_within(nested_arrays(4).as_bytes(), 3).expect_err("arrays beyond it");
    assert_eq!((error.kind, error.column), (TooDeep(3), 4));
}

#[test]
fn text_after_the_document_is_refused() {
    assert_refused([
        (b"{} {}", TrailingCharacters, "", (1, 4)),
        (b"1\n]", TrailingCharacters, "", (2, 1)),
        (b"truex", TrailingCharacters, "", (1, 5)),
        (b"null\0", TrailingCharacters, "", (1, 5)),
        (b"\"a\"// comment", TrailingCharacters, "", (1, 4)),
    ]);
}

#[test]
fn invalid_utf8_is_refused_at_its_first_byte() {
    assert_refused([
        (b"\"ab\xFFcd\"", InvalidUtf8, "", (1, 4)),
        (b"\"\xC3\"", InvalidUtf8, "", (1, 2)),
        (b"\"\xC0\x80\"", InvalidUtf8, "", (1, 2)),
        (b"\"\xED\xA0\x80\"", InvalidUtf8, "", (1, 2)),
        (b"\"\xF5\x80\x80\x80", InvalidUtf8, "", (1, 2)),
        (b"[\"\\n\xE9\"]", InvalidUtf8, "[0]", (1, 5)),
        (b"{\"k\xFF\":1}", InvalidUtf8, "", (1, 4)),
        // Bad bytes come before the control character that ends the run.
        (b"\"\xFF\n\"", InvalidUtf8, "", (1, 2)),
    ]);
}

#[test]
fn half_a_surrogate_pair_is_refused_at_its_escape() {
    assert_refused([
        (br#""\ud800""#, LoneSurrogate, "", (1, 2)),
        (br#""ab\uDFFF""#, LoneSurrogate, "", (1, 4)),
        (br#""\ud800x""#, LoneSurrogate, "", (1, 2)),
        (br#""\ud800\n""#, LoneSurrogate, "", (1, 2)),
        (br#""\ud800\u0041""#, LoneSurrogate, "", (1, 2)),
        (br#""\ud800\ud800""#, LoneSurrogate, "", (1, 2)),
        (br#"{"a":["\udc00\ud800"]}"#, LoneSurrogate, "a[0]", (1, 8)),
    ]);
}

#[test]
fn raw_control_characters_in_strings_are_refused() {
    for control in 0..0x20_u8 {
        let document = [b'"', b'a', control, b'"'];
        assert_refused([(&document, ControlCharacter, "", (1, 3))]);
    }
    assert_refused([(b"{\"a\tb\":1}", ControlCharacter, "", (1, 4))]);
    assert_eq!(read_strict(b"\"\x7f\"").expect("delete is no control character here"), json!("\u{7f}"));
}

#[test]
fn numbers_beyond_a_double_are_refused() {
    let digits = "9".repeat(400);
    assert_refused([
        (b"1e309", NumberOutOfRange, "", (1, 1)),
        (b"[0, -1.8E+308]", NumberOutOfRange, "[1]", (1, 5)),
        (b"1e99999999999999999999", NumberOutOfRange, "", (1, 1)),
        (digits.as_bytes(), NumberOutOfRange, "", (1, 1)),
    ]);
}

#[test]
fn integers_that_would_round_are_refused() {
    let rounded = |digits: &str| IntegerWouldRound(digits.to_owned());
    assert_refused([
        (b"18446744073709551617", rounded("18446744073709551617"), "", (1, 1)),
        (b"-9223372036854775809", rounded("-9223372036854775809"), "", (1, 1)),
        (b"{\"n\": [123456789012345678901]}", rounded("123456789012345678901"), "n[0]", (1, 8)),
        (b"100000000000000000000000", rounded("100000000000000000000000"), "", (1, 1)),
    ]);
    let message =
        "integer 18446744073709551617 would be rounded; send it as a string in [0] at line 1 column 2";
    assert_eq!(refusal("[18446744073709551617]").to_string(), message);
}

#[test]
fn integers_are_kept_exact() {
    for literal in ["0", "1", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808"] {
        let value = read_strict(literal.as_bytes()).expect(literal);
        assert_eq!(value.as_i64().expect(literal).to_string(), literal);
    }
    assert_eq!(read_strict(b"18446744073709551615").expect("u64::MAX"), json!(u64::MAX));
}

#[test]
fn integers_beyond_64_bits_are_kept_if_a_double_represents_them() {
    let cases = [
        ("18446744073709551616", 2_f64.powi(64)),
        ("-18446744073709551616", -(2_f64.powi(64))),
        ("10000000000000000000000", 1e22),
        ("295147905179352825856", 2_f64.powi(68)),
        // How RFC 8785 writes 2^68.
        ("295147905179352830000", 2_f64.powi(68)),
    ];
    for (literal, double) in cases {
        let value = read_strict(literal.as_bytes()).expect(literal);
        assert_eq!(value, json!(double), "{literal}");
        assert!(value.is_f64(), "{literal}");
    }
}

#[test]
fn minus_zero_is_a_float() {
    for literal in ["-0", "-0.0", "-0e5", "-1e-400"] {
        let double = read_strict(literal.as_bytes()).expect(literal).as_f64().expect(literal);
        assert!(double == 0.0 && double.is_sign_negative(), "{literal}");
        let reference: Value = serde_json::from_str(literal).expect(literal);
        assert_eq!(reference.as_f64().map(f64::to_bits), Some(double.to_bits()), "{literal}");
    }
}

#[test]
fn accepted_documents_have_the_expected_value() {
    let cases = [
        ("null", json!(null)),
        (" \t\r\n true\n", json!(true)),
        ("false", json!(false)),
        ("[]", json!([])),
        ("[ ]", json!([])),
        ("{ }", json!({})),
        ("[1 , 2,\n3]", json!([1, 2, 3])),
        (r#"{ "a" : 1 , "b":[{}] }"#, json!({"a": 1, "b": [{}]})),
        (r#""""#, json!("")),
        (r#""\"\\\/\b\f\n\r\t""#, json!("\"\\/\u{8}\u{c}\n\r\t")),
        (r#""a\u00e9\u00C9b""#, json!("aéÉb")),
        (r#""\u0000""#, json!("\0")),
        (r#""\ud83d\ude00\uDBFF\uDFFF""#, json!("\u{1f600}\u{10ffff}")),
        (r#""\ud7ff\ue000\uffff""#, json!("\u{d7ff}\u{e000}\u{ffff}")),
        ("\"\u{2028}\u{feff}日本\"", json!("\u{2028}\u{feff}日本")),
        ("1.5", json!(1.5)),
        ("1E2", json!(100.0)),
        ("1e+2", json!(100.0)),
        ("125e-2", json!(1.25)),
        ("0.1", json!(0.1)),
        ("5e-324", json!(5e-324)),
        ("1.7976931348623157e308", json!(f64::MAX)),
        ("0e999999", json!(0.0)),
        ("9007199254740993.0", json!(9007199254740992.0)),
        (r#"{"__proto__":1,"":2}"#, json!({"__proto__": 1, "": 2})),
    ];
    for (document, expected) in cases {
        assert_eq!(read_strict(document.as_bytes()), Ok(expected), "{document}");
    }
}

#[test]
fn paths_name_members_and_elements() {
    assert_refused([
        (br#"{"handoff":{"items":[0,1,2,{"name":?}]}}"#, Syntax("a value"), "handoff.items[3].name", (1, 36)),
        (b"[[[?]]]", Syntax("a value"), "[0][0][0]", (1, 4)),
        (br#"{"a.b":{"":{"c d":[?]}}}"#, Syntax("a value"), r#"["a.b"][""]["c d"][0]"#, (1, 20)),
        (br#"{"x\n":{"$ref-1_y":?}}"#, Syntax("a value"), r#"["x\n"].$ref-1_y"#, (1, 20)),
    ]);
    let message = "expected a value in handoff.items[0] at line 2 column 10";
    assert_eq!(refusal("{\"handoff\":{\n\"items\":[?]}}").to_string(), message);
}

#[test]
fn errors_repeat_little_of_the_document() {
    let key = "é".repeat(10_000);
    let error = refusal(format!(r#"{{"{key}":1,"{key}":2}}"#));
    assert_eq!(error.kind, DuplicateKey(format!("{}…", "é".repeat(64))));

    let error = refusal(format!(r#"{{"{key}":{{"{key}":?}}}}"#));
    assert_eq!(error.path.chars().count(), 2 * 65 + 1);

    let error = refusal(format!("1{}1", "0".repeat(200)));
    assert_eq!(error.kind, IntegerWouldRound(format!("1{}…", "0".repeat(63))));
}

#[test]
fn a_duplicate_is_found_among_many_keys() {
    let members: Vec<String> = (0..100_000).map(|number| format!("\"key{number}\":{number}")).collect();
    let members = members.join(",");
    let value = read_strict(format!("{{{members}}}").as_bytes()).expect("distinct keys");
    assert_eq!(value.as_object().map(serde_json::Map::len), Some(100_000));
    let error = refusal(format!("{{{members},\"key0\":0}}"));
    assert_eq!((error.kind, error.column), (DuplicateKey("key0".to_owned()), members.len() + 3));
}

#[test]
fn plain_runs_end_at_the_first_special_byte_wherever_it_is() {
    for length in 0..40 {
        for filler in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
            let mut run = vec![filler; length];
            assert_eq!(plain_length(&run), length);
            for stop in [b'"', b'\\', 0, 0x1f] {
                for position in 0..length {
                    run[position] = stop;
                    assert_eq!(plain_length(&run), position, "{stop:#x} after {filler:#x}");
                    run[position] = filler;
                }
            }
        }
    }
}

/// Compares with `serde_json`, which must agree except for the documented differences.
fn assert_agrees_with_serde_json(document: &[u8]) {
    let reference = serde_json::from_slice::<Value>(document);
    let shown = String::from_utf8_lossy(document);
    match (read_strict(document), reference) {
        (Ok(value), Ok(reference)) => assert_eq!(value, reference, "{shown:?}"),
        (Ok(value), Err(error)) => panic!("{shown:?} was read as {value}; serde_json says {error}"),
        (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => {
            let is_documented = matches!(error.kind, DuplicateKey(_) | TooDeep(_) | IntegerWouldRound(_));
            assert!(is_documented, "{shown:?} was refused: {error}");
        }
    }
}

#[test]
fn every_short_document_parses_like_serde_json() {
    let alphabet = b"{}[]\",:\\u-+01.eE n\xC3\xA9";
    let mut documents = vec![Vec::new()];
    for _ in 0..4 {
        let extend = |document: &Vec<u8>| {
            let longer = |byte: &u8| [document.as_slice(), &[*byte]].concat();
            alphabet.iter().map(longer).collect::<Vec<_>>()
        };
        documents = documents.iter().flat_map(extend).collect();
        documents.iter().for_each(|document| assert_agrees_with_serde_json(document));
    }
}

#[test]
fn every_escape_unit_parses_like_serde_json() {
    for unit in 0..=0xFFFF_u32 {
        assert_agrees_with_serde_json(format!("\"\\u{unit:04x}\"").as_bytes());
        assert_agrees_with_serde_json(format!("\"\\ud83d\\u{unit:04X}\"").as_bytes());
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let finite = any::<f64>().prop_filter("JSON has finite numbers only", |double| double.is_finite());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        finite.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..6).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

#[derive(Debug, Clone)]
enum Mutation {
    Truncate(Index),
    Delete(Index),
    Replace(Index, u8),
    Insert(Index, u8),
    Repeat(Index, Index),
}

impl Mutation {
    fn apply(&self, document: &mut Vec<u8>) {
        if document.is_empty() {
            return;
        }
        let length = document.len();
        match self {
            Self::Truncate(end) => document.truncate(end.index(length)),
            Self::Delete(place) => drop(document.remove(place.index(length))),
            Self::Replace(place, byte) => document[place.index(length)] = *byte,
            Self::Insert(place, byte) => document.insert(place.index(length), *byte),
            Self::Repeat(one, other) => {
                let (one, other) = (one.index(length), other.index(length));
                document.extend_from_within(one.min(other)..one.max(other));
            }
        }
    }
}

fn any_mutation() -> impl Strategy<Value = Mutation> {
    let grammar_bytes = prop::sample::select(b"{}[]\",:\\/u-+0159.eE tfn\n\0\x7f\x80\xC3\xED\xFF".to_vec());
    let byte = prop_oneof![3 => grammar_bytes, 1 => any::<u8>()].boxed();
    prop_oneof![
        any::<Index>().prop_map(Mutation::Truncate),
        any::<Index>().prop_map(Mutation::Delete),
        (any::<Index>(), byte.clone()).prop_map(|(place, byte)| Mutation::Replace(place, byte)),
        (any::<Index>(), byte).prop_map(|(place, byte)| Mutation::Insert(place, byte)),
        (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Mutation::Repeat(one, other)),
    ]
}

proptest! {
    #[test]
    fn documents_written_by_serde_json_read_back_equal(value in any_value()) {
        let compact = serde_json::to_vec(&value).expect("compact text");
        prop_assert_eq!(read_strict(&compact), Ok(value.clone()));
        let pretty = serde_json::to_vec_pretty(&value).expect("pretty text");
        prop_assert_eq!(read_strict(&pretty), Ok(value));
    }

    #[test]
    fn damaged_documents_parse_like_serde_json(
        value in any_value(),
        mutations in vec(any_mutation(), 1..4),
    ) {
        let mut document = serde_json::to_vec(&value).expect("compact text");
        for mutation in &mutations {
            mutation.apply(&mut document);
        }
        assert_agrees_with_serde_json(&document);
    }

    #[test]
    fn any_bytes_parse_like_serde_json(document in vec(any::<u8>(), 0..32)) {
        assert_agrees_with_serde_json(&document);
    }

    #[test]
    fn numbers_are_read_as_serde_json_does(
        literal in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?",
    ) {
        assert_agrees_with_serde_json(literal.as_bytes());
    }

    #[test]
    fn a_failure_lies_inside_the_document(document in "[\\[\\]{}\",:a1\\n ]{0,24}") {
        if let Err(error) = read_strict(document.as_bytes()) {
            let lines: Vec<&str> = document.split('\n').collect();
            prop_assert!(error.line <= lines.len());
            prop_assert!((1..=lines[error.line - 1].len() + 1).contains(&error.column));
        }
    }
}
