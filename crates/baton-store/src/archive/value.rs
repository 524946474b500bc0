//! Values in archives: database-independent, with one JSON form each.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_core::Sha256Hash;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::archive::schema::{Field, Table};

/// Longer bytes are written before their record in parts, or to a separate file.
pub(crate) const MAX_INLINE_BYTES: usize = 64 * 1024;

/// A value of a record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// No value.
    Null,
    /// An integer; booleans are 1 and 0.
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    /// Bytes that were missing when the archive was written: the name of their blob.
    Missing(String),
}

/// Prints only sizes and hashes: values are payload, which must not be logged.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = |bytes: &[u8]| {
            let hash = Sha256Hash::of(bytes).to_string();
            format!("{} bytes, {}", bytes.len(), hash.get(..8).unwrap_or_default())
        };
        match self {
            Self::Null => f.write_str("Null"),
            Self::Int(number) => write!(f, "Int({number})"),
            Self::Text(text) => write!(f, "Text({})", summary(text.as_bytes())),
            Self::Bytes(bytes) => write!(f, "Bytes({})", summary(bytes)),
            Self::Missing(name) => write!(f, "Missing({name})"),
        }
    }
}

/// A value as written in a line; its bytes may be stored elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Inline(Value),
    Reference(Reference),
}

/// Size and hash of bytes that are stored elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reference {
    pub(crate) bytes: u64,
    pub(crate) sha256: Sha256Hash,
}

impl Reference {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, sha256: Sha256Hash::of(bytes) }
    }
}

/// A value that is an object in its line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tagged {
    Base64(String),
    Blob(Reference),
    Missing(String),
}

/// Encodes bytes as base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes base64.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| error.to_string())
}

/// A record that is written as one JSON object without null values. Long bytes are replaced with a reference.
pub(crate) struct RecordLine<'a> {
    pub(crate) table: &'a Table,
    pub(crate) record: &'a [Value],
    pub(crate) reference: Option<Reference>,
}

impl Serialize for RecordLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        for (Field { name, .. }, value) in self.table.fields.iter().zip(self.record) {
            match value {
                Value::Null => {}
                Value::Int(number) => fields.serialize_entry(name, number)?,
                Value::Text(text) => fields.serialize_entry(name, text)?,
                Value::Bytes(bytes) => {
                    let tagged = match self.reference {
                        Some(reference) if bytes.len() > MAX_INLINE_BYTES => Tagged::Blob(reference),
                        _ => Tagged::Base64(encode(bytes)),
                    };
                    fields.serialize_entry(name, &tagged)?;
                }
                Value::Missing(blob) => fields.serialize_entry(name, &Tagged::Missing(blob.clone()))?,
            }
        }
        fields.end()
    }
}

/// Returns the bytes of a record that are too long for its line.
pub(crate) fn long_bytes(record: &[Value]) -> Option<&[u8]> {
    record.iter().find_map(|value| match value {
        Value::Bytes(bytes) if bytes.len() > MAX_INLINE_BYTES => Some(bytes.as_slice()),
        _ => None,
    })
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, a string, null, or an object with base64, blob or missing")
            }

            fn visit_unit<E>(self) -> Result<Written, E> {
                Ok(Written::Inline(Value::Null))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Written, E> {
                Ok(Written::Inline(Value::Int(number)))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Written, E> {
                i64::try_from(number).map(|number| Written::Inline(Value::Int(number))).map_err(E::custom)
            }

            fn visit_str<E>(self, text: &str) -> Result<Written, E> {
                Ok(Written::Inline(Value::Text(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<Written, E> {
                Ok(Written::Inline(Value::Text(text)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Written, A::Error> {
                Ok(match Tagged::deserialize(MapAccessDeserializer::new(map))? {
                    Tagged::Base64(text) => {
                        Written::Inline(Value::Bytes(decode(&text).map_err(A::Error::custom)?))
                    }
                    Tagged::Blob(reference) => Written::Reference(reference),
                    Tagged::Missing(name) => Written::Inline(Value::Missing(name)),
                })
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}
