//! Extraction of facts, independent of the compressor, so that the measurement is not biased.

use std::collections::BTreeSet;

/// Kinds of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A file: a word with an extension of one to five letters that has a slash or a known extension.
    Path,
    /// An identifier: `snake_case`, `camelCase` or `HTTPServer`, of five letters or more.
    Identifier,
    /// A test name: an identifier that begins with `Test` and a capital letter, or with `test_`.
    Test,
    /// A number of two digits or more, or with decimals.
    Number,
    /// An error line: one of its first three words is `error`, `failed`, `panic`, `fatal` or similar. Only in the
    /// output of a command or a failed tool.
    Error,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: &[Self] = &[Self::Path, Self::Identifier, Self::Test, Self::Number, Self::Error];
}

/// A kind and its text.
pub(crate) type Fact = (Kind, String);

const EXTENSIONS: &[&str] = &[
    "go", "rs", "py", "ts", "tsx", "js", "jsx", "java", "md", "json", "jsonl", "yml", "yaml", "toml", "sh",
    "txt", "lock", "sql", "css", "html", "mod", "sum", "log",
];

/// Number of compared words of an error line, and how many of five must be kept.
const ERROR_WORDS: usize = 12;
const MIN_KEPT_OF_FIVE: usize = 4;

/// Finds the paths, identifiers, tests and numbers in a text.
pub(crate) fn find(text: &str, cwd: &str) -> BTreeSet<Fact> {
    let mut found = BTreeSet::new();
    let text = plain(text);
    let of_path =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '/' | '@' | '~' | '+');
    for word in text.split(|letter: char| !of_path(letter)) {
        let word = word.trim_matches(['.', '-']);
        let word = word.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/')).unwrap_or(word);
        // Prefixes of the paths in a diff.
        let word = word.strip_prefix("a/").or_else(|| word.strip_prefix("b/")).unwrap_or(word);
        if is_path(word) {
            found.insert((Kind::Path, word.to_owned()));
        }
    }
    for word in words(&text) {
        if is_test(word) {
            found.insert((Kind::Test, word.to_owned()));
        } else if is_identifier(word) {
            found.insert((Kind::Identifier, word.to_owned()));
        }
    }
    found.extend(numbers(&text).map(|number| (Kind::Number, number.to_owned())));
    found
}

/// Finds error lines.
pub(crate) fn find_errors(text: &str) -> BTreeSet<Fact> {
    const MARKS: &[&str] = &["error", "errors", "fail", "failed", "panic", "fatal", "exception", "traceback"];
    let is_error = |line: &str| {
        let mut first = line
            .split_whitespace()
            .take(3)
            .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
        first.any(|word| MARKS.contains(&word.to_lowercase().as_str())) && line.trim().len() > 10
    };
    let text = plain(text);
    text.lines().filter(|line| is_error(line)).map(|line| (Kind::Error, beginning(line))).collect()
}

/// Text of an observation, prepared to look up facts.
pub(crate) struct ObservationText {
    text: String,
    words: BTreeSet<String>,
    numbers: BTreeSet<String>,
}

impl ObservationText {
    /// Prepares the text of an observation.
    pub(crate) fn of(text: &str) -> Self {
        Self {
            words: words(text).map(str::to_owned).collect(),
            numbers: numbers(text).map(str::to_owned).collect(),
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }

    /// Returns true if the observation contains the fact.
    pub(crate) fn contains(&self, (kind, words): &Fact) -> bool {
        match kind {
            Kind::Identifier | Kind::Test => self.words.contains(words),
            Kind::Number => self.numbers.contains(words),
            Kind::Error => {
                let all = self::words(words).count();
                self::words(words).filter(|word| self.words.contains(*word)).count() * 5
                    >= all * MIN_KEPT_OF_FIVE
            }
            Kind::Path => {
                self.text.contains(words.as_str())
                    || words.rsplit_once('/').is_some_and(|(folder, name)| {
                        self.text.contains(&format!("{folder}/:")) && self.text.contains(name)
                    })
            }
        }
    }
}

/// Removes terminal escapes and replaces escaped line ends and tabs with spaces.
fn plain(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else if letter == '\\' && letters.as_str().starts_with(['n', 't', 'r']) {
            letters.next();
            kept.push(' ');
        } else {
            kept.push(letter);
        }
    }
    kept
}

fn beginning(line: &str) -> String {
    line.split_whitespace().take(ERROR_WORDS).collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

fn is_path(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let is_ending =
        (1..=5).contains(&ending.len()) && ending.chars().all(|letter| letter.is_ascii_alphabetic());
    is_ending
        && !stem.is_empty()
        && !word.contains("//")
        && (word.contains('/') || EXTENSIONS.contains(&ending))
}

fn is_test(word: &str) -> bool {
    let rest =
        word.strip_prefix("Test").filter(|rest| rest.starts_with(|letter: char| letter.is_ascii_uppercase()));
    rest.or_else(|| word.strip_prefix("test_")).is_some_and(|rest| rest.len() > 1)
}

fn is_identifier(word: &str) -> bool {
    let letters: Vec<char> = word.chars().collect();
    if letters.len() < 5 || letters.first().is_none_or(char::is_ascii_digit) {
        return false;
    }
    let inner_underscore = word.trim_matches('_').contains('_');
    let small_then_capital = letters
        .iter()
        .zip(letters.iter().skip(1))
        .any(|(a, b)| !a.is_ascii_uppercase() && *a != '_' && b.is_ascii_uppercase());
    let capitals_then_small = letters
        .iter()
        .zip(letters.iter().skip(1))
        .zip(letters.iter().skip(2))
        .any(|((a, b), c)| a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_lowercase());
    inner_underscore || small_then_capital || capitals_then_small
}

fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let between = |letter: char| !letter.is_alphanumeric() && !matches!(letter, '.' | '_' | '-' | '/');
    text.split(between).map(|word| word.trim_matches('.')).filter(|word| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        (2..=9).contains(&digits) && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}
