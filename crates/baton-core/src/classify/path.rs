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
/// The text may be a top-level key as it is, dots and all, or a path. Arrays are classified as a whole, so a path into
/// an array means the array.
pub fn find_key(context: &Map<String, Value>, text: &str) -> Option<String> {
    let mut path = String::new();
    if context.contains_key(text) {
        push_key(&mut path, text);
        return Some(path);
    }
    find_in(context, text, &mut path).then_some(path)
}

fn find_in(members: &Map<String, Value>, rest: &str, path: &mut String) -> bool {
    let length = path.len();
    members.iter().any(|(key, value)| {
        let spellings = [rest.strip_prefix(key.as_str()), rest.strip_prefix(quoted(key).as_str())];
        spellings.into_iter().flatten().any(|after| {
            path.truncate(length);
            push_key(path, key);
            match value {
                _ if after.is_empty() => true,
                Value::Object(members) => match after.strip_prefix('.') {
                    Some(rest) => find_in(members, rest, path),
                    None => after.starts_with("[\"") && find_in(members, after, path),
                },
                Value::Array(items) => index_of(after).is_some_and(|index| index < items.len()),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            }
        })
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
            ("plan.steps", r#"["plan.steps"]"#),
            ("plan.steps[0].title", "plan.steps"),
            ("plan.next step", r#"plan["next step"]"#),
            (r#"plan["next step"].who"#, r#"plan["next step"].who"#),
            ("a.b.c", r#"["a.b"].c"#),
            ("目的.x", "目的.x"),
        ] {
            assert_eq!(find(&context, text).as_deref(), Some(path), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let context = json!({ "plan": { "steps": [1], "text": "x" }, "planner": 1 });
        for text in ["", ".", "pla", "plan.", "plan.step", "plan.steps[1]", "plan.steps[x]", "plan.text.more", "plans"] {
            assert_eq!(find(&context, text), None, "{text}");
        }
    }
}
