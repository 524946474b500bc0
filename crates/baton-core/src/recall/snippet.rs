//! The part of a text that shows why it was found.

use std::collections::HashSet;

use super::analysis::terms;
use super::query::Query;
use crate::truncate::shorten;

/// Maximum length of a snippet in characters.
const MAX_CHARS: usize = 240;

/// Returns the part of a text with the most different query terms, on one line, with `…` where text was
/// omitted.
pub fn snippet(text: &str, query: &Query) -> String {
    let wanted: HashSet<&str> = query.terms.iter().map(|one| one.term.as_str()).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let matched: Vec<Vec<String>> = words
        .iter()
        .map(|word| terms(word).into_iter().filter(|term| wanted.contains(term.as_str())).collect())
        .collect();
    let mut best = (0, 0..0);
    let (mut from, mut chars) = (0, 0);
    for until in 0..words.len() {
        chars += words[until].chars().count() + 1;
        while chars > MAX_CHARS && from < until {
            chars -= words[from].chars().count() + 1;
            from += 1;
        }
        let different: HashSet<&String> = matched[from..=until].iter().flatten().collect();
        if best.1.is_empty()
            || different.len() > best.0
            || (different.len() == best.0 && from == best.1.start)
        {
            best = (different.len(), from..until + 1);
        }
    }
    let range = best.1;
    let mut found = shorten(&words[range.clone()].join(" "), MAX_CHARS);
    if range.end < words.len() && !found.ends_with('…') {
        found.push_str(" …");
    }
    if range.start > 0 {
        found.insert_str(0, "… ");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn of(text: &str, query: &str) -> String {
        snippet(text, &Query::parse(query, Timestamp::EPOCH))
    }

    #[test]
    fn short_text_is_returned_on_one_line() {
        assert_eq!(of("one\n two\tthree", "two"), "one two three");
        assert_eq!(of("", "two"), "");
    }

    #[test]
    fn long_text_is_cut_around_the_matches() {
        let text = format!("{} the lease expired here {}", "filler ".repeat(200), "more ".repeat(200));
        let found = of(&text, "expired leases");
        assert!(found.contains("lease expired") && found.starts_with('…') && found.ends_with('…'), "{found}");
        assert!(found.chars().count() <= MAX_CHARS + 4);
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(of(&"x".repeat(1000), "y").chars().count(), MAX_CHARS);
    }
}
