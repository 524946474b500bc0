//! Lines, sentences, paths and counts in texts of observations.

use std::collections::BTreeSet;

use baton_core::shorten;
pub(super) use baton_core::strip_overwritten as clean;

/// Maximum number of bytes of a line that are examined; longer lines are usually minified code or binary data.
pub(super) const MAX_LINE_BYTES: usize = 2_000;

/// Returns the start of a text, at most `bytes` long, without splitting a character.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// Joins the start of a text into one line. Less of a long text is examined than by the function of the same name in
/// `baton-core`.
pub(super) fn one_line(text: &str, characters: usize) -> String {
    baton_core::one_line(head(text, characters.saturating_mul(4).saturating_add(256)), characters)
}

/// Splits the digits at the start of a text from the rest.
pub(super) fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Returns the first line with a letter or digit.
pub(super) fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or_default()
}

/// Returns the first sentence of a text. A full stop after a number, an initial or an abbreviation does not end it.
pub(super) fn first_sentence(text: &str, characters: usize) -> String {
    let line = one_line(text, characters.saturating_mul(3));
    let ends = |at: &usize| {
        let sentence = line.get(..*at).unwrap_or_default();
        let last = sentence.rsplit(' ').next().unwrap_or_default();
        sentence.split(' ').count() > 2
            && last.len() > 2
            && !matches!(last, "e.g" | "i.e" | "etc" | "vs" | "approx")
    };
    let end = line.match_indices(". ").map(|(at, _)| at).find(ends).map_or(line.len(), |at| at + 1);
    shorten(line.get(..end).unwrap_or(&line), characters)
}

/// Returns a path relative to the agent's folder if it is inside that folder.
pub(super) fn relative<'a>(path: &'a str, cwd: Option<&str>) -> &'a str {
    let path = path.trim();
    let Some(cwd) = cwd.map(|cwd| cwd.trim_end_matches(['/', '\\'])).filter(|cwd| !cwd.is_empty()) else {
        return path;
    };
    match path.strip_prefix(cwd) {
        Some("" | "/" | "\\") => ".",
        Some(rest) => rest.strip_prefix(['/', '\\']).unwrap_or(path),
        None => path.strip_prefix("./").unwrap_or(path),
    }
}

/// Returns the items without repetitions, in the order of their first occurrences.
pub(super) fn unique<T: Clone + Ord>(items: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let mut seen = BTreeSet::new();
    items.into_iter().filter(move |item| seen.insert(item.clone()))
}

/// Returns the last component of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Formats a number and its noun: `1 file`, `3 files`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    match (number, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "entry") => format!("{number} entries"),
        _ => format!("{number} {noun}s"),
    }
}

/// Formats a size: `12 bytes`, `3.4 KB`, `1.2 MB`.
pub(super) fn size_in_words(bytes: usize) -> String {
    let tenths = |unit: usize| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => counted(bytes, "byte"),
        1_000..1_000_000 => format!("{} KB", tenths(1_000)),
        _ => format!("{} MB", tenths(1_000_000)),
    }
}

/// Joins as many items as fit into `characters`, and adds the number of omitted items.
pub(super) fn join_within<T: AsRef<str>>(items: &[T], characters: usize) -> String {
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        let item = item.as_ref();
        let more = items.len() - index;
        if index > 0 && joined.len() + item.len() + 2 > characters {
            joined.push_str(&format!(" and {more} more"));
            return joined;
        }
        if index > 0 {
            joined.push_str(", ");
        }
        joined.push_str(&shorten(item, characters.max(8)));
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_lines_sentences_and_lists() {
        assert_eq!(one_line(" a \n\n b\tc ", 20), "a b c");
        assert_eq!(first_sentence("It is done now. And more.", 50), "It is done now.");
        assert_eq!(first_sentence("1. Use e.g. a lock here. Then", 50), "1. Use e.g. a lock here.");
        assert_eq!(join_within(&["one", "two", "three"], 9), "one, two and 1 more");
    }

    #[test]
    fn paths_inside_the_folder_are_relative() {
        assert_eq!(relative("/home/dev/app/src/a.rs", Some("/home/dev/app")), "src/a.rs");
        assert_eq!(relative("/home/dev/app-two/a.rs", Some("/home/dev/app")), "/home/dev/app-two/a.rs");
        assert_eq!(relative("/home/dev/app", Some("/home/dev/app/")), ".");
        assert_eq!(relative("./a.rs", Some("/x")), "a.rs");
        assert_eq!(relative("/etc/hosts", None), "/etc/hosts");
    }
}
