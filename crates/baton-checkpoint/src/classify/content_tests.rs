use serde_json::{Value, json};

use super::*;

fn recognised(value: &Value) -> Option<Heuristic> {
    Sample::of(JsonText::new(&value.to_string())).recognise().map(|(heuristic, _)| heuristic)
}

#[test]
fn parses_the_name_of_every_heuristic() {
    for heuristic in Heuristic::ALL.iter().copied() {
        assert_eq!(Heuristic::from_name(heuristic.name()), Some(heuristic));
    }
    assert_eq!(Heuristic::from_name("nonsense"), None);
}

#[test]
fn recognises_times_in_common_notations() {
    for time in [
        "2024-05-21T10:14:25.118Z",
        "2024-05-21 10:14:25",
        "2024-05-21",
        "21.05.2024 10:14",
        "2024/05/21 10:14:25",
        "Tue, 12 Mar 2024 09:20:11 +0100",
        "Mon Jan  2 15:04:05 2006",
        "2024-05-21T10:14:25+02:00",
        "00:04:12",
    ] {
        assert_eq!(recognised(&json!(time)), Some(Heuristic::Timestamp), "{time}");
    }
    assert_eq!(recognised(&json!(1_717_003_412)), Some(Heuristic::Timestamp));
    assert_eq!(recognised(&json!(1_717_003_412_000_u64)), Some(Heuristic::Timestamp));
    for other in
        [json!(42), json!(918_223_411), json!("2024"), json!("May"), json!("3 apples"), json!("1.2.3")]
    {
        assert_eq!(recognised(&other), None, "{other}");
    }
}

#[test]
fn distinguishes_identifiers_from_names() {
    for id in [
        "0190a6b2-7c1e-7cc0-8f6e-5ad9c3d1b2aa",
        "9e107d9d372bb6826bd81d3542a419d6",
        "sess_01J1ZK6T4V9Q8X7W6V5T4S3R2Q",
        "sha256:9b1c0d4f6c6f0c3f6f6b7a1d2b8c0aa6",
    ] {
        assert_eq!(recognised(&json!(id)), Some(Heuristic::Identifier), "{id}");
    }
    for name in
        ["storage-sqlite", "fix/webhook-signature", "internationalisation", "PLAT-4412", "gpt-4o-mini-2024"]
    {
        assert_eq!(recognised(&json!(name)), None, "{name}");
    }
}

#[test]
fn recognises_bulk_content() {
    let log = "12:00:01 INFO start\n12:00:02 WARN slow\n12:00:03 INFO end\n";
    assert_eq!(recognised(&json!(log)), Some(Heuristic::Log));
    assert_eq!(recognised(&json!(["[10:00:01] a", "[10:00:02] b", "[10:00:03] c"])), Some(Heuristic::Log));
    let trace = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nZeroDivisionError: x";
    assert_eq!(recognised(&json!(trace)), Some(Heuristic::StackTrace));
    assert_eq!(recognised(&json!("diff --git a/x b/x\n--- a/x\n+++ b/x\n")), Some(Heuristic::Diff));
    assert_eq!(recognised(&json!("./a.rs\n./b.rs\n./c/d.rs\n./e.rs")), Some(Heuristic::Listing));
    assert_eq!(recognised(&json!("QUJD0".repeat(60))), Some(Heuristic::Base64));
    let nested = json!({ "items": vec![json!({ "id": 1, "name": "x" }); 8] }).to_string();
    assert_eq!(recognised(&json!(nested)), Some(Heuristic::ToolOutput));
}

#[test]
fn array_of_paths_is_not_a_listing() {
    assert_eq!(recognised(&json!(["./a.rs", "./b.rs", "./c.rs", "./d.rs"])), None);
}

#[test]
fn recognises_kinds_of_prose() {
    for (text, heuristic) in [
        ("We decided to keep it because it works.", Heuristic::Decision),
        ("The format must not change.", Heuristic::Constraint),
        ("1. one\n2. two\n3. three", Heuristic::Steps),
        ("Requirements: fast and small", Heuristic::Heading),
        ("## Nächste Schritte\n\nalles", Heuristic::Heading),
        ("For example, two and two.", Heuristic::Example),
        ("It is cold, therefore slow; hence the probe fails.", Heuristic::Reasoning),
        ("Wir haben uns dafür entschieden.", Heuristic::Decision),
        ("通知はプッシュで行うことに決定した。", Heuristic::Decision),
        ("Нельзя отправлять данные наружу.", Heuristic::Constraint),
    ] {
        assert_eq!(recognised(&json!(text)), Some(heuristic), "{text}");
    }
    for text in ["The parser accepts commas.", "short", "The furniture is nice and the sofa is new."] {
        assert_eq!(recognised(&json!(text)), None, "{text}");
    }
}
