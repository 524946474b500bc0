//! Splits keys of any naming style into words.

/// Splits a key into lower-case words: `userGoal`, `user_goal`, `User Goal` and `user-goal` are the same two words.
///
/// A change of case starts a word, as do digits after letters; all other characters are separators.
pub(super) fn split(key: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous = Kind::Separator;
    let mut rest = key.chars().peekable();
    while let Some(c) = rest.next() {
        let kind = Kind::of(c);
        let ends_acronym =
            previous == Kind::Upper && kind == Kind::Upper && rest.peek().is_some_and(|c| c.is_lowercase());
        let starts = match (previous, kind) {
            (Kind::Lower, Kind::Upper | Kind::Digit) | (Kind::Upper, Kind::Digit) => true,
            (Kind::Digit, Kind::Upper | Kind::Lower) => true,
            _ => ends_acronym,
        };
        if (starts || kind == Kind::Separator) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if kind != Kind::Separator {
            word.extend(c.to_lowercase());
        }
        previous = kind;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns the possible singulars of an English plural.
pub(super) fn singulars(word: &str) -> impl Iterator<Item = String> {
    let strip = |ending| word.strip_suffix(ending).filter(|stem: &&str| stem.len() > 2);
    let keeps_its_s = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    let plain = strip("s").filter(|_| !keeps_its_s).map(str::to_owned);
    let candidates = [plain, strip("es").map(str::to_owned), strip("ies").map(|stem| format!("{stem}y"))];
    candidates.into_iter().flatten()
}

/// Returns true if a text contains Japanese or Chinese characters, which are written without spaces between words.
pub(super) fn is_unspaced(word: &str) -> bool {
    word.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Separator,
    Lower,
    Upper,
    Digit,
}

impl Kind {
    fn of(c: char) -> Self {
        if c.is_uppercase() {
            Self::Upper
        } else if c.is_ascii_digit() {
            Self::Digit
        } else if c.is_alphabetic() || is_mark(c) {
            Self::Lower
        } else {
            Self::Separator
        }
    }
}

/// Returns true for combining marks, as in decomposed `é`.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_every_naming_style_into_the_same_words() {
        for key in [
            "userGoalText",
            "user_goal_text",
            "USER-GOAL-TEXT",
            "User Goal Text",
            "user.goal/text",
            "UserGoalText",
        ] {
            assert_eq!(split(key), ["user", "goal", "text"], "{key}");
        }
        assert_eq!(split("HTTPResponseBody"), ["http", "response", "body"]);
        assert_eq!(split("step2Result"), ["step", "2", "result"]);
        assert_eq!(split("nächsteSchritte"), ["nächste", "schritte"]);
        assert_eq!(split("次のステップ"), ["次のステップ"]);
        assert!(split("__--  ").is_empty());
    }

    #[test]
    fn finds_singulars_of_plurals() {
        for (plural, one) in
            [("goals", "goal"), ("queries", "query"), ("responses", "response"), ("indexes", "index")]
        {
            assert!(singulars(plural).any(|found| found == one), "{plural}");
        }
        for word in ["status", "analysis", "progress", "is", "goal"] {
            assert_eq!(singulars(word).count(), 0, "{word}");
        }
    }
}
