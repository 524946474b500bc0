//! Output of the strict parser: a tree, canonical text, or both.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::canonical_text::CanonicalSink;
use super::error::{JsonErrorKind, shorten};

/// A value without parts.
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
}

/// Receives the values of a document in the order of the text.
pub(super) trait Sink {
    type Value;
    type Object;
    type Array;

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<Self::Value, JsonErrorKind>;

    fn begin_array(&mut self) -> Self::Array;
    fn push(&mut self, array: &mut Self::Array, element: Self::Value);
    fn end_array(&mut self, array: Self::Array) -> Self::Value;

    fn begin_object(&mut self) -> Self::Object;
    /// Receives a key, whose text starts at `key_start`. Fails for a duplicate, unless `end_object` reports it.
    fn begin_member(
        &mut self,
        object: &mut Self::Object,
        key: &str,
        key_start: usize,
    ) -> Result<(), JsonErrorKind>;
    fn end_member(&mut self, object: &mut Self::Object, key: Cow<'_, str>, value: Self::Value);
    /// Ends an object. A failure comes with the start of the key that it is about.
    fn end_object(&mut self, object: Self::Object) -> Result<Self::Value, (JsonErrorKind, usize)>;

    /// Returns the sink for the value of a member that is wanted as canonical text.
    fn canonical_member(
        &mut self,
        _object: &mut Self::Object,
        _depth: usize,
        _key: &str,
    ) -> Option<&mut CanonicalSink> {
        None
    }
}

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

    fn canonical_member(
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
