use serde_json::json;

use super::*;

fn entries() -> Vec<JsonEntry> {
    let hook = json!({ "hooks": [{ "type": "command", "command": "/opt/baton hook stop --client codex" }] });
    vec![
        JsonEntry::Member(vec!["mcpServers", "baton"], json!({ "command": "/opt/baton", "args": ["mcp"] })),
        JsonEntry::Element(vec!["hooks", "Stop"], hook),
    ]
}

#[test]
fn keeps_comments_order_indentation_and_other_entries() {
    let text = "{\n\t// mine\n\t\"theme\": \"dark\", /* why not */\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [{ \"type\": \"command\", \"command\": \"notify\" }] }, // keep\n\t\t],\n\t},\n}\n";
    let added = add_entries(text, &entries()).unwrap();
    for kept in ["// mine", "/* why not */", "// keep", "\"command\": \"notify\"", "\t\"theme\": \"dark\""] {
        assert!(added.contains(kept), "{added}");
    }
    assert!(added.contains("\n\t\"mcpServers\": {"), "{added}");
    assert!(has_entries(&added, &entries()));
    assert_eq!(add_entries(&added, &entries()).unwrap(), added, "idempotent");
    let removed = remove_entries(&added, &entries()).unwrap();
    assert!(
        !removed.contains("baton") && removed.contains("// keep") && removed.contains("notify"),
        "{removed}"
    );
    assert!(!removed.contains("mcpServers"), "{removed}");
}

#[test]
fn replaces_an_entry_with_another_path() {
    let old = r#"{ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "/old/baton hook stop" }] }] } }"#;
    let added = add_entries(old, &entries()).unwrap();
    assert!(!added.contains("/old/baton") && added.contains("/opt/baton hook stop"), "{added}");
    assert_eq!(added.matches("baton hook").count(), 1, "{added}");
}

#[test]
fn keeps_crlf_and_byte_order_mark() {
    let text = "\u{feff}{\r\n  \"a\": 1\r\n}\r\n";
    let added = add_entries(text, &entries()).unwrap();
    assert!(added.starts_with("\u{feff}{\r\n"), "{added:?}");
    assert!(!added.replace("\r\n", "").contains('\n'), "{added:?}");
}

#[test]
fn an_empty_file_becomes_an_object() {
    for text in ["", " \n", "{}"] {
        let added = add_entries(text, &entries()).unwrap();
        let value: Value = serde_json::from_str(&added).unwrap();
        assert_eq!(value["mcpServers"]["baton"]["args"], json!(["mcp"]));
        assert!(is_blank(&remove_entries(&added, &entries()).unwrap()));
    }
}

#[test]
fn rejects_files_that_cannot_be_edited_safely() {
    for (text, problem) in [
        ("{ \"a\": }", "not valid JSON"),
        ("{ \"a\": 1 \"b\": 2 }", "not valid JSON"),
        ("[]", "does not contain a JSON object"),
        ("{ \"a\": 1, \"a\": 2 }", "`a` occurs twice"),
        ("{ \"hooks\": { \"Stop\": [], \"Stop\": [] } }", "`Stop` occurs twice"),
        ("{ \"hooks\": [] }", "`hooks` is not a JSON object"),
        ("{ \"hooks\": { \"Stop\": {} } }", "`Stop` is not a JSON array"),
    ] {
        let error = add_entries(text, &entries()).unwrap_err();
        assert!(error.contains(problem), "{text}: {error}");
    }
}
