//! A document as a tree, with one member as canonical text if that is wanted.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::canonical_text::CanonicalSink;
use super::error::{JsonErrorKind, shorten};
use super::sink::{Scalar, Sink};

/// Builds a tree.
#[derive(Default)]
pub(super) struct TreeSink<'n> {
    canonical_member: Option<(&'n str, CanonicalSink)>,
}

impl<'n> TreeSink<'n> {
    /// Writes the member `name` of the document, if it is an object, as canonical text. It is null in the tree.
    pub(super) fn with_canonical_member(name: &'n str, capacity: usize) -> Self {
        Self { canonical_member: Some((name, CanonicalSink::with_capacity(capacity))) }
    }

    /// Returns the text of that member, if the document has it.
    pub(super) fn into_canonical_text(self) -> Option<String> {
        self.canonical_member.map(|(_, sink)| sink.into_text()).filter(|text| !text.is_empty())
    }
}

impl Sink for TreeSink<'_> {
    type Value = Value;
    type Object = Map<String, Value>;
    type Array = Vec<Value>;
    type MemberSink = CanonicalSink;

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<Value, JsonErrorKind> {
        Ok(match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(bool) => Value::Bool(bool),
            Scalar::Number(number) => Value::Number(number),
            Scalar::String(text) => Value::String(text.into_owned()),
        })
    }

    fn begin_array(&mut self) -> Vec<Value> {
        Vec::new()
    }

    fn push(&mut self, array: &mut Vec<Value>, element: Value) {
        array.push(element);
    }

    fn end_array(&mut self, array: Vec<Value>) -> Value {
        Value::Array(array)
    }

    fn begin_object(&mut self) -> Map<String, Value> {
        Map::new()
    }

    fn begin_member(
        &mut self,
        object: &mut Map<String, Value>,
        key: &str,
        _key_start: usize,
    ) -> Result<(), JsonErrorKind> {
        if object.contains_key(key) {
            return Err(JsonErrorKind::DuplicateKey(shorten(key)));
        }
        Ok(())
    }

    fn end_member(&mut self, object: &mut Map<String, Value>, key: Cow<'_, str>, value: Value) {
        object.insert(key.into_owned(), value);
    }

    fn end_object(&mut self, object: Map<String, Value>) -> Result<Value, (JsonErrorKind, usize)> {
        Ok(Value::Object(object))
    }

    fn member_sink(
        &mut self,
        object: &mut Map<String, Value>,
        depth: usize,
        key: &str,
    ) -> Option<&mut CanonicalSink> {
        let is_document = depth == 1;
        let (name, sink) = self.canonical_member.as_mut().filter(|(name, _)| is_document && *name == key)?;
        // The key is added, so that a second member of that name is a duplicate.
        object.insert((*name).to_owned(), Value::Null);
        Some(sink)
    }
}
