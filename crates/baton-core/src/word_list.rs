//! Lists of words and phrases, written as one text: `error|not found|panic`.

/// Returns true if a text starts with an entry of a list.
pub fn starts_with_any(text: &str, list: &str) -> bool {
    list.split('|').any(|entry| text.starts_with(entry))
}

/// Returns true if a text ends with an entry of a list.
pub fn ends_with_any(text: &str, list: &str) -> bool {
    list.split('|').any(|entry| text.ends_with(entry))
}

/// Returns true if a text contains an entry of a list.
pub fn contains_any(text: &str, list: &str) -> bool {
    list.split('|').any(|entry| text.contains(entry))
}

/// Returns true if a word is an entry of a list.
pub fn is_any(word: &str, list: &str) -> bool {
    list.split('|').any(|entry| word == entry)
}

/// Returns the rest of a text after the entry of a list that it starts with.
pub fn strip_any<'a>(text: &'a str, list: &str) -> Option<&'a str> {
    list.split('|').find_map(|entry| text.strip_prefix(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_compared_as_a_whole() {
        const LIST: &str = "error: |not found|✖";
        assert!(starts_with_any("error: x", LIST) && !starts_with_any("an error: x", LIST));
        assert!(ends_with_any("it was not found", LIST) && !ends_with_any("not found: a", LIST));
        assert!(contains_any("it was not found", LIST) && !contains_any("it was found", LIST));
        assert!(is_any("✖", LIST) && !is_any("not", LIST) && !is_any("", LIST));
        assert_eq!(strip_any("not found: a", LIST), Some(": a"));
        assert_eq!(strip_any("found", LIST), None);
    }
}
