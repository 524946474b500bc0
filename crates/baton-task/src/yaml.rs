//! Reads YAML into a JSON value. Every valid document is accepted: keys of any kind become text, and numbers that JSON
//! does not have become text.

use std::fmt;

use baton_core::Fault;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Options};

/// Maximum nesting depth of collections.
const MAX_DEPTH: usize = 64;

/// Content of a YAML file.
#[derive(Debug)]
pub(crate) struct YamlFile {
    /// The first document that is not empty; null if there is none.
    pub(crate) document: Value,
    /// Warnings about ignored content.
    pub(crate) warnings: Vec<String>,
}

/// Decodes UTF-8 or UTF-16, with or without a byte order mark.
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
        warnings.push(format!("the file holds {} documents; the first is used", documents.len()));
    }
    let document = documents.into_iter().next().map_or(Value::Null, |document| document.0);
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
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

/// A JSON value with keys converted to text.
struct YamlValue(Value);

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor).map(Self)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Number::from_i128(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Number::from_u128(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Value, E> {
        Ok(Value::String(String::from_utf8_lossy(value).into_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(YamlValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((YamlValue(key), YamlValue(value))) = entries.next_entry()? {
            let key = match key {
                Value::String(text) => text,
                other => other.to_string(),
            };
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}
