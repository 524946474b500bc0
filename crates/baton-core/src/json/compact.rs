//! Values inside compact JSON text, found by scanning instead of building a tree.
//!
//! A tree of a context takes many times the memory of its text. The stored text is canonical, so the size of a value is
//! the length of its text and two values are equal if their texts are.

use std::borrow::Cow;

use super::tokens::{string_length, token_length};
use super::{MAX_DEPTH, Reader};

/// A value in compact JSON text: valid JSON without whitespace between its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JsonText<'t>(&'t str);

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A member of an object.
#[derive(Debug, Clone, Copy)]
pub struct JsonMember<'t> {
    /// Position of the key in the text of the object.
    pub start: usize,
    /// The key with its quotes and escapes.
    pub key: JsonText<'t>,
    pub value: JsonText<'t>,
}

impl<'t> JsonText<'t> {
    /// Wraps a text that is known to be compact JSON.
    pub const fn new(text: &'t str) -> Self {
        Self(text)
    }
    pub const fn as_str(self) -> &'t str {
        self.0
    }

    /// Returns the length of the text in bytes.
    pub const fn size(self) -> usize {
        self.0.len()
    }

    /// Returns the type, which the first character determines.
    pub fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'"') => JsonKind::String,
            Some(b'[') => JsonKind::Array,
            Some(b'{') => JsonKind::Object,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }

    /// Returns a string without its quotes and escapes; empty for a value that is not a string.
    pub fn decode(self) -> Cow<'t, str> {
        let (text, bytes) = (self.0, self.0.as_bytes());
        let mut reader = Reader { bytes, text, position: 0, max_depth: MAX_DEPTH };
        if self.kind() == JsonKind::String {
            reader.read_string().unwrap_or_default()
        } else {
            Cow::Borrowed("")
        }
    }

    /// Lists the items of an array; nothing for another value.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let mut start = if self.kind() == JsonKind::Array { 1 } else { self.0.len() };
        std::iter::from_fn(move || {
            let item = value_at(self.0, start)?;
            start += item.len() + ",".len();
            Some(Self(item))
        })
    }

    /// Lists the members of an object; nothing for another value.
    pub fn members(self) -> impl Iterator<Item = JsonMember<'t>> {
        let mut start = if self.kind() == JsonKind::Object { 1 } else { self.0.len() };
        std::iter::from_fn(move || {
            let key = value_at(self.0, start)?;
            let value = value_at(self.0, start + key.len() + ":".len())?;
            let member = JsonMember { start, key: Self(key), value: Self(value) };
            start = member.end() + ",".len();
            Some(member)
        })
    }

    /// Lists the keys of an object.
    pub fn keys(self) -> impl Iterator<Item = Cow<'t, str>> {
        self.members().map(|member| member.key.decode())
    }

    /// Finds a member of an object.
    pub fn member(self, key: &str) -> Option<JsonMember<'t>> {
        self.members().find(|member| member.key.decode() == key)
    }
}

impl JsonMember<'_> {
    /// Position of the value in the text of the object.
    pub const fn value_start(&self) -> usize {
        self.start + self.key.size() + ":".len()
    }

    /// Position after the value in the text of the object.
    pub const fn end(&self) -> usize {
        self.value_start() + self.value.size()
    }
}

/// Returns the text of the value that starts at a position; none at the end of an array or object.
fn value_at(text: &str, start: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let (mut end, mut depth) = (start, 0_usize);
    loop {
        match bytes.get(end)? {
            b'"' => end += string_length(&bytes[end..])?,
            b'{' | b'[' => (end, depth) = (end + 1, depth + 1),
            b'}' | b']' => (end, depth) = (end + 1, depth.checked_sub(1)?),
            // Inside a container only strings and brackets matter, so other tokens need no end.
            _ if depth > 0 => end += 1,
            _ => end += token_length(&bytes[end..])?,
        }
        if depth == 0 {
            return text.get(start..end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::tests::any_value;
    use crate::canonicalize;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// Builds a tree from what the scanner finds.
    fn tree(json: JsonText<'_>) -> Value {
        match json.kind() {
            JsonKind::Null | JsonKind::Bool | JsonKind::Number => {
                serde_json::from_str(json.as_str()).unwrap()
            }
            JsonKind::String => json.decode().into(),
            JsonKind::Array => json.items().map(tree).collect(),
            JsonKind::Object => {
                let member = |member: JsonMember<'_>| (member.key.decode().into_owned(), tree(member.value));
                Value::Object(json.members().map(member).collect())
            }
        }
    }

    #[test]
    fn finds_members_and_their_positions() {
        let text = r#"{"a":{"b":1},"b":"x,}\"]","c\n":[]}"#;
        let found: Vec<_> = JsonText::new(text).members().collect();
        let keys: Vec<_> = JsonText::new(text).keys().collect();
        assert_eq!(keys, ["a", "b", "c\n"]);
        for member in &found {
            assert!(text[member.start..].starts_with(member.key.as_str()));
            assert_eq!(&text[member.value_start()..member.end()], member.value.as_str());
        }
        assert_eq!(JsonText::new(text).member("b").unwrap().value.decode(), "x,}\"]");
        assert!(JsonText::new(text).member("d").is_none());
    }

    #[test]
    fn a_value_without_parts_has_no_items_and_no_members() {
        for text in ["null", "true", "-1.5", r#""[1]""#, "[]", "{}"] {
            assert_eq!(JsonText::new(text).items().count(), 0, "{text}");
            assert_eq!(JsonText::new(text).members().count(), 0, "{text}");
        }
    }

    #[test]
    fn damaged_text_ends_early() {
        for text in ["", "[", "{", r#"{"a"#, r#"{"a":"#, r#"{"a":["#, r#"["\"#, "{\"a\":\"\u{e9}"] {
            assert_eq!(
                JsonText::new(text).members().count() + JsonText::new(text).items().count(),
                0,
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn scans_what_a_parser_reads(value in any_value()) {
            let value = json!({ "value": value, "list": [value] });
            let text = canonicalize(&value).unwrap();
            prop_assert_eq!(tree(JsonText::new(&text)), serde_json::from_str::<Value>(&text).unwrap());
        }
    }
}
