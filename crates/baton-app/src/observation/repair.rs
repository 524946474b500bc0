//! Repairs hook reports with fields of the wrong type: a field is converted or removed, so that the report is not lost.
//!
//! Fields that determine the session (agent, venture, repository, track) are not repaired: the report is rejected if
//! they are invalid.

use std::str::FromStr;

use baton_core::{ClientSessionId, HandoffId, Label, Sha256Hash, Timestamp};
use serde_json::{Map, Value};

/// Fields that are converted to text, regardless of their type.
const TEXTS: [&str; 12] = [
    "source",
    "tool_name",
    "error",
    "prompt",
    "trigger",
    "custom_instructions",
    "reason",
    "last_assistant_message",
    "compact_summary",
    "agent_id",
    "agent_type",
    "hook_event_name",
];
/// Fields that are removed if they are not text.
const PATHS: [&str; 3] = ["cwd", "root", "transcript_path"];
/// Fields that are removed if they are not valid labels.
const LABELS: [&str; 4] = ["client", "branch", "commit_sha", "host"];

pub(super) fn repair(report: &mut Value) {
    let Value::Object(fields) = report else { return };
    // Agents use this field for their own versions.
    fields.remove("schema_version");
    if fields.get("error") == Some(&Value::Bool(false)) {
        fields.remove("error");
    }
    // Names of the closing message in the protocols of other agents. The first field that is present is used.
    for name in ["prompt_response", "text"] {
        if let Some(closing) = fields.remove(name) {
            fields.entry("last_assistant_message").or_insert(closing);
        }
    }
    // Cursor names the fields of a sub-agent differently.
    for (name, usual) in [("summary", "last_assistant_message"), ("subagent_type", "agent_type")] {
        if fields.get("hook_event_name") == Some(&Value::from("subagentStop"))
            && let Some(value) = fields.remove(name)
        {
            fields.entry(usual).or_insert(value);
        }
    }
    for name in TEXTS {
        replace_with(fields, name, |value| (!is_empty_container(value)).then(|| text_of(value)));
    }
    for name in PATHS {
        replace_with(fields, name, |_| None);
    }
    replace_with(fields, "tool_use_id", |value| value.is_number().then(|| value.to_string()));
    keep_if(fields, "handoff_id", is_text_of::<HandoffId>);
    keep_if(fields, "reported_at", is_text_of::<Timestamp>);
    for name in LABELS {
        keep_if(fields, name, is_text_of::<Label>);
    }
    if let Some(hashes) = fields.get_mut("file_hashes") {
        match hashes {
            Value::Object(hashes) => hashes.retain(|_, hash| is_text_of::<Sha256Hash>(hash)),
            _ => drop(fields.remove("file_hashes")),
        }
    }
    keep_if(fields, "unmerged_branches", |branches| {
        branches.as_array().is_some_and(|branches| branches.iter().all(Value::is_string))
    });
    repair_session_id(fields);
}

/// Returns true if a value is the text of a type.
fn is_text_of<T: FromStr>(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<T>().is_ok())
}

/// Replaces a field that is not text, or removes it.
fn replace_with(
    fields: &mut Map<String, Value>,
    name: &str,
    replacement: impl FnOnce(&Value) -> Option<String>,
) {
    let Some(value) = fields.get_mut(name).filter(|value| !value.is_string() && !value.is_null()) else {
        return;
    };
    match replacement(value) {
        Some(text) => *value = text.into(),
        None => drop(fields.remove(name)),
    }
}

/// Removes a field that has a value which does not fit.
fn keep_if(fields: &mut Map<String, Value>, name: &str, fits: impl FnOnce(&Value) -> bool) {
    if fields.get(name).is_some_and(|value| !value.is_null() && !fits(value)) {
        fields.remove(name);
    }
}

/// Converts the client's chat id to a valid id. Equal ids stay equal.
fn repair_session_id(fields: &mut Map<String, Value>) {
    const NAME: &str = "session_id";
    let Some(value) = fields.get(NAME).filter(|value| !value.is_null()) else { return };
    let text = text_of(value);
    if text.parse::<ClientSessionId>().is_ok() {
        fields.insert(NAME.to_owned(), text.into());
    } else if text.trim().is_empty() {
        fields.remove(NAME);
    } else {
        fields.insert(NAME.to_owned(), format!("chat-{}", Sha256Hash::of(text.as_bytes())).into());
    }
}

fn is_empty_container(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repairs_or_removes_fields_of_the_wrong_type() {
        let mut report = json!({
            "event": "stop", "schema_version": 7, "tool_use_id": 12, "error": { "message": "no" }, "cwd": ["/"],
            "prompt": [{ "text": "a" }], "branch": "", "host": 3, "client": "codex", "root": null, "session_id": 17,
            "reported_at": "yesterday", "tool_response": { "error": 3 },
        });
        repair(&mut report);
        assert_eq!(
            report,
            json!({
                "event": "stop", "tool_use_id": "12", "error": "{\"message\":\"no\"}", "prompt": "[{\"text\":\"a\"}]",
                "client": "codex", "root": null, "session_id": "17", "tool_response": { "error": 3 },
            })
        );
        let mut fine = json!({ "error": false, "tool_use_id": {}, "session_id": "chat-1" });
        repair(&mut fine);
        assert_eq!(fine, json!({ "session_id": "chat-1" }));
    }

    #[test]
    fn equal_chat_ids_stay_equal() {
        let repaired = |id: Value| {
            let mut report = json!({ "session_id": id });
            repair(&mut report);
            report["session_id"].clone()
        };
        for odd in [json!("x".repeat(129)), json!("日本"), json!("a b"), json!({ "id": 1 })] {
            let once = repaired(odd.clone());
            assert!(once.as_str().unwrap().parse::<ClientSessionId>().is_ok(), "{once}");
            assert_eq!((repaired(odd.clone()), repaired(once.clone())), (once.clone(), once));
        }
        assert_ne!(repaired(json!("日本")), repaired(json!("日本語")));
        assert_eq!((repaired(json!("")), repaired(json!(" "))), (Value::Null, Value::Null));
    }
}
