//! Truncation of texts to a number of characters.

use std::borrow::Cow;

use crate::plain::strip_control;

/// Returns the first `max_chars` characters of a text.
pub fn first_characters(text: &str, max_chars: usize) -> &str {
    let Some(last) = max_chars.checked_sub(1) else { return "" };
    // Several times faster on long texts than `char_indices`.
    let mut characters = text.chars();
    characters.nth(last);
    &text[..text.len() - characters.as_str().len()]
}

/// Returns the first characters of a text. Control characters, which not every database accepts, are replaced.
pub fn printable(text: &str, max_chars: usize) -> String {
    first_characters(text, max_chars).replace(char::is_control, "\u{fffd}")
}

/// Truncates a text to `max_chars` characters; the last one is then `…`. The truncated text ends with a whole word if
/// that keeps at least two thirds of it.
pub fn shorten(text: &str, max_chars: usize) -> String {
    let start = first_characters(text, max_chars);
    if start.len() == text.len() {
        return text.to_owned();
    }
    let kept = first_characters(start, max_chars.saturating_sub(1));
    let whole_words = start.rfind(char::is_whitespace).filter(|end| end * 3 > kept.len() * 2);
    let kept = whole_words.map_or(kept, |end| &start[..end]);
    format!("{}…", kept.trim_end_matches([' ', '\n', ',', ';', ':', '.']))
}

/// Truncates a text to `max_chars` characters, and adds the number of missing characters and `source`, which says how to
/// get the whole text.
pub fn shorten_with_notice<'a>(text: &'a str, max_chars: usize, source: &str) -> Cow<'a, str> {
    let (kept, missing) = text.split_at(first_characters(text, max_chars).len());
    if missing.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{kept}… [{} more characters: {source}]", missing.chars().count()))
}

/// Joins a text into one line without control characters and escape sequences, and [`shorten`]s it.
pub fn one_line(text: &str, max_chars: usize) -> String {
    shorten(&strip_control(text).split_whitespace().collect::<Vec<_>>().join(" "), max_chars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_texts_end_with_an_ellipsis() {
        for (text, max_chars, shortened) in [
            ("abc", 3, "abc"),
            ("äöüß", 3, "äö…"),
            ("abcdef g", 6, "abcde…"),
            ("abcd efg", 6, "abcd…"),
            ("alpha beta gamma", 12, "alpha beta…"),
            ("alpha beta gamma d", 17, "alpha beta gamma…"),
            ("alpha beta, gamma", 13, "alpha beta…"),
            ("a verylongword", 8, "a veryl…"),
            ("  indented text", 10, "  indente…"),
            ("ab", 0, "…"),
        ] {
            assert_eq!(shorten(text, max_chars), shortened, "{text:?}");
        }
    }

    #[test]
    fn a_notice_says_how_much_is_missing_and_where_it_is() {
        assert_eq!(shorten_with_notice("été", 3, "handoff_show"), "été");
        assert_eq!(shorten_with_notice("étés", 1, "handoff_show"), "é… [3 more characters: handoff_show]");
        assert_eq!(shorten_with_notice("", 0, "x"), "");
    }

    #[test]
    fn one_line_joins_and_shortens() {
        assert_eq!(one_line(" a\n\tb  \u{1b}[1mc\u{1b}[0m ", 100), "a b c");
        assert_eq!(one_line(" abc\n def ", 7), "abc def");
        assert_eq!(one_line(" abc\n def ", 6), "abc d…");
    }
}
