//! A context prepared for storage.

use std::borrow::Cow;
use std::fmt;

use baton_core::{
    Canonical, JsonError, JsonText, RoundedInteger, Sha256Hash, canonicalize, read_canonical_object,
    remove_member,
};
use baton_secrets::{redact_json, scan_json_text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::context_text::{CONTEXT_SIZE, ContextText};

/// Key of the position of a running loop, which is never stored.
const CURRENT_LOOP: &str = "_currentLoop";
/// Keys that name the workflow, in order of precedence.
const NAME_KEYS: [&str; 2] = ["workflowId", "workflow_id"];

/// A context as stored: canonical JSON without run-time keys, and its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct SavedContext {
    canonical: Canonical,
    workflow_name: Option<String>,
    had_size: bool,
}

impl SavedContext {
    /// Reads a context from JSON text. Returns `None` when the text is not an object.
    ///
    /// # Errors
    ///
    /// Fails for text that is not strict JSON, and for an integer that canonical JSON would round.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, JsonError> {
        Ok(read_canonical_object(bytes)?.map(Self::of_canonical))
    }

    /// Converts a context to canonical text.
    ///
    /// # Errors
    ///
    /// Fails for an integer that canonical JSON would round.
    pub fn of(context: Map<String, Value>) -> Result<Self, RoundedInteger> {
        canonicalize(&Value::Object(context)).map(Self::of_canonical)
    }

    /// Creates a context from canonical JSON.
    pub fn of_canonical(mut text: String) -> Self {
        remove_member(&mut text, CURRENT_LOOP);
        let had_size = remove_member(&mut text, CONTEXT_SIZE);
        text.shrink_to_fit();
        Self { workflow_name: workflow_name(&text), had_size, canonical: Canonical::of_text(text) }
    }

    /// Restores a context from its stored text.
    pub fn of_stored(text: String, had_size: bool) -> Self {
        Self { had_size, ..Self::of_canonical(text) }
    }

    /// Returns the canonical text.
    pub fn text(&self) -> &str {
        self.canonical.text()
    }

    /// Returns the context as navigable JSON text.
    pub fn json(&self) -> JsonText<'_> {
        JsonText::new(self.text())
    }

    pub const fn hash(&self) -> Sha256Hash {
        self.canonical.hash()
    }

    /// Returns the workflow name that the context contains.
    pub fn workflow_name(&self) -> Option<&str> {
        self.workflow_name.as_deref()
    }

    /// Returns true if the context had a size member, which is restored on load.
    pub const fn had_size(&self) -> bool {
        self.had_size
    }

    /// Returns the context with its secrets redacted; unchanged if it has none.
    ///
    /// # Errors
    ///
    /// Fails if the text is not JSON. A context is always JSON.
    pub fn redacted(&self) -> Result<Self, serde_json::Error> {
        if scan_json_text("context", self.text())?.is_empty() {
            return Ok(self.clone());
        }
        let mut context = serde_json::from_str(self.text())?;
        redact_json(&mut context);
        let text = canonicalize(&context).map_err(serde::de::Error::custom)?;
        Ok(Self { had_size: self.had_size, ..Self::of_canonical(text) })
    }

    /// Returns the context as text for saving it in another store, with its size member if it had one.
    pub fn to_sent_text(&self) -> Cow<'_, str> {
        if self.had_size { ContextText::with_size(self.text()).into() } else { self.text().into() }
    }
}

/// Returns the first name in a context that is not blank.
fn workflow_name(context: &str) -> Option<String> {
    let named = NAME_KEYS.iter().filter_map(|key| JsonText::new(context).member(key));
    named.map(|member| member.value.decode().into_owned()).find(|name| !name.trim().is_empty())
}

/// Shows only hash and size, because contexts must not appear in logs.
impl fmt::Debug for SavedContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.canonical, f)
    }
}

impl<'de> Deserialize<'de> for SavedContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for SavedContext {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SavedContext".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::any_context;
    use baton_core::read_strict;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(value: Value) -> Result<SavedContext, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn removes_run_time_keys_at_the_top_level_only() {
        let saved = read(json!({ "b": 1, "a": { "_currentLoop": 2 }, "_currentLoop": 3, "_contextSize": 4 }));
        let saved = saved.unwrap();
        assert_eq!(saved.text(), r#"{"a":{"_currentLoop":2},"b":1}"#);
        assert!(saved.had_size());
        let plain = read(json!({ "a": { "_currentLoop": 2 }, "b": 1 })).unwrap();
        assert_eq!(plain.hash(), saved.hash());
        assert!(!plain.had_size());
    }

    #[test]
    fn finds_the_name_of_the_workflow() {
        let name = |context: Value| read(context).unwrap().workflow_name().map(str::to_owned);
        assert_eq!(name(json!({ "workflowId": "auth", "workflow_id": "b" })).as_deref(), Some("auth"));
        assert_eq!(name(json!({ "workflowId": 7, "workflow_id": "b" })).as_deref(), Some("b"));
        assert_eq!(name(json!({ "workflowId": " " })), None);
        assert_eq!(name(json!({})), None);
    }

    #[test]
    fn rejects_non_objects_and_integers_that_would_be_rounded() {
        assert!(read(json!([1])).is_err());
        assert!(read(json!(null)).is_err());
        assert!(SavedContext::read(b"[1]").unwrap().is_none());
        let problem = read(json!({ "a": { "b": [9_007_199_254_740_993_u64] } })).unwrap_err();
        assert!(problem.contains("at a.b[0]") && problem.contains("send it as a string"), "{problem}");
        let problem = SavedContext::read(br#"{"a":{"b":[9007199254740993]}}"#).unwrap_err().to_string();
        assert!(problem.contains("in a.b[0]") && problem.contains("send it as a string"), "{problem}");
    }

    #[test]
    fn redacts_secrets_and_keeps_everything_else() {
        let secret = format!("AKIA{}", "A1B2C3D4E5F6G7H8");
        let context = json!({ "a": { "key": secret }, "n": 0.1, "_contextSize": 9 });
        let redacted = read(context).unwrap().redacted().unwrap();
        assert!(!redacted.text().contains(&secret) && redacted.had_size());
        assert!(redacted.text().contains("[redacted:") && redacted.text().ends_with(r#","n":0.1}"#));
        let plain = read(json!({ "password": "x", "n": 1 })).unwrap();
        assert_eq!(plain.redacted().unwrap(), plain, "only secrets that would be rejected are redacted");
    }

    #[test]
    fn debug_output_does_not_contain_the_context() {
        assert!(!format!("{:?}", read(json!({ "goal": "quiet" })).unwrap()).contains("quiet"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn reading_text_equals_reading_a_value(context in any_context()) {
            let tree = Value::Object(context);
            let pretty = serde_json::to_string_pretty(&tree).unwrap();
            let saved = SavedContext::read(pretty.as_bytes()).unwrap().unwrap();
            prop_assert_eq!(&saved, &read(tree).unwrap());
            prop_assert_eq!(canonicalize(&read_strict(saved.text().as_bytes()).unwrap()).unwrap(), saved.text());
        }

        #[test]
        fn saving_a_loaded_context_changes_nothing(context in any_context()) {
            let saved = read(Value::Object(context)).unwrap();
            let loaded = ContextText::with_size(saved.text());
            let again = SavedContext::read(loaded.as_bytes()).unwrap().unwrap();
            prop_assert!(again.had_size());
            prop_assert_eq!(again.text(), saved.text());
        }
    }
}
