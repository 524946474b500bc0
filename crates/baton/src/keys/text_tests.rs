use base64::engine::general_purpose;
use proptest::prelude::*;

use super::*;

const HEX: &str = "00112233445566778899aabbccddeefff0e1d2c3b4a5968778695a4b3c2d1efb";
const OTHER: &str = "ff112233445566778899aabbccddeefff0e1d2c3b4a5968778695a4b3c2d1e0f";

fn ids(text: &str) -> Vec<String> {
    parse(text.as_bytes()).unwrap().ids().map(|id| id.to_string()).collect()
}

fn problem(text: &str) -> LineProblem {
    match parse(text.as_bytes()).unwrap_err() {
        KeyTextError::Line { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn all_encodings_parse_to_the_same_key() {
    let expected = ids(HEX);
    let bytes = *parse(HEX.as_bytes()).unwrap().keys().next().unwrap().expose();
    let spellings = [
        HEX.to_uppercase(),
        format!("{HEX}\n"),
        format!("  {HEX}\t\r\n\r\n"),
        general_purpose::STANDARD.encode(bytes),
        general_purpose::STANDARD_NO_PAD.encode(bytes),
        general_purpose::URL_SAFE.encode(bytes),
        general_purpose::URL_SAFE_NO_PAD.encode(bytes),
    ];
    for spelling in spellings {
        assert_eq!(ids(&spelling), expected, "{spelling:?}");
    }
    assert_eq!(parse(&bytes).unwrap().current_id().to_string(), expected[0]);
}

#[test]
fn comments_and_empty_lines_are_skipped_and_order_is_kept() {
    let list = format!("# since May\n\n{OTHER} # laptop\n   # before\n{HEX}");
    assert_eq!(ids(&list), [ids(OTHER), ids(HEX)].concat());
}

#[test]
fn errors_name_the_invalid_line_and_omit_its_text() {
    let list = format!("# first\n{HEX}\n\nhunter2\n");
    let error = parse(list.as_bytes()).unwrap_err();
    assert_eq!(error, KeyTextError::Line { line: 4, problem: LineProblem::Length { characters: 7 } });
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert!(error.hint().contains("openssl rand -hex 32"), "{}", error.hint());
}

#[test]
fn reports_the_problem_of_an_invalid_line() {
    assert_eq!(problem(&HEX.replace('0', "g")), LineProblem::NotHex);
    assert_eq!(problem(&HEX[..63]), LineProblem::Length { characters: 63 });
    assert_eq!(problem(&format!("{HEX},{OTHER}")), LineProblem::Length { characters: 129 });
    assert_eq!(problem(&format!("{}!", &HEX[..42])), LineProblem::NotBase64);
    assert_eq!(problem(&HEX[..44]), LineProblem::NotBase64, "33 bytes");
    assert_eq!(problem(&"é".repeat(64)), LineProblem::NotHex);
    assert_eq!(problem(&"é".repeat(43)), LineProblem::NotBase64);
    assert_eq!(problem(&"0".repeat(64)), LineProblem::Placeholder);
    // Characters of both base64 alphabets.
    assert_eq!(problem(&format!("+/-_{}", "A".repeat(39))), LineProblem::NotBase64);
    // Trailing bits that are not zero.
    assert_eq!(problem(&format!("{}B", "A".repeat(42))), LineProblem::NotBase64);
}

#[test]
fn rejects_input_that_is_not_a_list_of_keys() {
    for empty in ["", "\n", "# only a comment\n"] {
        assert_eq!(parse(empty.as_bytes()).unwrap_err(), KeyTextError::Empty, "{empty:?}");
    }
    assert_eq!(parse(&HEX.as_bytes()[..32]).unwrap_err(), KeyTextError::Typed);
    assert_eq!(parse(&[0xff; 31]).unwrap_err(), KeyTextError::NotText { length_bytes: 31 });
    assert_eq!(parse(&[0xff; 33]).unwrap_err(), KeyTextError::NotText { length_bytes: 33 });
    let placeholder = KeyTextError::Line { line: 1, problem: LineProblem::Placeholder };
    assert_eq!(parse(&[0; 32]).unwrap_err(), placeholder);
    let twice = format!("{HEX}\n\n{}\n", HEX.to_uppercase());
    assert_eq!(parse(twice.as_bytes()).unwrap_err(), KeyTextError::Repeated { line: 3, first: 1 });
}

proptest! {
    #[test]
    fn written_keys_parse_back(keys in proptest::collection::hash_set(any::<[u8; 32]>(), 1..6)) {
        let ring = KeyRing::new(keys.iter().map(SecretKey::new).collect()).unwrap();
        let text = write(&ring);
        prop_assert_eq!(text.capacity(), text.len());
        prop_assert_eq!(parse(text.as_bytes()), Ok(ring));
    }

    #[test]
    fn any_input_parses_or_fails_with_an_ascii_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = parse(&bytes) {
            prop_assert!(error.to_string().is_ascii());
        }
    }
}
