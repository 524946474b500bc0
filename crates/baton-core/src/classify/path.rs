//! Paths into a context, such as `plan.steps[2].title`, and the way back from a path to a key.
//!
//! Unlike the paths of error messages these are never shortened: two keys never have the same path.

use serde_json::{Map, Value};

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

/// Finds the path of the key that `text` means in a context, if it has one.
///
/// The text may be a path, as explanations and views write them, or a top-level key as it is, dots and all, or a path in
/// which keys are not quoted. Arrays are classified as a whole, so a path into an array means the array.
pub fn find_key(context: &Map<String, Value>, text: &str) -> Option<String> {
    let mut path = String::new();
    if find_in(context, text, &mut path, Spelling::Quoted) {
        return Some(path);
    }
    path.clear();
    if context.contains_key(text) {
        push_key(&mut path, text);
        return Some(path);
    }
    find_in(context, text, &mut path, Spelling::Bare).then_some(path)
}

/// How keys that are not plain words are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// As [`push_key`] does.
    Quoted,
    /// As they are.
    Bare,
}

fn find_in(members: &Map<String, Value>, rest: &str, path: &mut String, spelling: Spelling) -> bool {
    let length = path.len();
    members.iter().any(|(key, value)| {
        let after = match spelling {
            Spelling::Quoted if !is_plain(key) => rest.strip_prefix(quoted(key).as_str()),
            Spelling::Quoted | Spelling::Bare => rest.strip_prefix(key.as_str()),
        };
        path.truncate(length);
        push_key(path, key);
        match (after, value) {
            (None, _) => false,
            (Some(""), _) => true,
            (Some(after), Value::Object(members)) => {
                let inner =
                    after.strip_prefix('.').or_else(|| Some(after).filter(|after| after.starts_with("[\"")));
                inner.is_some_and(|inner| find_in(members, inner, path, spelling))
            }
            (Some(after), Value::Array(items)) => index_of(after).is_some_and(|index| index < items.len()),
            (Some(_), Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
        }
    })
}

/// Reads the index at the start of `[2].title`.
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
        find_key(context.as_object().unwrap(), text)
    }

    #[test]
    fn keys_are_found_by_name_and_by_path() {
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
    fn what_is_not_there_is_not_found() {
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
