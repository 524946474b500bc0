//! What the strict parser writes to.

use std::borrow::Cow;

use serde_json::Number;

use super::error::JsonErrorKind;

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
    type MemberSink: Sink;

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

    /// Returns the sink for the value of a member that is written elsewhere.
    fn member_sink(
        &mut self,
        _object: &mut Self::Object,
        _depth: usize,
        _key: &str,
    ) -> Option<&mut Self::MemberSink> {
        None
    }
}
