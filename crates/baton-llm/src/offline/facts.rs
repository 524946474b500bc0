//! Extraction of names and paths from a text, ranked by relevance, and the detail text that they are written to.
//!
//! A name is more relevant the more often it occurs, and less the longer it is: the detail of a large output is filled
//! with the names of the highest value for their length.

use std::collections::{HashMap, HashSet};

use baton_core::shorten;

use super::text::{counted, relative};

/// A paragraph with this many words is a sentence; shorter ones are headings, code and the like.
const SENTENCE_WORDS: usize = 6;
/// Reserved size of the line that states the number of omitted lines.
const LEFT_OUT_BYTES: usize = 24;
/// Maximum number of ranked names.
const MAX_NAMES: usize = 4_000;
/// Maximum number of names that [`Detail::top_names`] lists.
const MAX_LISTED: usize = 16;
/// Maximum length of a line of the detail, in characters.
pub(super) const MAX_DETAIL_LINE: usize = 240;

/// Shortens a line of the detail.
pub(super) fn detail_line(line: &str) -> String {
    shorten(line.trim(), MAX_DETAIL_LINE)
}

/// The detail of an observation, filled up to its size limit. Lines and list items are added as they are; only
/// sentences of the summary and names that were already written are not repeated.
pub(super) struct Detail {
    text: String,
    title_and_summary: String,
    budget: usize,
}

impl Detail {
    /// Creates an empty detail of at most `budget` bytes for a title and a summary.
    pub(super) fn new(budget: usize, title: &str, summary: &str) -> Self {
        Self { text: String::new(), title_and_summary: format!("{title}\n{summary}\n"), budget }
    }

    /// Returns the number of bytes left.
    pub(super) fn left(&self) -> usize {
        self.budget.saturating_sub(self.text.len() + usize::from(!self.text.is_empty()))
    }

    /// Adds text, and leaves `bytes` for the text after it.
    pub(super) fn reserving<T>(&mut self, bytes: usize, add: impl FnOnce(&mut Self) -> T) -> T {
        let whole = self.budget;
        self.budget = whole.saturating_sub(bytes);
        let added = add(self);
        self.budget = whole;
        added
    }

    /// Adds a line, truncated if it is long. Returns false if there was no room.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let line = detail_line(line);
        if line.is_empty() {
            return true;
        }
        if line.len() > self.left() {
            return false;
        }
        self.push(&line);
        true
    }

    /// Adds a paragraph whole, or nothing if there is no room for it or the summary has the same sentence.
    pub(super) fn paragraph(&mut self, text: &str) {
        let text = text.trim();
        let is_sentence = text.split_whitespace().take(SENTENCE_WORDS).count() == SENTENCE_WORDS;
        if !(is_sentence && contains_word(&self.title_and_summary, text)) {
            self.item(text);
        }
    }

    /// Adds an item of a list whole, or nothing if there is no room for it.
    pub(super) fn item(&mut self, text: &str) {
        if !text.is_empty() && text.len() <= self.left() {
            self.push(text);
        }
    }

    /// Adds as many lines as there is room for.
    pub(super) fn lines<T: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = T>) {
        for line in lines {
            if !self.line(line.as_ref()) {
                break;
            }
        }
    }

    /// Adds all lines, or as many as there is room for and the number of the others.
    pub(super) fn counted_lines<T: AsRef<str>>(&mut self, lines: &[T]) {
        let size: usize = lines.iter().map(|line| detail_line(line.as_ref()).len() + 1).sum();
        let reserved = if size <= self.left() + 1 { 0 } else { LEFT_OUT_BYTES };
        let shown = self
            .reserving(reserved, |detail| lines.iter().take_while(|line| detail.line(line.as_ref())).count());
        if shown < lines.len() {
            self.line(&format!("[{} left out]", counted(lines.len() - shown, "line")));
        }
    }

    /// Adds the lines that the detail does not have yet, as many as there is room for.
    pub(super) fn other_lines<T: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = T>) {
        let known: HashSet<String> = self.text.lines().map(str::to_owned).collect();
        self.lines(lines.into_iter().filter(|line| !known.contains(&detail_line(line.as_ref()))));
    }

    /// Adds a list on one line: `Names: a, b, c`. States the number of items that do not fit.
    pub(super) fn list<T: AsRef<str>>(&mut self, label: &str, items: impl IntoIterator<Item = T>) {
        let mut line = format!("{label}: ");
        let empty = line.len();
        let mut left_out = 0;
        let mut listed = HashSet::new();
        for item in items {
            let item = detail_line(item.as_ref());
            if item.is_empty() || !listed.insert(item.clone()) {
                continue;
            }
            // Leaves room for the number of omitted items.
            if left_out > 0 || line.len() + item.len() + 12 > self.left() {
                left_out += 1;
                continue;
            }
            if line.len() > empty {
                line.push_str(", ");
            }
            line.push_str(&item);
        }
        if line.len() == empty {
            return;
        }
        if left_out > 0 {
            line.push_str(&format!(" (+{left_out})"));
        }
        self.push(&line);
    }

    /// Adds the names of a text with the highest value for their length.
    pub(super) fn names(&mut self, label: &str, names: &[&str]) {
        let mut line = format!("{label}: ");
        let empty = line.len();
        let room = self.left();
        let known: HashSet<&str> = words(&self.title_and_summary).chain(words(&self.text)).collect();
        for name in names.iter().filter(|name| !known.contains(**name)) {
            if line.len() + name.len() + 2 > room {
                continue;
            }
            if line.len() > empty {
                line.push_str(", ");
            }
            line.push_str(name);
            if line.len() + 8 > room {
                break;
            }
        }
        if line.len() > empty {
            self.push(&line);
        }
    }

    /// Adds the first [`MAX_LISTED`] names that the observation does not contain yet.
    pub(super) fn top_names(&mut self, label: &str, names: &[&str]) {
        let new: Vec<&str> =
            names.iter().copied().filter(|name| !self.contains_words(name)).take(MAX_LISTED).collect();
        self.names(label, &new);
    }

    pub(super) fn title_ends_with(&self, text: &str) -> bool {
        self.title_and_summary.lines().next().is_some_and(|title| title.ends_with(text))
    }

    /// Returns true if nothing was added yet.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns true if the title, the summary or the detail already contains the words.
    pub(super) fn contains_words(&self, words: &str) -> bool {
        contains_word(&self.title_and_summary, words) || contains_word(&self.text, words)
    }

    pub(super) fn finish(self) -> Option<String> {
        (!self.text.trim().is_empty()).then_some(self.text)
    }

    fn push(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }
}

/// Returns true if a text contains a word that is not part of a longer word.
fn contains_word(text: &str, word: &str) -> bool {
    let is_word_byte =
        |letter: Option<u8>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
    text.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| text.as_bytes().get(at)).copied();
        !is_word_byte(before) && !is_word_byte(text.as_bytes().get(at + word.len()).copied())
    })
}

/// Returns the compound names in a text (`parse_header`, `SessionState`), highest value for their length first.
pub(super) fn names(text: &str) -> Vec<&str> {
    let mut counts: HashMap<&str, (u32, usize)> = HashMap::new();
    for (position, word) in words(text).enumerate().filter(|(_, word)| is_name(word)) {
        let room = counts.len() < MAX_NAMES;
        match counts.get_mut(word) {
            Some((count, _)) => *count += 1,
            None if room => {
                counts.insert(word, (1, position));
            }
            None => {}
        }
    }
    let mut ranked: Vec<(&str, u32, usize)> =
        counts.into_iter().map(|(word, (count, position))| (word, count, position)).collect();
    // The value of a name is its count divided by the square of its length plus two, in integer arithmetic.
    let value = |word: &str, count: u32| u64::from(count) * 1_000_000 / (word.len() as u64 + 2).pow(2);
    ranked.sort_by(|a, b| value(b.0, b.1).cmp(&value(a.0, a.1)).then(a.2.cmp(&b.2)));
    ranked.into_iter().map(|(word, ..)| word).collect()
}

/// Splits a text into words. The letter of an escape sequence (`\n`, `\t`) is not part of a word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut after_backslash = false;
    text.split(move |letter: char| {
        let is_escape =
            std::mem::replace(&mut after_backslash, letter == '\\') && matches!(letter, 'n' | 't' | 'r');
        is_escape || !letter.is_ascii_alphanumeric() && letter != '_'
    })
    .filter(|word| !word.is_empty())
}

/// Returns true for a compound word: `snake_case`, `camelCase`, `HTTPServer`.
pub(super) fn is_name(word: &str) -> bool {
    if !(4..=60).contains(&word.len()) || word.starts_with(|letter: char| letter.is_ascii_digit()) {
        return false;
    }
    let bytes = word.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits * 3 > bytes.len() {
        return false;
    }
    word.trim_matches('_').contains('_')
        || bytes.windows(2).any(|pair| {
            matches!(pair, [a, b] if (a.is_ascii_lowercase() || a.is_ascii_digit()) && b.is_ascii_uppercase())
        })
        || bytes.windows(3).any(|three| {
            matches!(three, [a, b, c] if a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_lowercase())
        })
}

/// Returns the file paths in a text, relative to the agent's folder, most frequent first.
pub(super) fn paths<'a>(text: &'a str, cwd: Option<&str>) -> Vec<&'a str> {
    let mut counts: HashMap<&str, (u32, usize)> = HashMap::new();
    let separates = |letter: char| {
        letter.is_whitespace()
            || matches!(
                letter,
                '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ',' | ';' | '=' | '|'
            )
    };
    for (position, word) in text.split(separates).enumerate() {
        if !word.as_bytes().contains(&b'.') {
            continue;
        }
        let word = word.split(':').next().unwrap_or(word).trim_end_matches(['.', '/', '!', '?']);
        if is_path(word) && counts.len() < MAX_NAMES {
            counts.entry(relative(word, cwd)).or_insert((0, position)).0 += 1;
        }
    }
    // A file name without a folder counts for the path with the same name.
    let mut by_name: HashMap<&str, (u32, usize)> = counts.clone();
    by_name.retain(|path, _| !path.contains('/'));
    let mut ranked: Vec<(&str, u32, usize)> = Vec::with_capacity(counts.len());
    let mut folders: Vec<(&str, (u32, usize))> =
        counts.into_iter().filter(|(path, _)| path.contains('/')).collect();
    folders.sort_by_key(|(_, (_, position))| *position);
    for (path, (count, position)) in folders {
        let bare = path.rsplit('/').next().and_then(|name| by_name.remove(name));
        let (more, earlier) = bare.unwrap_or((0, position));
        ranked.push((path, count + more, position.min(earlier)));
    }
    ranked.extend(by_name.into_iter().map(|(path, (count, position))| (path, count, position)));
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.2.cmp(&b.2)));
    ranked.into_iter().map(|(path, ..)| path).collect()
}

/// Returns true if a word is a file path: it has an extension, and either a folder or a known extension.
pub(super) fn is_path(word: &str) -> bool {
    if !(3..=200).contains(&word.len()) {
        return false;
    }
    let name = word.rsplit('/').next().unwrap_or(word);
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let fits = (1..=8).contains(&ending.len())
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !word.bytes().any(|byte| matches!(byte, b'\\' | b'*' | b'%' | b'$' | b'+' | b'&'));
    if !fits || word.contains("//") || word.contains("...") {
        return false;
    }
    let is_known =
        KNOWN_ENDINGS.contains(&ending) || matches!(name, "Cargo.lock" | "go.mod" | "go.sum" | "yarn.lock");
    word.contains('/') || is_known && !stem.is_empty()
}

/// Extensions that are not used as member names in source code.
const KNOWN_ENDINGS: &[&str] = &[
    "rs", "py", "pyi", "ts", "tsx", "js", "jsx", "mjs", "cjs", "go", "java", "kt", "cc", "cpp", "hpp", "cs",
    "rb", "php", "swift", "scala", "sh", "bash", "zsh", "sql", "md", "rst", "txt", "json", "jsonl", "yml",
    "yaml", "toml", "cfg", "ini", "xml", "html", "css", "scss", "vue", "svelte", "proto", "graphql", "csv",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ranked_by_value() {
        let text = "err := parseHeader(ctx); parseHeader; aVeryLongNameThatOccursOnlyOnce HTTPServer snake_case x1 ABC the";
        assert_eq!(
            names(text),
            ["parseHeader", "HTTPServer", "snake_case", "aVeryLongNameThatOccursOnlyOnce"]
        );
        assert!(!is_name("deadbeef1234567A"));
        assert!(!is_name("Session"));
    }

    #[test]
    fn paths_are_found_among_words() {
        let text = "at /home/dev/app/src/a.rs:12:3 (see docs/x.md, README.md) https://a.b/c.html v1.2 e.g. foo/bar.baz a.b";
        assert_eq!(paths(text, Some("/home/dev/app")), ["src/a.rs", "docs/x.md", "README.md", "foo/bar.baz"]);
    }

    #[test]
    fn lines_and_items_are_kept_even_if_other_text_contains_them() {
        let mut detail =
            Detail::new(200, "Check if dupl is installed", "`which dupl || echo \"dupl not found\"` ran.");
        detail.lines(["dupl not found", "return nil", "return nil"]);
        detail.list("Files", ["src/a.rs", "a.rs"]);
        assert_eq!(detail.finish().unwrap(), "dupl not found\nreturn nil\nreturn nil\nFiles: src/a.rs, a.rs");
    }

    #[test]
    fn detail_stays_within_its_size_limit() {
        let mut detail = Detail::new(40, "Run parse_header", "");
        detail.list("Names", ["alpha_one", "alpha_one", "beta_two", "gamma_three", "delta_four"]);
        let text = detail.finish().unwrap();
        assert_eq!(text, "Names: alpha_one, beta_two (+2)");
        let mut some = Detail::new(40, "", "");
        some.counted_lines(&["first line", "second line", "third line", "fourth line"]);
        assert_eq!(some.finish().unwrap(), "first line\n[3 lines left out]");
        let mut small = Detail::new(10, "", "");
        assert!(!small.line("much longer than ten"));
        assert_eq!(small.finish(), None);
    }
}
