//! Reads YAML into a tree that keeps the order of the document. Every valid document is accepted: keys of any kind
//! become text.

use std::fmt;

use baton_core::Fault;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Options};

use crate::rules::Node;

/// Maximum nesting depth of collections.
const MAX_DEPTH: usize = 64;

/// Content of a YAML file.
#[derive(Debug)]
pub(crate) struct YamlFile {
    /// The first document that is not empty; null if all are empty.
    pub(crate) document: Node,
    /// Warnings about ignored content.
    pub(crate) warnings: Vec<String>,
}

/// Decodes UTF-8, or UTF-16 with a byte order mark. Removes the mark.
pub(crate) fn decode(field: &str, path: &str, bytes: Vec<u8>) -> Result<String, Fault> {
    let units = |from: fn([u8; 2]) -> u16| -> Vec<u16> {
        bytes[2..].chunks_exact(2).map(|pair| from([pair[0], pair[1]])).collect()
    };
    let text = match bytes.as_slice() {
        [0xff, 0xfe, ..] => String::from_utf16(&units(u16::from_le_bytes)).ok(),
        [0xfe, 0xff, ..] => String::from_utf16(&units(u16::from_be_bytes)).ok(),
        _ => String::from_utf8(bytes).ok(),
    };
    let text = text.ok_or_else(|| Fault::invalid(field, format!("{path} is not UTF-8 or UTF-16 text")))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Parses a file. Duplicate keys are invalid YAML but common, so the last one is used, with a warning.
pub(crate) fn read(text: &str) -> Result<YamlFile, Error> {
    let mut warnings = Vec::new();
    let documents = match documents(text, DuplicateKeyPolicy::Error) {
        Err(error) if is_duplicate(&error) => {
            let line = error.location().map_or(0, |at| at.line());
            warnings.push(format!("line {line}: duplicate key; the last value is used"));
            documents(text, DuplicateKeyPolicy::LastWins)?
        }
        result => result?,
    };
    if documents.len() > 1 {
        warnings.push(format!("the file contains {} documents; the first one is used", documents.len()));
    }
    let document = documents.into_iter().next().map_or(Node::Null, |document| document.0);
    Ok(YamlFile { document, warnings })
}

fn is_duplicate(error: &Error) -> bool {
    matches!(error.without_snippet(), Error::DuplicateMappingKey { .. })
}

fn documents(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Vec<YamlValue>, Error> {
    let options: Options = serde_saphyr::options! {
        // A task file that expands aliases thousands of times is not a task file.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH },
        duplicate_keys: duplicate_keys,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        ignore_binary_tag_for_string: true,
        // Only `true` and `false` are booleans; `y`, `no` or `on` is text.
        strict_booleans: true,
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

struct YamlValue(Node);

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor).map(Self)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Other(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Other(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Other(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Ok(Node::Other(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        Ok(Node::Other(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        // `Debug` writes `1.0`, `Display` would write `1`.
        Ok(Node::Other(format!("{value:?}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Node, E> {
        Ok(Node::Text(String::from_utf8_lossy(value).into_owned()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(YamlValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut members: Vec<(String, Node)> = Vec::new();
        while let Some((YamlValue(key), YamlValue(value))) = entries.next_entry()? {
            let key = key.to_string();
            match members.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = value,
                None => members.push((key, value)),
            }
        }
        Ok(Node::Map(members))
    }
}
