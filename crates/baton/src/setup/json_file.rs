//! Edits of JSON files that belong to the user. Comments, order, indentation, line ends and all other entries are kept.

use std::collections::BTreeSet;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstContainerNode, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

use super::hook_command::is_own_entry;

/// An entry of Baton in a JSON file.
#[derive(Debug, Clone)]
pub(crate) enum JsonEntry {
    /// The member at this path.
    Member(Vec<&'static str>, Value),
    /// An element of the array at this path. An existing element is replaced if it runs `baton hook`.
    Element(Vec<&'static str>, Value),
}

/// Byte order mark, which is kept if the file has one.
const BOM: char = '\u{feff}';

/// Adds the entries, or brings them up to date.
pub(super) fn add_entries(text: &str, entries: &[JsonEntry]) -> Result<String, String> {
    edit(text, entries, |root, entry| match entry {
        JsonEntry::Member(path, value) => set_member(root, path, value),
        JsonEntry::Element(path, value) => set_element(root, path, value),
    })
}

/// Removes the entries, and the objects and arrays that become empty.
pub(super) fn remove_entries(text: &str, entries: &[JsonEntry]) -> Result<String, String> {
    edit(text, entries, |root, entry| match entry {
        JsonEntry::Member(path, _) => remove_member(root, path),
        JsonEntry::Element(path, _) => remove_elements(root, path),
    })
}

/// Returns true if the text contains the entries exactly.
pub(super) fn has_entries(text: &str, entries: &[JsonEntry]) -> bool {
    add_entries(text, entries).is_ok_and(|edited| edited == text)
}

/// Returns true if the text is empty, or an empty object without comments.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != BOM)
        .collect::<String>()
        .trim_matches(['{', '}'])
        .is_empty()
}

/// Changes each entry in a text.
fn edit(
    text: &str,
    entries: &[JsonEntry],
    change: impl Fn(&CstObject, &JsonEntry) -> Result<(), String>,
) -> Result<String, String> {
    let (mark, body) = match text.strip_prefix(BOM) {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let options = ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    };
    let body = if body.trim().is_empty() { "{}\n" } else { body };
    let root =
        CstRootNode::parse(body, &options).map_err(|error| format!("the file is not valid JSON: {error}"))?;
    let object = root.object_value().ok_or("the file does not contain a JSON object")?;
    entries.iter().try_for_each(|entry| change(&object, entry))?;
    Ok(format!("{mark}{root}"))
}

/// Rejects an object in which a name occurs twice, because clients differ in which of the values they use.
fn require_unique_names(object: &CstObject) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for property in object.properties() {
        let name = property.decoded_name().unwrap_or_default();
        if !seen.insert(name.clone()) {
            return Err(format!("the key `{name}` occurs twice"));
        }
    }
    Ok(())
}

/// Returns the object at a path, creating objects that are missing.
fn object_at(root: &CstObject, path: &[&str]) -> Result<CstObject, String> {
    require_unique_names(root)?;
    let mut object = root.clone();
    for name in path {
        object =
            object.object_value_or_create(name).ok_or_else(|| format!("`{name}` is not a JSON object"))?;
        require_unique_names(&object)?;
    }
    Ok(object)
}

/// Returns the object at a path, if it exists.
fn find_object(root: &CstObject, path: &[&str]) -> Result<Option<CstObject>, String> {
    require_unique_names(root)?;
    let mut object = root.clone();
    for name in path {
        let Some(inner) = object.object_value(name) else { return Ok(None) };
        require_unique_names(&inner)?;
        object = inner;
    }
    Ok(Some(object))
}

fn set_member(root: &CstObject, path: &[&str], value: &Value) -> Result<(), String> {
    let Some((name, parents)) = path.split_last() else { return Ok(()) };
    let object = object_at(root, parents)?;
    match object.get(name) {
        Some(property) if property.to_serde_value().as_ref() == Some(value) => {}
        Some(property) => property.set_value(input(value)),
        None => drop(object.append(name, input(value))),
    }
    Ok(())
}

fn set_element(root: &CstObject, path: &[&str], value: &Value) -> Result<(), String> {
    let Some((name, parents)) = path.split_last() else { return Ok(()) };
    let object = object_at(root, parents)?;
    let array = object.array_value_or_create(name).ok_or_else(|| format!("`{name}` is not a JSON array"))?;
    let mut own = array.elements().into_iter().filter(|element| is_own_entry(&value_of(element)));
    match own.next() {
        Some(first) => {
            own.for_each(CstNode::remove);
            if value_of(&first) != *value {
                replace(first, value);
            }
        }
        None => {
            array.ensure_multiline();
            array.append(input(value));
        }
    }
    Ok(())
}

fn replace(element: CstNode, value: &Value) {
    match element {
        CstNode::Container(CstContainerNode::Object(object)) => drop(object.replace_with(input(value))),
        CstNode::Container(CstContainerNode::Array(array)) => drop(array.replace_with(input(value))),
        other => other.remove(),
    }
}

fn remove_member(root: &CstObject, path: &[&str]) -> Result<(), String> {
    let Some((name, parents)) = path.split_last() else { return Ok(()) };
    let Some(object) = find_object(root, parents)? else { return Ok(()) };
    if let Some(property) = object.get(name) {
        property.remove();
    }
    remove_if_empty(root, parents)
}

fn remove_elements(root: &CstObject, path: &[&str]) -> Result<(), String> {
    let Some((name, parents)) = path.split_last() else { return Ok(()) };
    let Some(array) = find_object(root, parents)?.and_then(|object| object.array_value(name)) else {
        return Ok(());
    };
    let own: Vec<CstNode> =
        array.elements().into_iter().filter(|element| is_own_entry(&value_of(element))).collect();
    let removed = !own.is_empty();
    own.into_iter().for_each(CstNode::remove);
    if removed && array.elements().is_empty() { remove_member(root, path) } else { Ok(()) }
}

/// Removes the object at a path if it is empty, and then the objects around it.
fn remove_if_empty(root: &CstObject, path: &[&str]) -> Result<(), String> {
    match find_object(root, path)? {
        Some(object) if !path.is_empty() && object.properties().is_empty() => remove_member(root, path),
        _ => Ok(()),
    }
}

fn value_of(node: &CstNode) -> Value {
    node.to_serde_value().unwrap_or_default()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
#[path = "json_file_tests.rs"]
mod tests;
