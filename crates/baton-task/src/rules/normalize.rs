//! Normalization of task text and diffs, so that hashes are the same on every machine.
//!
//! Rules of `normalize_multiline` 1.0.0: line ends become LF; lines that begin with `#` and blank lines are removed;
//! paragraphs are wrapped at 120 characters between words; bullet lists and fenced code are kept line by line; the text
//! ends with one LF. Normalization is idempotent.

use std::borrow::Cow;

/// Version of the normalization in manifests.
pub const NORMALIZER_VERSION: &str = "1.0.0";

/// Maximum line length in characters.
const WIDTH: usize = 120;

/// Treatment of plain lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Lines are joined and wrapped.
    Wrapped,
    /// Lines are kept, for list items and code.
    Preserved,
}

/// Normalizes text by the rules of this module.
pub fn normalize_multiline(text: &str, layout: Layout) -> String {
    let text = unix_line_ends(text);
    let mut out = Lines { lines: Vec::new(), paragraph: Vec::new() };
    let mut fence: Option<Fence> = None;
    let mut in_bullet = false;
    for line in text.split('\n') {
        if let Some(open) = &fence {
            let closes = open.is_closed_by(line);
            out.keep(line);
            if closes {
                fence = None;
            }
            continue;
        }
        let bare = line.trim_start();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        fence = Fence::opened_by(line);
        let continues = in_bullet && line.starts_with([' ', '\t']);
        in_bullet = fence.is_none() && (is_bullet(bare) || continues);
        if layout == Layout::Preserved || fence.is_some() || in_bullet {
            out.keep(line);
        } else {
            out.paragraph.extend(line.split_whitespace().map(str::to_owned));
        }
    }
    out.finish()
}

/// Normalizes a diff for hashing: LF line ends, and one at the end unless the diff is empty.
pub fn normalize_diff(diff: &[u8]) -> Cow<'_, [u8]> {
    let ends = diff.is_empty() || diff.ends_with(b"\n");
    if ends && !diff.contains(&b'\r') {
        return Cow::Borrowed(diff);
    }
    let mut clean = Vec::with_capacity(diff.len() + 1);
    let mut bytes = diff.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte == b'\r' {
            bytes.next_if_eq(&b'\n');
        }
        clean.push(if byte == b'\r' { b'\n' } else { byte });
    }
    if !clean.is_empty() && !clean.ends_with(b"\n") {
        clean.push(b'\n');
    }
    Cow::Owned(clean)
}

/// Replaces CRLF and lone CR by LF.
pub fn unix_line_ends(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

struct Lines {
    lines: Vec<String>,
    paragraph: Vec<String>,
}

impl Lines {
    fn keep(&mut self, line: &str) {
        self.wrap();
        self.lines.push(line.to_owned());
    }

    /// Wraps the collected words. A word that would start a comment, bullet or fence at the beginning of a line stays
    /// on the previous line even if it exceeds the width. Otherwise a second pass would change the text.
    fn wrap(&mut self) {
        let mut line = String::new();
        let mut width = 0;
        let mut words = std::mem::take(&mut self.paragraph).into_iter().peekable();
        while let Some(mut piece) = words.next() {
            while let Some(glued) = words.next_if(|next| must_not_begin_a_line(next)) {
                piece.push(' ');
                piece.push_str(&glued);
            }
            let length = piece.chars().count();
            if width > 0 && width + 1 + length > WIDTH {
                self.lines.push(std::mem::take(&mut line));
                width = 0;
            }
            if width > 0 {
                line.push(' ');
                width += 1;
            }
            line.push_str(&piece);
            width += length;
        }
        if !line.is_empty() {
            self.lines.push(line);
        }
    }

    fn finish(mut self) -> String {
        self.wrap();
        let mut text = self.lines.join("\n");
        text.truncate(text.trim_end_matches('\n').len());
        text.push('\n');
        text
    }
}

fn must_not_begin_a_line(word: &str) -> bool {
    word.starts_with('#') || is_bullet(word) || Fence::opened_by(word).is_some()
}

/// Returns true if the first word of a line is `-`, `*`, `1.` or `1)`.
fn is_bullet(bare: &str) -> bool {
    let marker = bare.split(char::is_whitespace).next().unwrap_or_default();
    let number = marker.strip_suffix(['.', ')']);
    matches!(marker, "-" | "*")
        || number
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// An open code fence.
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let bare = line.trim_start();
        ['`', '~'].into_iter().find_map(|mark| {
            let length = bare.chars().take_while(|letter| *letter == mark).count();
            (length >= 3).then_some(Self { mark, length })
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let bare = line.trim();
        bare.chars().count() >= self.length && bare.chars().all(|letter| letter == self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wrapped(text: &str) -> String {
        normalize_multiline(text, Layout::Wrapped)
    }

    #[test]
    fn line_ends_are_unified_and_comments_and_blank_lines_removed() {
        assert_eq!(wrapped("a\r\nb\rc\n\n  \t\n# note\n  # note\nd"), "a b c d\n");
        assert_eq!(normalize_multiline("a\r\n\r\n# x\n  b  ", Layout::Preserved), "a\n  b  \n");
        assert_eq!(wrapped(""), "\n");
        assert_eq!(wrapped("a\n\n\n"), "a\n");
    }

    #[test]
    fn plain_text_is_wrapped_between_words_at_120_characters() {
        let text = "word ".repeat(60);
        let lines: Vec<String> = wrapped(&text).lines().map(str::to_owned).collect();
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [119, 119, 59]);
        let long = format!("a {} b", "x".repeat(200));
        assert_eq!(wrapped(&long), format!("a\n{}\nb\n", "x".repeat(200)));
        let umlauts = "ä".repeat(120);
        assert_eq!(wrapped(&umlauts), format!("{umlauts}\n"));
    }

    #[test]
    fn bullet_lists_are_kept_line_by_line() {
        let long = "x ".repeat(100);
        let text = format!("Intro\n\n- one {long}\n  goes on\n* two\n1. three\n2) four\nOutro\nof it");
        let expected = format!("Intro\n- one {long}\n  goes on\n* two\n1. three\n2) four\nOutro of it\n");
        assert_eq!(wrapped(&text), expected);
        assert_eq!(wrapped("**bold** text\n-5 degrees"), "**bold** text -5 degrees\n");
    }

    #[test]
    fn fenced_code_is_unchanged() {
        let text = "See\nthis:\n```py\n# a comment of the code\n\nif x:\n    y()\n```\nand\nthat";
        assert_eq!(
            wrapped(text),
            "See this:\n```py\n# a comment of the code\n\nif x:\n    y()\n```\nand that\n"
        );
        assert_eq!(wrapped("~~~\n```\n# x\n~~~~\na\nb"), "~~~\n```\n# x\n~~~~\na b\n");
        assert_eq!(wrapped("```\nopen\n\n\n"), "```\nopen\n");
    }

    #[test]
    fn wrapping_never_starts_a_line_with_a_comment_bullet_or_fence() {
        let text = format!("{} #12 - 1. ``` end", "x".repeat(119));
        assert_eq!(wrapped(&text), format!("{} #12 - 1. ```\nend\n", "x".repeat(119)));
    }

    #[test]
    fn diffs_hash_the_same_with_any_line_ends() {
        assert_eq!(normalize_diff(b"+a\r\n-b\rc"), normalize_diff(b"+a\n-b\nc\n"));
        assert_eq!(&*normalize_diff(b""), b"");
        assert!(matches!(normalize_diff(b"+a\n\xff\n"), Cow::Borrowed(_)));
    }

    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\n".to_owned()),
            Just("\r\n".to_owned()),
            Just("\n\n".to_owned()),
            Just(" ".to_owned()),
            Just("\n- ".to_owned()),
            Just("\n  ".to_owned()),
            Just("\n# ".to_owned()),
            Just(" #7 ".to_owned()),
            Just(" 1. ".to_owned()),
            Just(" * ".to_owned()),
            Just("\n```".to_owned()),
            Just(" ~~~ ".to_owned()),
            Just("\u{a0}".to_owned()),
            Just("\u{2028}".to_owned()),
            "[a-zä]{1,40}",
            "[ -~]{1,12}",
        ];
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn normalization_is_idempotent(text in text()) {
            for layout in [Layout::Wrapped, Layout::Preserved] {
                let once = normalize_multiline(&text, layout);
                prop_assert_eq!(normalize_multiline(&once, layout), once);
            }
        }

        #[test]
        fn line_ends_do_not_change_the_result(text in text()) {
            let unix = unix_line_ends(&text).into_owned();
            let windows = unix.replace('\n', "\r\n");
            prop_assert_eq!(normalize_multiline(&windows, Layout::Wrapped), normalize_multiline(&unix, Layout::Wrapped));
        }

        #[test]
        fn result_ends_with_one_line_end(text in text()) {
            let clean = normalize_multiline(&text, Layout::Wrapped);
            prop_assert!(clean.ends_with('\n') && !clean.ends_with("\n\n"));
            prop_assert!(!clean.contains('\r'));
        }

        #[test]
        fn diff_normalization_is_idempotent(diff in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..40)) {
            let once = normalize_diff(&diff).into_owned();
            prop_assert_eq!(normalize_diff(&once).into_owned(), once);
        }
    }
}
