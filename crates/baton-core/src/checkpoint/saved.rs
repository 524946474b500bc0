//! A context on its way into the store.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::ids::workflow_name;
use super::runtime::{CONTEXT_SIZE, prepare_for_persistence};
use crate::canonical::{Canonical, CanonicalError, Sha256Hash};

/// A context as it will be stored: without its run-time keys, as canonical JSON, with the hash of that.
#[derive(Clone, PartialEq, Eq)]
pub struct SavedContext {
    canonical: Canonical,
    workflow_name: Option<String>,
    had_size: bool,
}

impl SavedContext {
    /// Makes one of a context.
    ///
    /// # Errors
    ///
    /// Fails when the context holds an integer that canonical JSON cannot carry without rounding.
    pub fn of(context: &Map<String, Value>) -> Result<Self, CanonicalError> {
        let stored = prepare_for_persistence(context).into_inner();
        let workflow_name = workflow_name(&stored, None).map(str::to_owned);
        let canonical = Canonical::of(&Value::Object(stored))?;
        Ok(Self { canonical, workflow_name, had_size: context.contains_key(CONTEXT_SIZE) })
    }

    /// Gives the canonical text.
    pub fn text(&self) -> &str {
        self.canonical.text()
    }

    /// Gives the hash of the text.
    pub const fn hash(&self) -> Sha256Hash {
        self.canonical.hash()
    }

    /// Gives what the workflow calls itself in this context.
    pub fn workflow_name(&self) -> Option<&str> {
        self.workflow_name.as_deref()
    }

    /// Tells whether the context carried its size, which is then put back when it is loaded.
    pub const fn had_size(&self) -> bool {
        self.had_size
    }
}

/// Shows hash and size only: a context stays out of logs.
impl fmt::Debug for SavedContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.canonical, f)
    }
}

impl<'de> Deserialize<'de> for SavedContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let context = Map::deserialize(deserializer)?;
        Self::of(&context).map_err(D::Error::custom)
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
    use serde_json::json;

    fn read(value: Value) -> Result<SavedContext, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn run_time_keys_are_left_out_and_remembered() {
        let saved = read(json!({ "b": 1, "a": [2], "_currentLoop": 3, "_contextSize": 4 })).unwrap();
        assert_eq!(saved.text(), r#"{"a":[2],"b":1}"#);
        assert!(saved.had_size());
        let plain = read(json!({ "a": [2], "b": 1 })).unwrap();
        assert_eq!(plain.hash(), saved.hash());
        assert!(!plain.had_size());
    }

    #[test]
    fn what_the_workflow_calls_itself_is_found() {
        assert_eq!(read(json!({ "workflowId": "auth" })).unwrap().workflow_name(), Some("auth"));
        assert_eq!(read(json!({})).unwrap().workflow_name(), None);
    }

    #[test]
    fn only_objects_that_survive_are_taken() {
        assert!(read(json!([1])).is_err());
        assert!(read(json!(null)).is_err());
        let problem = read(json!({ "a": { "b": [9_007_199_254_740_993_u64] } })).unwrap_err();
        assert!(problem.contains("at a.b[0]") && problem.contains("send it as a string"), "{problem}");
    }

    #[test]
    fn a_context_stays_out_of_logs() {
        assert!(!format!("{:?}", read(json!({ "goal": "quiet" })).unwrap()).contains("quiet"));
    }
}
