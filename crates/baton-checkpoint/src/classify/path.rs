//! Paths of keys in a context, such as `plan.steps[2].title`.
//!
//! Unlike the paths in error messages, these are never truncated: two keys never have the same path.

use baton_core::{JsonKind, JsonText};
use serde_json::Value;

/// Appends an object member to a path. A key that is not a plain word is quoted as JSON: `["a b"]`.
pub(crate) fn push_key(path: &mut String, key: &str) {
    if is_plain(key) {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
    } else {
        path.push_str(&quoted(key));
    }
}

/// Appends an array element to a path.
pub(crate) fn push_index(path: &mut String, index: usize) {
    path.push_str(&format!("[{index}]"));
}

/// Returns the path of the key that `text` refers to, if the context contains it.
///
/// The text may be a path as in explanations and views, a top-level key that contains dots, or a path with unquoted
/// keys. Arrays are classified as a whole, so a path into an array refers to the array.
pub fn find_key(context: JsonText<'_>, text: &str) -> Option<String> {
    let mut path = String::new();
    if find_in(context, text, &mut path, Spelling::Quoted) {
        return Some(path);
    }
    path.clear();
    if context.member(text).is_some() {
        push_key(&mut path, text);
        return Some(path);
    }
    find_in(context, text, &mut path, Spelling::Bare).then_some(path)
}

/// Notation of keys that are not plain words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// Quoted, as by [`push_key`].
    Quoted,
    /// Unquoted.
    Bare,
}

fn find_in(object: JsonText<'_>, rest: &str, path: &mut String, spelling: Spelling) -> bool {
    let length = path.len();
    object.members().any(|member| {
        let (key, value) = (member.key.decode(), member.value);
        let after = match spelling {
            Spelling::Quoted if !is_plain(&key) => rest.strip_prefix(quoted(&key).as_str()),
            Spelling::Quoted | Spelling::Bare => rest.strip_prefix(key.as_ref()),
        };
        let Some(after) = after else { return false };
        path.truncate(length);
        push_key(path, &key);
        match value.kind() {
            _ if after.is_empty() => true,
            JsonKind::Object => {
                let inner =
                    after.strip_prefix('.').or_else(|| Some(after).filter(|after| after.starts_with("[\"")));
                inner.is_some_and(|inner| find_in(value, inner, path, spelling))
            }
            JsonKind::Array => index_of(after).is_some_and(|index| value.items().nth(index).is_some()),
            JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String => false,
        }
    })
}

/// Parses the index at the start of `[2].title`.
fn index_of(text: &str) -> Option<usize> {
    let (index, _) = text.strip_prefix('[')?.split_once(']')?;
    index.parse().ok()
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

fn quoted(key: &str) -> String {
    format!("[{}]", Value::from(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn find(context: &Value, text: &str) -> Option<String> {
        find_key(JsonText::new(&context.to_string()), text)
    }

    #[test]
    fn finds_keys_by_name_and_path() {
        let context = json!({
            "plan": { "steps": [{ "title": "a" }], "next step": { "who": "me" } },
            "plan.steps": 1, "a.b": { "c": 1 }, "目的": { "x": null },
        });
        for (text, path) in [
            ("plan", "plan"),
            ("plan.steps", "plan.steps"),
            (r#"["plan.steps"]"#, r#"["plan.steps"]"#),
            ("plan.steps[0].title", "plan.steps"),
            ("plan.next step", r#"plan["next step"]"#),
            (r#"plan["next step"].who"#, r#"plan["next step"].who"#),
            ("a.b", r#"["a.b"]"#),
            ("a.b.c", r#"["a.b"].c"#),
            ("目的.x", "目的.x"),
        ] {
            assert_eq!(find(&context, text).as_deref(), Some(path), "{text}");
        }
    }

    #[test]
    fn does_not_find_missing_keys() {
        let context = json!({ "plan": { "steps": [1], "text": "x" }, "planner": 1 });
        for text in [
            "",
            ".",
            "pla",
            "plan.",
            "plan.step",
            "plan.steps[1]",
            "plan.steps[x]",
            "plan.text.more",
            "plans",
        ] {
            assert_eq!(find(&context, text), None, "{text}");
        }
    }
}
