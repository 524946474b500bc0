use serde_json::json;

use super::*;

fn error(document: &Value) -> String {
    RulesFile::read(document).unwrap_err().to_string()
}

#[test]
fn reads_a_valid_file() {
    let file = RulesFile::read(&json!({
        "patterns": {
            "CRITICAL": [{ "type": "key_regex", "pattern": "^sla_", "priority": 600, "id": "sla", "why": "SLAs bind" }],
            "EPHEMERAL": [{ "type": "content_heuristic", "pattern": "log" }],
        },
        "budgets": { "CRITICAL": 25, "IMPORTANT": 25, "USEFUL": 25, "EPHEMERAL": 25 },
    }))
    .unwrap();
    assert_eq!(file.shares().percent(Layer::Critical), 25);
    let described: Vec<_> =
        file.rules.iter().map(|rule| (rule.id.as_str(), rule.layer, rule.priority)).collect();
    assert_eq!(
        described,
        [("sla", Layer::Critical, 600), ("patterns.EPHEMERAL[0]", Layer::Ephemeral, DEFAULT_PRIORITY)]
    );
    assert!(RulesFile::read(&json!({})).unwrap().rules.is_empty());
}

#[test]
fn errors_contain_the_path_in_the_file() {
    let rule = |rule: Value| json!({ "patterns": { "USEFUL": [rule] } });
    for (document, expected) in [
        (json!([]), "rules file: must be an object"),
        (json!({ "pattern": {} }), "rules file: unknown member \"pattern\"; use patterns, budgets"),
        (
            json!({ "patterns": { "useful": [] } }),
            "patterns.useful: no such layer; use CRITICAL, IMPORTANT, USEFUL",
        ),
        (json!({ "patterns": { "USEFUL": {} } }), "patterns.USEFUL: must be a list of rules"),
        (rule(json!({ "type": "key_regex" })), "patterns.USEFUL[0].pattern: is missing"),
        (rule(json!({ "type": "glob", "pattern": "x" })), "patterns.USEFUL[0].type: must be `key_regex` or"),
        (
            rule(json!({ "type": "key_regex", "pattern": "(" })),
            "patterns.USEFUL[0].pattern: not a regular expression",
        ),
        (
            rule(json!({ "type": "content_heuristic", "pattern": "logs" })),
            "no heuristic is called \"logs\"; use one of",
        ),
        (
            rule(json!({ "type": "key_regex", "pattern": "x", "priority": 1001 })),
            "must be a whole number from 0 to 1000",
        ),
        (
            rule(json!({ "type": "key_regex", "pattern": "x", "priority": "high" })),
            "USEFUL[0].priority: must be a whole",
        ),
        (
            rule(json!({ "type": "key_regex", "pattern": "x", "layer": "y" })),
            "patterns.USEFUL[0]: unknown member",
        ),
        (json!({ "budgets": { "CRITICAL": 30 } }), "budgets.IMPORTANT: is missing"),
        (
            json!({ "budgets": { "CRITICAL": 30, "IMPORTANT": 30, "USEFUL": 30, "EPHEMERAL": 30 } }),
            "budgets: must add up to 100",
        ),
    ] {
        let message = error(&document);
        assert!(message.contains(expected), "{message}\n{expected}");
    }
}

#[test]
fn rejects_regular_expressions_that_compile_too_large() {
    let document =
        json!({ "patterns": { "USEFUL": [{ "type": "key_regex", "pattern": r"(\w{100}){100}" }] } });
    assert!(error(&document).contains("size limit"), "{}", error(&document));
}
