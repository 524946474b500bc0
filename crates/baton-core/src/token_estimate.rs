//! Estimated number of model tokens in a text.
//!
//! The estimate is an upper bound for almost every text: it counts what tokenizers count (words, groups of three digits,
//! runs of punctuation, characters outside ASCII) with costs fitted to real tool output. `benches/tokens.rs` compares it
//! with real tokenizers.

/// Costs in hundredths of a token.
mod cost {
    /// One run of lower-case letters, with the capitals before it.
    pub(super) const WORD: usize = 106;
    /// Each letter of a word after the fourth.
    pub(super) const LONG_WORD_LETTER: usize = 5;
    /// Each letter of a word after the twelfth: compound words are not in any vocabulary.
    pub(super) const COMPOUND_LETTER: usize = 25;
    /// Each letter of an all-capitals word after the first.
    pub(super) const CAPITAL: usize = 14;
    /// Up to three digits.
    pub(super) const DIGITS: usize = 113;
    /// Each character of a run that looks random, such as base64 or a hash.
    pub(super) const RANDOM_CHARACTER: usize = 75;
    /// Two or more spaces. A single space belongs to the word after it.
    pub(super) const SPACES: usize = 125;
    /// A run of line ends and tabs.
    pub(super) const LINE_ENDS: usize = 100;
    /// The first character of a run of punctuation.
    pub(super) const PUNCTUATION: usize = 108;
    /// Each further character of the run.
    pub(super) const MORE_PUNCTUATION: usize = 12;
    /// Each character of the run after the fourth, in addition.
    pub(super) const LONG_PUNCTUATION: usize = 25;
    /// A character of two or three bytes in UTF-8.
    pub(super) const WIDE_CHARACTER: usize = 110;
    /// A character of four bytes, such as an emoji.
    pub(super) const EMOJI: usize = 300;
}

/// Safety margin in percent on the sum of all costs.
const MARGIN_PERCENT: usize = 106;
/// Shortest run of letters and digits that can count as random.
const MIN_RANDOM_LENGTH: usize = 16;
/// A run counts as random if at least one in this many characters is a digit.
const RANDOM_DIGIT_RATIO: usize = 8;

/// Estimates the number of tokens in a text; real tokenizers rarely count more.
pub fn estimate_tokens(text: &str) -> usize {
    let mut sum = 0;
    let mut rest = text.as_bytes();
    while let Some(&first) = rest.first() {
        let class = Class::of(first);
        let length = match class {
            Class::Wide(length) => length.min(rest.len()),
            _ => rest.iter().take_while(|byte| Class::of(**byte) == class).count(),
        };
        let (run, after) = rest.split_at(length);
        sum += class.cost(run);
        rest = after;
    }
    (sum * MARGIN_PERCENT).div_ceil(100 * 100)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Alphanumeric,
    Space,
    LineEnd,
    Punctuation,
    /// A character outside ASCII and its number of bytes.
    Wide(usize),
}

impl Class {
    const fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => Self::Alphanumeric,
            b' ' => Self::Space,
            b'\t' | b'\n' | b'\r' => Self::LineEnd,
            0..0x80 => Self::Punctuation,
            0xe0..0xf0 => Self::Wide(3),
            0xf0.. => Self::Wide(4),
            _ => Self::Wide(2),
        }
    }

    fn cost(self, run: &[u8]) -> usize {
        match self {
            Self::Alphanumeric => alphanumeric_cost(run),
            Self::Space if run.len() == 1 => 0,
            Self::Space => cost::SPACES,
            Self::LineEnd => cost::LINE_ENDS,
            Self::Punctuation => {
                cost::PUNCTUATION
                    + cost::MORE_PUNCTUATION * (run.len() - 1)
                    + cost::LONG_PUNCTUATION * run.len().saturating_sub(4)
            }
            Self::Wide(4) => cost::EMOJI,
            Self::Wide(_) => cost::WIDE_CHARACTER,
        }
    }
}

/// Adds up the words and numbers of a run such as `parseHTTP2Frame`.
fn alphanumeric_cost(run: &[u8]) -> usize {
    let (mut sum, mut digits) = (0, 0);
    let mut rest = run;
    while !rest.is_empty() {
        let leading = |is: fn(&u8) -> bool, bytes: &[u8]| bytes.iter().take_while(|byte| is(byte)).count();
        let numbers = leading(u8::is_ascii_digit, rest);
        let length = if numbers > 0 {
            digits += numbers;
            sum += cost::DIGITS * numbers.div_ceil(3);
            numbers
        } else {
            let capitals = leading(u8::is_ascii_uppercase, rest);
            let small = leading(u8::is_ascii_lowercase, &rest[capitals..]);
            sum += word_cost(capitals, small);
            capitals + small
        };
        rest = &rest[length..];
    }
    if run.len() >= MIN_RANDOM_LENGTH && digits * RANDOM_DIGIT_RATIO >= run.len() {
        sum = sum.max(cost::RANDOM_CHARACTER * run.len());
    }
    sum
}

const fn word_cost(capitals: usize, small: usize) -> usize {
    let length = capitals + small;
    let all_capitals_cost = if small == 0 { cost::CAPITAL * capitals.saturating_sub(1) } else { 0 };
    cost::WORD
        + cost::LONG_WORD_LETTER * length.saturating_sub(4)
        + cost::COMPOUND_LETTER * length.saturating_sub(12)
        + all_capitals_cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Texts with the larger of the counts of two public tokenizers, o200k_base and Claude's.
    const COUNTED: &[(&str, usize)] = &[
        ("hello world 12345", 5),
        (r#"{"goal":"Ship the importer","decisions":["CSV stays"]}"#, 14),
        ("Die Datenbankverbindungsüberprüfung schlägt häufig fehl.", 19),
        ("我们决定使用数据库来存储会话。下一步是迁移。", 17),
        ("データベースの設計について検討しました。", 19),
        ("한국어 문장입니다. 데이터베이스를 설계합니다.", 21),
        ("3f9a1c0be7d24586a1b2c3d4e5f60718", 25),
        ("😀🎉🚀✅", 9),
    ];

    #[test]
    fn never_counts_less_than_real_tokenizers_on_common_texts() {
        for (text, tokens) in COUNTED {
            let estimate = estimate_tokens(text);
            assert!(estimate >= *tokens, "{text}: {estimate} < {tokens}");
            assert!(estimate <= tokens * 2, "{text}: {estimate} is more than twice {tokens}");
        }
    }

    #[test]
    fn an_empty_text_has_no_tokens() {
        assert_eq!(estimate_tokens(""), 0);
    }

    proptest! {
        #[test]
        fn a_text_never_has_fewer_tokens_than_its_lines(
            first in "[a-zA-Z0-9 {}\":,é世]{0,60}",
            second in "[a-zA-Z0-9 {}\":,é世]{0,60}",
        ) {
            let whole = estimate_tokens(&format!("{first}\n{second}"));
            prop_assert!(whole >= estimate_tokens(&first).max(estimate_tokens(&second)));
        }
    }
}
