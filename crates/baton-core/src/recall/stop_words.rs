//! English words that are too common to distinguish items. They are neither indexed nor searched.

/// Sorted, so that a word is found by binary search. Words are lower case and end before an apostrophe (`don` for
/// `don't`).
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "aren", "as", "at", "be",
    "because", "been", "before", "being", "but", "by", "can", "could", "couldn", "d", "did", "didn", "do",
    "does", "doesn", "doing", "don", "done", "down", "each", "for", "from", "had", "hadn", "has", "hasn",
    "have", "haven", "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in", "into",
    "is", "isn", "it", "its", "just", "ll", "m", "me", "more", "most", "my", "no", "nor", "not", "now", "of",
    "off", "on", "once", "only", "or", "other", "our", "ours", "out", "over", "own", "please", "re", "s",
    "same", "she", "should", "shouldn", "so", "some", "such", "t", "than", "that", "the", "their", "theirs",
    "them", "then", "there", "these", "they", "this", "those", "through", "to", "too", "under", "until",
    "up", "us", "ve", "very", "was", "wasn", "we", "were", "weren", "what", "when", "where", "which",
    "while", "who", "whom", "why", "will", "with", "won", "would", "wouldn", "you", "your", "yours",
];

/// Returns true for a word that is neither indexed nor searched.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("the") && is_stop_word("a") && is_stop_word("yours"));
        assert!(!is_stop_word("queue"));
    }
}
