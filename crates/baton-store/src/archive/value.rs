//! Values in archives: database-independent, with one JSON form each.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_core::Sha256Hash;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::archive::schema::Table;

/// Longer bytes are written before their record in parts, or to a separate file.
pub(crate) const MAX_INLINE_BYTES: usize = 64 * 1024;

/// A value of a record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// No value.
    Null,
    /// An integer; booleans are 1 and 0.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes.
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
    Here(Value),
    Elsewhere(Reference),
}

/// Size and hash of bytes that are stored elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
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

/// Encodes bytes as base64.
pub(crate) fn encode(bytes: &[u8], line: &mut Vec<u8>) {
    line.extend_from_slice(STANDARD.encode(bytes).as_bytes());
}

/// Decodes base64.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| error.to_string())
}

/// Writes a record as one JSON object without null values. Long bytes are replaced with a reference.
pub(crate) fn write_record(
    line: &mut Vec<u8>,
    table: &Table,
    record: &[Value],
    reference: Option<Reference>,
) -> serde_json::Result<()> {
    line.push(b'{');
    let mut is_first = true;
    for (field, value) in table.fields.iter().zip(record) {
        if *value == Value::Null {
            continue;
        }
        if !is_first {
            line.push(b',');
        }
        is_first = false;
        serde_json::to_writer(&mut *line, &field.name)?;
        line.push(b':');
        match value {
            Value::Null => line.extend_from_slice(b"null"),
            Value::Int(number) => serde_json::to_writer(&mut *line, number)?,
            Value::Text(text) => serde_json::to_writer(&mut *line, text)?,
            Value::Bytes(bytes) => match reference {
                Some(reference) if bytes.len() > MAX_INLINE_BYTES => {
                    line.extend_from_slice(b"{\"blob\":");
                    serde_json::to_writer(&mut *line, &reference)?;
                    line.push(b'}');
                }
                _ => {
                    line.extend_from_slice(b"{\"base64\":\"");
                    encode(bytes, line);
                    line.extend_from_slice(b"\"}");
                }
            },
            Value::Missing(name) => {
                line.extend_from_slice(b"{\"missing\":");
                serde_json::to_writer(&mut *line, name)?;
                line.push(b'}');
            }
        }
    }
    line.push(b'}');
    Ok(())
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
                Ok(Written::Here(Value::Null))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Written, E> {
                Ok(Written::Here(Value::Int(number)))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Written, E> {
                i64::try_from(number).map(|number| Written::Here(Value::Int(number))).map_err(E::custom)
            }

            fn visit_str<E>(self, text: &str) -> Result<Written, E> {
                Ok(Written::Here(Value::Text(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<Written, E> {
                Ok(Written::Here(Value::Text(text)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
                let kind: Option<String> = map.next_key()?;
                let value = match kind.as_deref() {
                    Some("base64") => {
                        let bytes = decode(&map.next_value::<String>()?).map_err(A::Error::custom)?;
                        Written::Here(Value::Bytes(bytes))
                    }
                    Some("blob") => Written::Elsewhere(map.next_value()?),
                    Some("missing") => Written::Here(Value::Missing(map.next_value()?)),
                    _ => return Err(A::Error::custom("unknown kind of value")),
                };
                if map.next_key::<String>()?.is_some() {
                    return Err(A::Error::custom("a value has one kind"));
                }
                Ok(value)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

/// Deserializes a record of a table from one JSON object.
pub(crate) struct RecordSeed<'a>(pub(crate) &'a Table);

impl<'de> DeserializeSeed<'de> for RecordSeed<'_> {
    type Value = Vec<Written>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordSeed<'_> {
    type Value = Vec<Written>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a record of {}", self.0.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let fields = &self.0.fields;
        let mut record: Vec<Written> = fields.iter().map(|_| Written::Here(Value::Null)).collect();
        // Fields are usually in the order of the table.
        let mut expected = 0;
        while let Some(name) = map.next_key::<String>()? {
            let found = (expected..fields.len()).chain(0..expected).find(|index| fields[*index].name == name);
            let Some(index) = found else {
                return Err(A::Error::custom(format!("{} has no column {name}", self.0.name)));
            };
            record[index] = map.next_value()?;
            expected = index + 1;
        }
        Ok(record)
    }
}
