//! Canonical JSON (RFC 8785) of a value.
//!
//! Owns the form of numbers and strings and the order of keys, and rejects integers that would lose digits.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::error::{prepend_index, prepend_key};
use super::tokens::plain_length;

/// Initial capacity of the text of a value.
const INITIAL_BYTES: usize = 256;
/// Every integer up to this magnitude is exact as a 64-bit float.
const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// An integer that has no canonical text: RFC 8785 writes every number as a 64-bit float, which would change its
/// digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("integer {number}{} would be rounded by RFC 8785; send it as a string", at_path(path))]
pub struct RoundedInteger {
    /// Path of the integer, such as `payload.count`; empty if it is the whole value.
    pub path: String,
    /// The integer as given.
    pub number: String,
}

/// Writes a value as RFC 8785 canonical JSON: no whitespace, sorted keys, one form per number.
///
/// Unless nested too deeply, the text can be parsed with [`read_strict`](crate::read_strict), and its canonical form is
/// the text itself.
///
/// # Errors
///
/// Returns the first integer whose digits would change.
pub fn canonicalize(value: &Value) -> Result<String, RoundedInteger> {
    let mut text = String::with_capacity(INITIAL_BYTES);
    write_value(&mut text, value)?;
    Ok(text)
}

/// Writes a value. Only fractions go through the general serializer, which buffers every entry of every object.
fn write_value(text: &mut String, value: &Value) -> Result<(), RoundedInteger> {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(text, number)?,
        Value::String(string) => write_string(text, string),
        Value::Array(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(text, element).map_err(|mut rounded| {
                    prepend_index(&mut rounded.path, index);
                    rounded
                })?;
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            if members.keys().all(|key| is_below_surrogates(key)) {
                write_members(text, members.iter())?;
            } else {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|(one, _), (other, _)| compare_keys(one, other));
                write_members(text, sorted.into_iter())?;
            }
            text.push('}');
        }
    }
    Ok(())
}

/// Writes the members of an object in the given order.
fn write_members<'a>(
    text: &mut String,
    members: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<(), RoundedInteger> {
    for (index, (key, member)) in members.enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_string(text, key);
        text.push(':');
        write_value(text, member).map_err(|mut rounded| {
            prepend_key(&mut rounded.path, key);
            rounded
        })?;
    }
    Ok(())
}

/// Writes a string with the escapes of RFC 8785.
pub fn write_string(text: &mut String, string: &str) {
    text.push('"');
    let mut rest = string;
    loop {
        let (plain, after) = rest.split_at(plain_length(rest.as_bytes()));
        text.push_str(plain);
        let mut characters = after.chars();
        let Some(special) = characters.next() else { break };
        match special {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            control => text.push_str(&format!("\\u{:04x}", u32::from(control))),
        }
        rest = characters.as_str();
    }
    text.push('"');
}

/// Writes a number as RFC 8785 does.
///
/// # Errors
///
/// Fails for an integer whose digits would change.
pub(super) fn write_number(text: &mut String, number: &Number) -> Result<(), RoundedInteger> {
    let digits = number.to_string();
    let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    if let Some(..=MAX_SAFE_INTEGER) = magnitude {
        text.push_str(&digits);
        return Ok(());
    }
    // Compare digits, not values: 2^63 is exact as a float, but RFC 8785 writes it as 9223372036854776000, which is
    // another integer.
    match serde_json_canonicalizer::to_string(number) {
        Ok(canonical) if magnitude.is_none() || canonical == digits => {
            text.push_str(&canonical);
            Ok(())
        }
        _ => Err(RoundedInteger { path: String::new(), number: digits }),
    }
}

/// Compares two keys by their UTF-16 units, as RFC 8785 orders them.
pub fn compare_keys(one: &str, other: &str) -> Ordering {
    if is_below_surrogates(one) && is_below_surrogates(other) {
        one.cmp(other)
    } else {
        one.encode_utf16().cmp(other.encode_utf16())
    }
}

/// Returns true if a key has the same order by UTF-8 bytes, as in maps, and by UTF-16 units, as RFC 8785 requires. The
/// orders differ only for characters from U+E000.
fn is_below_surrogates(key: &str) -> bool {
    // The UTF-8 encoding of U+E000 and later characters starts with 0xEE or more.
    key.bytes().all(|byte| byte < 0xEE)
}

fn at_path(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" at {path}") }
}
