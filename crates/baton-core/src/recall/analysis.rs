//! Splits text into normalised terms: lower case, without stop words, English words reduced to their stems.
//!
//! Identifiers are split at case changes, digits and every character that is neither a letter nor a digit, so
//! `drainQueue`, `drain_queue` and `drain queue` have the same terms. Chinese, Japanese and Korean text, which is not
//! written with spaces, becomes pairs of adjacent characters.

use std::borrow::Cow;
use std::collections::HashSet;

use rust_stemmers::{Algorithm, Stemmer};

use super::stop_words::is_stop_word;

/// Maximum length of a term in bytes. Longer runs are encoded data; their beginning is indexed.
const MAX_TERM_BYTES: usize = 64;

/// What a character is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    /// A character of a script that is written without spaces.
    Ideograph,
    Separator,
}

fn class_of(letter: char) -> Class {
    match letter {
        'a'..='z' => Class::Lower,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Digit,
        _ if letter.is_ascii() => Class::Separator,
        // Hiragana, Katakana, Bopomofo, Hangul, Han with its extensions and compatibility forms, half-width Katakana.
        '\u{1100}'..='\u{11ff}'
        | '\u{3041}'..='\u{318f}'
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{323af}' => Class::Ideograph,
        _ if letter.is_numeric() => Class::Digit,
        _ if letter.is_uppercase() => Class::Upper,
        _ if letter.is_alphabetic() => Class::Lower,
        _ => Class::Separator,
    }
}

/// Returns the terms of a text, in order and with repetitions.
pub fn terms(text: &str) -> Vec<String> {
    terms_as_written(text).into_iter().map(|(term, _)| term).collect()
}

/// Returns the terms of a text, each with the word that it stands for.
pub(super) fn terms_as_written(text: &str) -> Vec<(String, &str)> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut found = Vec::new();
    for (class, run) in runs(text) {
        match class {
            Class::Ideograph => found.extend(pairs(run)),
            _ => found.extend(normalised(&stemmer, run).map(|term| (term, run))),
        }
    }
    found
}

/// Returns the different terms of a text, in order of first appearance.
pub fn unique_terms(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut found = terms(text);
    found.retain(|term| seen.insert(term.clone()));
    found
}

/// Splits text into runs of one word, number or ideographic text.
fn runs(text: &str) -> Vec<(Class, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut current = Class::Separator;
    // Start of the last upper-case letter of a run of upper-case letters: in `HTTPServer` the `S` starts a new word.
    let mut last_upper = 0;
    let mut is_suffix = false;
    let mut push = |class: Class, part: &str, at: usize| {
        if class != Class::Separator && !part.is_empty() {
            found.push((class, at, at + part.len()));
        }
    };
    for (at, letter) in text.char_indices() {
        let class = class_of(letter);
        // The end of `don't` and `Anna's` is dropped.
        if matches!(letter, '\'' | '\u{2019}') && matches!(current, Class::Lower | Class::Upper) {
            push(current, &text[start..at], start);
            (current, start, is_suffix) = (Class::Separator, at, true);
            continue;
        }
        if is_suffix {
            if matches!(class, Class::Lower | Class::Upper) {
                start = at + letter.len_utf8();
                continue;
            }
            is_suffix = false;
        }
        let continues = match (current, class) {
            (Class::Upper, Class::Lower) => {
                if last_upper > start {
                    push(Class::Upper, &text[start..last_upper], start);
                    start = last_upper;
                }
                true
            }
            (current, class) => current == class,
        };
        if !continues {
            push(current, &text[start..at], start);
            start = at;
        }
        if class == Class::Upper {
            last_upper = at;
        }
        current = class;
    }
    if !is_suffix {
        push(current, &text[start..], start);
    }
    found.into_iter().map(|(class, from, to)| (class, &text[from..to])).collect()
}

/// Returns the pairs of adjacent characters; a single character is a term of its own.
fn pairs(run: &str) -> Vec<(String, &str)> {
    let boundaries: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    // Two characters have three boundaries; a run of one character has only two.
    let width = boundaries.len().min(3);
    let pair = |window: &[usize]| &run[window[0]..window[width - 1]];
    boundaries.windows(width).map(pair).map(|pair| (pair.to_owned(), pair)).collect()
}

/// Returns the term of a word or number; `None` for stop words and single letters.
fn normalised(stemmer: &Stemmer, run: &str) -> Option<String> {
    let run = &run[..run.floor_char_boundary(MAX_TERM_BYTES)];
    let lower = run.to_lowercase();
    let is_single_letter = lower.len() == 1 && !lower.as_bytes()[0].is_ascii_digit();
    if is_single_letter || is_stop_word(&lower) {
        return None;
    }
    let is_english = lower.bytes().all(|byte| byte.is_ascii_lowercase());
    Some(match if is_english { stemmer.stem(&lower) } else { Cow::Borrowed(lower.as_str()) } {
        Cow::Borrowed(stem) => stem.to_owned(),
        Cow::Owned(stem) => stem,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn identifiers_have_the_terms_of_their_words() {
        for text in ["drainQueue", "drain_queue", "drain queue", "DrainQueue", "DRAIN_QUEUE", "drain-queues"]
        {
            assert_eq!(terms(text), ["drain", "queue"].map(|word| terms(word).remove(0)), "{text}");
        }
        assert_eq!(terms("HTTPServer2xx"), ["http", "server", "2", "xx"]);
        assert_eq!(terms("src/store/rows.rs"), ["src", "store", "row", "rs"]);
    }

    #[test]
    fn stop_words_and_endings_are_removed() {
        assert_eq!(terms("the users weren't retrying Anna’s jobs"), ["user", "retri", "anna", "job"]);
        assert!(terms("what is this, and why?").is_empty());
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        assert_eq!(terms("数据库连接"), ["数据", "据库", "库连", "连接"]);
        assert_eq!(terms("検索test失"), ["検索", "test", "失"]);
        assert_eq!(terms("데이터"), ["데이", "이터"]);
    }

    #[test]
    fn other_scripts_are_split_into_words() {
        assert_eq!(terms("База данных 2024"), ["база", "данных", "2024"]);
        assert_eq!(terms("قاعدة البيانات"), ["قاعدة", "البيانات"]);
        assert!(terms("🚀 ??? --- \"\"").is_empty());
    }

    proptest! {
        #[test]
        fn terms_are_short_and_have_no_spaces(text in any::<String>()) {
            for term in terms(&text) {
                prop_assert!(!term.is_empty() && term.len() <= MAX_TERM_BYTES * 3, "{term:?}");
                prop_assert!(!term.contains(char::is_whitespace), "{term:?}");
            }
        }
    }
}
