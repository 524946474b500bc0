//! Properties for any text: findings are spans; redaction is complete, idempotent and changes nothing else.

use proptest::prelude::*;
use serde_json::Value;

use super::tests::{fill, secrets_in_context, whole_secrets};
use super::*;

/// Parts of secrets, whole secrets, markers and other text, in any order.
pub(super) fn pieces() -> impl Strategy<Value = Vec<String>> {
    let mut known: Vec<String> = whole_secrets().into_iter().map(|(_, secret)| secret).collect();
    for (_, before, secret, after) in secrets_in_context() {
        known.extend([before.to_owned(), secret, after.to_owned()]);
    }
    for anchor in rules::ANCHORS {
        known.push(anchor.literal.to_owned());
    }
    known.extend(Rule::ALL.iter().map(|rule| format!("[redacted:{}]", rule.id())));
    known.extend([1, 8, 15, 16, 20, 39, 40].map(fill));
    known.extend(
        "-----|@|:|/|\\n|\\|\n| |_|.|=|%20|[|]|[None]|://|-----END|RSA PRIVATE KEY-----"
            .split('|')
            .map(String::from),
    );
    known.extend(
        "aws|access_key|Bearer |your|xxxxxxxxxxxxxxxxxxxx|YOUR_KEY_NAME_HERE|user:|password|$|é"
            .split('|')
            .map(String::from),
    );
    let noise = prop_oneof![4 => prop::sample::select(known), 1 => "\\PC{0,6}", 1 => "[ -~]{0,12}"];
    prop::collection::vec(noise, 0..14)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn findings_are_ordered_spans_of_text(pieces in pieces()) {
        let text = pieces.concat();
        let findings = scan(&text);
        let mut from = 0;
        for finding in &findings {
            prop_assert!(from <= finding.start && finding.start < finding.end);
            prop_assert!(text.get(finding.start..finding.end).is_some());
            from = finding.end;
        }
        prop_assert_eq!(contains_secret(&text), !findings.is_empty());
    }

    #[test]
    fn redacted_text_is_clean_and_otherwise_unchanged(pieces in pieces()) {
        let text = pieces.concat();
        let clean = redact(&text);
        prop_assert_eq!(scan(&clean), [], "{}", clean);
        prop_assert_eq!(redact(&clean), clean.as_ref());
        let clean_bytes = redact_bytes(text.as_bytes());
        prop_assert_eq!(clean_bytes.as_ref(), clean.as_bytes());
        let mut rest = clean.as_ref();
        let mut from = 0;
        for finding in scan(&text) {
            let marker = format!("[redacted:{}]", finding.rule.id());
            rest = rest.strip_prefix(&text[from..finding.start]).and_then(|rest| rest.strip_prefix(&marker)).unwrap();
            from = finding.end;
        }
        prop_assert_eq!(rest, &text[from..]);
    }

    #[test]
    fn planted_secrets_are_redacted(before in "\\PC{0,40}", index in 0..64_usize, after in "\\PC{0,40}") {
        let secrets = whole_secrets();
        let (_, secret) = &secrets[index % secrets.len()];
        let text = format!("{before} {secret} {after}");
        prop_assert!(contains_secret(&text));
        prop_assert!(!redact(&text).contains(secret.as_str()));
    }

    #[test]
    fn redacted_json_has_no_findings(names in prop::collection::vec(pieces(), 1..4), values in prop::collection::vec(pieces(), 1..4)) {
        let headers = ["Authorization", "x-api-key", "AWS_SECRET_ACCESS_KEY", "secret_key"].map(String::from);
        let names = names.iter().map(|name| name.concat()).chain(headers);
        let entries = names.zip(values.iter().cycle()).map(|(name, value)| (name, Value::String(value.concat())));
        let mut document = Value::Array(vec![Value::Object(entries.collect())]);
        redact_json(&mut document);
        prop_assert_eq!(scan_json(&document), []);
    }
}
