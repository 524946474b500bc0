//! Reading and changing the text of an object without building a tree of it.

use super::compact::JsonText;
use super::tokens::token_length;

/// Removes a member of a compact object. Returns false if the object does not have it.
pub fn remove_member(object: &mut String, name: &str) -> bool {
    let Some(member) = JsonText::new(object).member(name) else { return false };
    let (mut start, mut end) = (member.start, member.end());
    // One of the two adjacent commas is removed as well.
    if object[end..].starts_with(',') {
        end += 1;
    } else if object[..start].ends_with(',') {
        start -= 1;
    }
    object.replace_range(start..end, "");
    true
}

/// Returns a compact object with another member, given as text, in front of its own.
pub fn add_member(object: &str, name: &str, value: &str) -> String {
    let rest = object.strip_prefix('{').unwrap_or(object);
    let comma = if rest == "}" { "" } else { "," };
    format!("{{\"{name}\":{value}{comma}{rest}")
}

/// Returns compact JSON as lines that are indented by two spaces.
pub fn indent(compact: &str) -> String {
    let mut text = String::with_capacity(compact.len() + compact.len() / 2);
    let (mut rest, mut depth) = (compact, 0_usize);
    while !rest.is_empty() {
        let (token, after) = rest.split_at(token_length(rest.as_bytes()).unwrap_or(rest.len()));
        rest = after;
        match token {
            "{" | "[" if !after.starts_with(['}', ']']) => {
                text.push_str(token);
                depth += 1;
                new_line(&mut text, depth);
            }
            "}" | "]" if !text.ends_with(['{', '[']) => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
                text.push_str(token);
            }
            "," => {
                text.push_str(token);
                new_line(&mut text, depth);
            }
            ":" => text.push_str(": "),
            _ => text.push_str(token),
        }
    }
    text
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::tests::any_value;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn removes_members_of_the_outermost_object() {
        let mut object = json!({ "a": { "b": 1 }, "b": "x,}", "c\n": [] }).to_string();
        assert!(!remove_member(&mut object, "d"));
        for (name, rest) in [("c\n", r#"{"a":{"b":1},"b":"x,}"}"#), ("a", r#"{"b":"x,}"}"#), ("b", "{}")] {
            assert!(remove_member(&mut object, name));
            assert_eq!(object, rest);
        }
    }

    #[test]
    fn adds_a_member_in_front() {
        assert_eq!(add_member("{}", "n", "1"), r#"{"n":1}"#);
        assert_eq!(add_member(r#"{"a":2}"#, "n", "1"), r#"{"n":1,"a":2}"#);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn indents_like_the_serializer(value in any_value()) {
            prop_assert_eq!(indent(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        }
    }
}
