use super::*;

fn read(document: Value) -> Result<HandoffDraft, Fault> {
    HandoffDraft::read(document.as_object().unwrap().clone(), "handoff")
}

#[test]
fn head_fields_are_separated_from_the_payload() {
    let draft = read(json!({
        "summary": "done 🎉", "status_label": "ready", "to_agent": "qa-1",
        "work_completed": ["a"], "blockers": [], "next_actions": ["b"], "extra": { "z": 1, "a": 2 },
    }))
    .unwrap();
    assert_eq!(draft.summary, "done 🎉");
    assert_eq!(draft.status_label.as_deref(), Some("ready"));
    assert_eq!(draft.to_agent.unwrap().as_str(), "qa-1");
    assert_eq!(
        draft.payload.text(),
        r#"{"blockers":[],"extra":{"a":2,"z":1},"next_actions":["b"],"work_completed":["a"]}"#
    );
}

#[test]
fn every_invalid_field_is_listed() {
    let fault = read(json!({ "summary": "", "blockers": "none", "next_actions": [1], "to_agent": "a b" }))
        .unwrap_err();
    assert_eq!(fault.code, ErrorCode::InvalidRequest);
    let details = fault.details.unwrap();
    let mut fields: Vec<_> =
        details["fields"].as_array().unwrap().iter().map(|field| field["field"].as_str().unwrap()).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["handoff.blockers", "handoff.next_actions[0]", "handoff.summary", "handoff.to_agent"]
    );
}

#[test]
fn missing_summary_is_reported() {
    let fault = read(json!({ "blockers": [] })).unwrap_err();
    assert_eq!(fault.message, "handoff.summary: is missing");
    assert_eq!(fault.hint.as_deref(), Some("add handoff.summary, then send the handoff again"));
}

#[test]
fn control_characters_except_line_breaks_are_rejected() {
    assert!(read(json!({ "summary": "one\ntwo\tthree\r\n" })).is_ok());
    assert!(read(json!({ "summary": "bell \u{7}" })).is_err());
    assert!(read(json!({ "summary": "x", "status_label": "a\nb" })).is_err());
}

#[test]
fn integer_that_would_be_rounded_is_rejected_with_its_path() {
    let fault = read(json!({ "summary": "x", "counts": { "big": 9_007_199_254_740_993_u64 } })).unwrap_err();
    assert_eq!(fault.code, ErrorCode::InvalidRequest);
    assert!(fault.message.contains("handoff.counts.big"), "{}", fault.message);
}

#[test]
fn size_limit_applies_to_the_canonical_payload() {
    let overhead = r#"{"note":""}"#.len();
    let fits = "x".repeat(MAX_PAYLOAD_BYTES - overhead);
    assert_eq!(
        read(json!({ "summary": "x", "note": fits })).unwrap().payload.size_bytes(),
        MAX_PAYLOAD_BYTES
    );
    let fault = read(json!({ "summary": "x", "note": format!("{fits}x") })).unwrap_err();
    assert_eq!(fault.code, ErrorCode::PayloadTooLarge);
    assert_eq!(fault.details.unwrap()["actual_bytes"], MAX_PAYLOAD_BYTES + 1);
}
