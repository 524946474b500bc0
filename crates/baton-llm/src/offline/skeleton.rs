//! Removes function bodies from a large source. The rest is enough to find the definitions and is parsed in a fraction
//! of the time.
//!
//! Bodies are recognized by indentation, which works for formatted sources. In other sources fewer definitions are
//! found.

use std::borrow::Cow;

use super::language::Language;

/// Sources up to this size are parsed unmodified.
pub(super) const WHOLE_BYTES: usize = 32 * 1024;
/// A source with a longer line is assumed to be generated and is not parsed.
const MAX_LINE_BYTES: usize = 4_000;

/// A source and the reduced text that is parsed.
pub(super) struct Source<'a> {
    /// The text to parse.
    pub(super) text: Cow<'a, str>,
    /// The unmodified source.
    pub(super) whole: &'a str,
    /// For every line of `text`, its start, end and number in `whole`. `None` if both are equal.
    lines: Option<Vec<Line>>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
    number: usize,
}

impl<'a> Source<'a> {
    /// Reduces a source if it is large. Returns `None` for generated sources.
    pub(super) fn of(language: Language, whole: &'a str) -> Option<Self> {
        if whole.len() <= WHOLE_BYTES && whole.lines().all(|line| line.len() <= MAX_LINE_BYTES) {
            return Some(Self { text: Cow::Borrowed(whole), whole, lines: None });
        }
        let mut text = String::with_capacity(whole.len() / 3);
        let mut lines = Vec::new();
        let mut headers: Vec<Header> = Vec::new();
        let mut strings = Strings::default();
        let mut is_kept = false;
        let mut start = 0;
        for (number, with_end) in whole.split_inclusive('\n').enumerate() {
            let line = with_end.trim_end_matches(['\n', '\r']);
            let place = Line { start, end: start + line.len(), number };
            start += with_end.len();
            if line.len() > MAX_LINE_BYTES {
                return None;
            }
            let bare = line.trim_start();
            // The lines of a string are kept if its first line is.
            if strings.read(language, line) {
                if is_kept {
                    text.push_str(line);
                    text.push('\n');
                    lines.push(place);
                }
                continue;
            }
            is_kept = false;
            if bare.is_empty() || bare.starts_with("//") || bare.starts_with('*') {
                continue;
            }
            let indent = indent_of(line);
            let same = pop_deeper(&mut headers, indent);
            if headers.last().is_none_or(|header| header.is_open) {
                // A line that continues a header belongs to that header.
                let continues = bare.starts_with(['{', ')', '}', ']']) || bare.starts_with("where");
                let is_open = if continues { same.unwrap_or(false) } else { is_container(language, bare) };
                headers.push(Header { indent, is_open, has_body: false });
                is_kept = true;
                text.push_str(line);
                text.push('\n');
                lines.push(place);
            } else if language == Language::Python
                && let Some(header) = headers.last_mut()
                && !std::mem::replace(&mut header.has_body, true)
            {
                // A Python function needs a body.
                text.push_str(line.get(..line.len() - bare.len()).unwrap_or_default());
                text.push_str("pass\n");
                lines.push(place);
            }
        }
        Some(Self { text: Cow::Owned(text), whole, lines: Some(lines) })
    }

    /// Returns the line number of a node and its byte range in the unmodified source.
    pub(super) fn place(
        &self,
        node: &tree_sitter::Node<'_>,
        language: Language,
    ) -> (usize, std::ops::Range<usize>) {
        let (first, last) = (node.start_position().row, node.end_position().row);
        let Some(lines) = &self.lines else { return (first, node.byte_range()) };
        let (Some(start), Some(end)) = (lines.get(first), lines.get(last)) else { return (first, 0..0) };
        // In Python the body is replaced by `pass`, so the node extends to the next line that was kept.
        let end = match lines.get(last + 1) {
            Some(next) if language == Language::Python => next.start,
            None if language == Language::Python => self.whole.len(),
            _ => end.end,
        };
        (start.number, start.start..end)
    }
}

/// Finds the lines that are inside a string of several lines.
#[derive(Default)]
struct Strings {
    /// The mark that ends the open string.
    open: Option<String>,
}

impl Strings {
    /// Reads a line. Returns true if it begins inside a string.
    fn read(&mut self, language: Language, line: &str) -> bool {
        let is_inside = self.open.is_some();
        let mut rest = line;
        while !rest.is_empty() {
            rest = match self.open.take() {
                Some(end) => match rest.split_once(end.as_str()) {
                    Some((_, after)) => after,
                    None => {
                        self.open = Some(end);
                        return is_inside;
                    }
                },
                None => self.skip_code(language, rest),
            };
        }
        is_inside
    }

    /// Skips code up to the next string of several lines, a comment or the end. Returns the rest of the line.
    fn skip_code<'a>(&mut self, language: Language, line: &'a str) -> &'a str {
        let comment = if language == Language::Python { "#" } else { "//" };
        let mut quote: Option<char> = None;
        let mut letters = line.char_indices();
        while let Some((at, letter)) = letters.next() {
            let rest = line.get(at..).unwrap_or_default();
            match quote {
                Some(_) if letter == '\\' => drop(letters.next()),
                Some(open) if letter == open => quote = None,
                Some(_) => {}
                None if rest.starts_with(comment) => return "",
                None => {
                    if let Some((length, end)) = opening(language, rest) {
                        self.open = Some(end);
                        return rest.get(length..).unwrap_or_default();
                    }
                    // An apostrophe in Rust is usually a lifetime.
                    quote = (letter == '"' || letter == '\'' && language != Language::Rust).then_some(letter);
                }
            }
        }
        ""
    }
}

/// Returns the length of the mark that opens a string of several lines, and the mark that ends the string.
fn opening(language: Language, rest: &str) -> Option<(usize, String)> {
    let marks: &[&str] = match language {
        Language::Python | Language::Java => &["\"\"\"", "'''"],
        Language::Rust => {
            let hashes = rest.strip_prefix('r')?.bytes().take_while(|byte| *byte == b'#').count();
            let is_raw = rest.as_bytes().get(hashes + 1) == Some(&b'"');
            return is_raw.then(|| (hashes + 2, format!("\"{}", "#".repeat(hashes))));
        }
        _ => &["`"],
    };
    marks.iter().find(|mark| rest.starts_with(**mark)).map(|mark| (mark.len(), (*mark).to_owned()))
}

struct Header {
    indent: usize,
    /// Whether the lines inside are kept.
    is_open: bool,
    has_body: bool,
}

/// Removes headers that do not contain a line of this indentation. Returns whether one of the same indentation was
/// open.
fn pop_deeper(headers: &mut Vec<Header>, indent: usize) -> Option<bool> {
    let mut same = None;
    while let Some(last) = headers.last().filter(|header| header.indent >= indent) {
        same = (last.indent == indent).then_some(last.is_open);
        headers.pop();
    }
    same
}

fn indent_of(line: &str) -> usize {
    line.bytes()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .map(|byte| if byte == b'\t' { 4 } else { 1 })
        .sum()
}

/// Returns true if a line starts a definition that contains functions.
fn is_container(language: Language, line: &str) -> bool {
    let mut words = line
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .take(6);
    match language {
        Language::Rust => words.any(|word| matches!(word, "impl" | "trait" | "mod")),
        Language::Go => {
            line.ends_with('(') && words.next().is_some_and(|word| matches!(word, "type" | "const" | "var"))
        }
        Language::Python => {
            words.next().is_some_and(|word| matches!(word, "class" | "if" | "else" | "try" | "except"))
        }
        Language::Java => words.any(|word| matches!(word, "class" | "interface" | "enum" | "record")),
        Language::TypeScript | Language::Tsx | Language::JavaScript => {
            words.any(|word| matches!(word, "class" | "namespace" | "module"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skeleton(language: Language, start: &str) -> String {
        // The filler makes the source large and is removed completely.
        let whole = format!("{start}\n{}", "    // filler filler filler filler\n".repeat(2_000));
        Source::of(language, &whole).unwrap().text.into_owned()
    }

    #[test]
    fn bodies_are_removed_and_definitions_kept() {
        let rust = "impl A\nwhere\n    A: B,\n{\n    fn one(&self) {\n        work();\n    }\n}\nfn two(\n    x: u8,\n) -> u8 {\n    x\n}";
        assert_eq!(
            skeleton(Language::Rust, rust),
            "impl A\nwhere\n    A: B,\n{\n    fn one(&self) {\n    }\n}\nfn two(\n) -> u8 {\n}\n"
        );
        let python = "class A:\n    def one(self):\n        x()\n        y()\n    def two(self): pass\n\ndef f():\n    z()";
        assert_eq!(
            skeleton(Language::Python, python),
            "class A:\n    def one(self):\n        pass\n    def two(self): pass\ndef f():\n    pass\n"
        );
    }

    #[test]
    fn text_in_a_string_of_several_lines_is_no_code() {
        let go = "func One(t *testing.T) {\n\twrite(t, `package x\n\nfunc inside() {\n}\n`, \"a`b\")\n}\n\nvar page = `\nfunc shown() {\n`\n\nfunc Two() { // it's\n\twork()\n}";
        assert_eq!(
            skeleton(Language::Go, go),
            "func One(t *testing.T) {\n}\nvar page = `\nfunc shown() {\n`\nfunc Two() { // it's\n}\n"
        );
        let python = "def one():\n    x = \"\"\"\ndef inside():\n\"\"\"\n    y()\n\ndef two():\n    z()";
        assert_eq!(skeleton(Language::Python, python), "def one():\n    pass\ndef two():\n    pass\n");
        let rust = "fn one<'a>() {\n    let x = r#\"\nfn inside() {\n\"#;\n}\nfn two() {\n    y()\n}";
        assert_eq!(skeleton(Language::Rust, rust), "fn one<'a>() {\n}\nfn two() {\n}\n");
    }

    #[test]
    fn generated_sources_are_skipped() {
        assert!(Source::of(Language::JavaScript, &"a".repeat(5_000)).is_none());
    }
}
