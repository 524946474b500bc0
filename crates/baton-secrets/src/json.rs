//! Secrets in JSON documents, where a name and its value are separate strings.
//!
//! Owns the paths of findings and the traversal of a document. Strings are scanned as text. The name of an
//! object entry is scanned as well, and used as context for its value.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::assignment::{is_assigned, redact_assigned};
use super::redact::{marker, redact, redact_findings};
use super::rules::Rule;
use super::scan::{Finding, contains_secret, scan, scan_entry};

/// Rule and location of a match in a document, never the matched text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JsonFinding {
    /// The path of the string, such as `handoff.work_completed[0]`; `$` is the document itself. A secret in
    /// the name of an entry is reported at the object that holds the entry.
    pub path: String,
    /// The rule that matched.
    pub rule: Rule,
    /// The line within the string, from 1.
    pub line: usize,
    /// The character within the line, from 1.
    pub column: usize,
}

/// Finds the secrets in every string and entry name of `value`, in document order.
#[must_use]
pub fn scan_json(value: &Value) -> Vec<JsonFinding> {
    let (mut path, mut findings) = (String::new(), Vec::new());
    // Deserializing a `Value` cannot fail, because the visitor accepts every type.
    let _ = Scan { name: None, path: &mut path, findings: &mut findings }.deserialize(value);
    findings
}

/// Finds the secrets in JSON text, as [`scan_json`] does in the tree of an entry `name`, without building that tree.
///
/// # Errors
///
/// Fails when the text is not JSON.
pub fn scan_json_text(name: &str, text: &str) -> Result<Vec<JsonFinding>, serde_json::Error> {
    let (mut path, mut findings) = (String::new(), Vec::new());
    push_key(&mut path, name);
    let mut reader = serde_json::Deserializer::from_str(text);
    Scan { name: Some(name), path: &mut path, findings: &mut findings }.deserialize(&mut reader)?;
    Ok(findings)
}

/// Replaces the secrets in every string and entry name of `value`, including values that are recognized only
/// by their name, which [`scan_json`] does not report because this is a heuristic. A private key that spans
/// the strings of a list, for example the lines of a file, is replaced as well.
///
/// Names that become equal are distinguished by a number, so no entry is lost.
pub fn redact_json(value: &mut Value) {
    redact_lists(value);
    redact_value(value, None);
}

fn findings_of(text: &str, name: Option<&str>) -> Vec<Finding> {
    name.map_or_else(|| scan(text), |name| scan_entry(name, text))
}

/// Scans one value. `name` is the name of the entry that contains it.
struct Scan<'a> {
    name: Option<&'a str>,
    path: &'a mut String,
    findings: &'a mut Vec<JsonFinding>,
}

/// The name of an entry, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for Scan<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        report(text, &findings_of(text, self.name), self.path, self.findings);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { name, path, findings } = self;
        let length = path.len();
        for index in 0.. {
            path.push_str(&format!("[{index}]"));
            // The value of a header may be a list, so the name of the list applies to its items.
            let item = items.next_element_seed(Scan { name, path, findings })?;
            path.truncate(length);
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self { path, findings, .. } = self;
        let length = path.len();
        while let Some(Key(key)) = entries.next_key()? {
            report(&key, &scan(&key), path, findings);
            push_key(path, &key);
            entries.next_value_seed(Scan { name: Some(&key), path, findings })?;
            path.truncate(length);
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

fn report(text: &str, found: &[Finding], path: &str, findings: &mut Vec<JsonFinding>) {
    let path = if path.is_empty() { "$" } else { path };
    findings.extend(found.iter().map(|finding| {
        let before = text.get(..finding.start).unwrap_or_default();
        let (line, column) = position_after(before);
        JsonFinding { path: path.to_owned(), rule: finding.rule, line, column }
    }));
}

fn position_after(before: &str) -> (usize, usize) {
    let last_line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, last_line.chars().count() + 1)
}

/// Appends the redacted `key`, quoted unless it reads as a plain name.
fn push_key(path: &mut String, key: &str) {
    let key = redact(key);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if key.is_empty() || !key.chars().all(is_plain) {
        path.push_str(&format!("[{}]", Value::String(key.into_owned())));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(&key);
}

fn redact_value(value: &mut Value, name: Option<&str>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redact_named(text, name) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, name)),
        Value::Object(entries) => {
            entries.iter_mut().for_each(|(key, item)| redact_value(item, Some(key)));
            redact_names(entries);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces the secrets in a text with a name, including secrets that are recognized only by a name.
pub(super) fn redact_named<'a>(text: &'a str, name: Option<&str>) -> Cow<'a, str> {
    redact_found(text, &findings_of(text, name), name)
}

/// Replaces the `findings` of a text, and secrets that are recognized only by a name.
pub(super) fn redact_found<'a>(text: &'a str, findings: &[Finding], name: Option<&str>) -> Cow<'a, str> {
    let shaped = redact_findings(text, findings);
    if name.is_some_and(|name| is_assigned(name, &shaped)) {
        return Cow::Owned(marker(Rule::AssignedSecret));
    }
    match redact_assigned(&shaped) {
        Cow::Owned(clean) => Cow::Owned(clean),
        Cow::Borrowed(_) => shaped,
    }
}

/// Replaces the secrets in the names of entries.
fn redact_names(entries: &mut Map<String, Value>) {
    if entries.keys().any(|name| contains_secret(name)) {
        rename_entries(entries, |name| redact(name).into_owned());
    }
}

/// Renames all entries of an object. Names that become equal get a number.
pub fn rename_entries(entries: &mut Map<String, Value>, rename: impl Fn(&str) -> String) {
    for (name, item) in std::mem::take(entries) {
        let new_name = rename(&name);
        let mut unique = new_name.clone();
        let mut number = 2;
        while entries.contains_key(&unique) {
            unique = format!("{new_name} ({number})");
            number += 1;
        }
        entries.insert(unique, item);
    }
}

/// Replaces private keys that span the strings of a list. No other rule spans lines.
fn redact_lists(value: &mut Value) {
    match value {
        Value::Array(_) if mentions_private_key(value) => {
            let mut texts = Vec::new();
            collect_texts(value, &mut texts);
            redact_private_keys(texts);
        }
        Value::Object(entries) => entries.values_mut().for_each(redact_lists),
        Value::Array(_) | Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn mentions_private_key(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("PRIVATE KEY"),
        Value::Array(items) => items.iter().any(mentions_private_key),
        Value::Object(entries) => entries.values().any(mentions_private_key),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Collects all texts in a value, in document order.
fn collect_texts<'a>(value: &'a mut Value, texts: &mut Vec<&'a mut String>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter_mut().for_each(|item| collect_texts(item, texts)),
        Value::Object(entries) => entries.values_mut().for_each(|item| collect_texts(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces private keys in texts that are scanned as if they were the lines of one text.
fn redact_private_keys(texts: Vec<&mut String>) {
    let joined = texts.iter().map(|text| text.as_str()).collect::<Vec<_>>().join("\n");
    let keys: Vec<Finding> =
        scan(&joined).into_iter().filter(|finding| finding.rule == Rule::PrivateKey).collect();
    let mut keys = keys.as_slice();
    let mut start = 0;
    for text in texts {
        let end = start + text.len();
        // Findings that end before this text are finished.
        while let Some((first, rest)) = keys.split_first()
            && first.end <= start
        {
            keys = rest;
        }
        let within: Vec<Finding> = keys
            .iter()
            .take_while(|key| key.start < end)
            .map(|key| Finding {
                rule: key.rule,
                start: key.start.max(start) - start,
                end: key.end.min(end) - start,
            })
            .collect();
        if let Cow::Owned(clean) = redact_findings(text, &within) {
            *text = clean;
        }
        start = end + 1;
    }
}
