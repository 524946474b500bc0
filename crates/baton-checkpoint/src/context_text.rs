//! A stored context, as text.

use std::borrow::Cow;

use baton_core::{JsonText, add_member};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Key of the size of the context, which is added when a context is loaded and never stored.
pub(super) const CONTEXT_SIZE: &str = "_contextSize";

/// A context as JSON text. It is passed as text, because a tree of it would take many times the memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContextText(Box<RawValue>);

impl ContextText {
    /// Reads a stored context.
    ///
    /// # Errors
    ///
    /// Fails if the text is not JSON. A stored context is always JSON.
    pub fn read(text: Vec<u8>) -> Result<Self, serde_json::Error> {
        let text = String::from_utf8(text).map_err(serde::de::Error::custom)?;
        RawValue::from_string(text).map(Self)
    }
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns the context as navigable JSON. The text must be compact; stored contexts always are.
    pub fn json(&self) -> JsonText<'_> {
        JsonText::new(self.as_str())
    }

    /// Returns the context with `_contextSize`, the size of its text in bytes.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn restore_size(self) -> Result<Self, serde_json::Error> {
        RawValue::from_string(Self::with_size(self.as_str())).map(Self)
    }

    pub(super) fn with_size(text: &str) -> String {
        add_member(text, CONTEXT_SIZE, &text.len().to_string())
    }
}

impl JsonSchema for ContextText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ContextText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn size_equals_the_size_of_the_stored_text() {
        let text = json!({ "a": "é\n" }).to_string();
        let restored = ContextText::read(text.clone().into_bytes()).unwrap().restore_size().unwrap();
        let size = restored.json().member("_contextSize").unwrap().value;
        assert_eq!(size.as_str(), text.len().to_string());
        assert_eq!(
            ContextText::read(b"{}".to_vec()).unwrap().restore_size().unwrap().as_str(),
            r#"{"_contextSize":2}"#
        );
    }

    #[test]
    fn rejects_text_that_is_not_json() {
        assert!(ContextText::read(b"{".to_vec()).is_err());
        assert!(ContextText::read(vec![0xff]).is_err());
    }
}
