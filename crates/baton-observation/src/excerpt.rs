//! Excerpt of a text that is too long for memory: head, tail, and error and summary lines from the middle.

use baton_core::first_characters;

use super::cut::{LineKind, MIDDLE_LINE_CHARS, Missing, line_kind, mark, read_mark};

/// Maximum size of the head, and of the tail, in bytes.
const END_BYTES: usize = 1024 * 1024;
/// Maximum size in bytes of summary lines, and of error lines, from the middle.
const MIDDLE_BYTES: usize = 64 * 1024;

/// Builds an excerpt of a text that arrives in pieces.
#[derive(Debug)]
pub(super) struct Excerpt {
    end_bytes: usize,
    is_head_only: bool,
    head: String,
    /// Text after the head that is not yet known to be in the middle.
    tail: String,
    middle: Option<Middle>,
}

impl Excerpt {
    /// Keeps head, tail and selected lines.
    pub(super) const fn bounded() -> Self {
        Self::with_ends(END_BYTES)
    }

    /// Keeps only the head.
    pub(super) fn beginning(bytes: usize) -> Self {
        Self { is_head_only: true, ..Self::with_ends(bytes) }
    }

    const fn with_ends(end_bytes: usize) -> Self {
        Self { end_bytes, is_head_only: false, head: String::new(), tail: String::new(), middle: None }
    }

    pub(super) fn push(&mut self, piece: &str) {
        let room = self.end_bytes.saturating_sub(self.head.len());
        let (head, tail) = piece.split_at(piece.floor_char_boundary(room));
        // Once there is text after the head, the head does not grow.
        if self.tail.is_empty() && self.middle.is_none() {
            self.head.push_str(head);
            self.tail.push_str(tail);
        } else if !self.is_head_only {
            self.tail.push_str(piece);
        }
        if self.tail.len() / 2 > self.end_bytes && !self.is_head_only {
            let keep_from = self.tail.floor_char_boundary(self.tail.len() - self.end_bytes);
            let lines = self.tail.get(..keep_from).and_then(|lines| lines.rfind('\n'));
            self.discard(lines.map_or(keep_from, |end| end + 1));
        }
    }

    /// Moves the start of the tail to the middle, where only error and summary lines are kept.
    fn discard(&mut self, until: usize) {
        let mut moved = String::new();
        let middle = self.middle.get_or_insert_with(|| {
            // An incomplete last line of the head is moved as well, if it starts in the second half.
            let half = self.head.floor_char_boundary(self.head.len() / 2);
            let newline = self.head.get(half..).and_then(|rest| rest.rfind('\n'));
            moved = self.head.split_off(newline.map_or(self.head.len(), |end| half + end + 1));
            Middle { from: self.head.len(), ..Middle::default() }
        });
        moved.push_str(self.tail.get(..until).unwrap_or_default());
        self.tail.drain(..until);
        middle.take(&moved, &mut self.head);
    }

    /// Returns the excerpt with truncation markers and resets the builder.
    pub(super) fn finish(&mut self) -> String {
        if self.middle.is_some() {
            // Start the tail with a whole line, if one starts in its first half.
            let first = self.tail.floor_char_boundary(self.tail.len().saturating_sub(self.end_bytes));
            let half = self.tail.floor_char_boundary(self.tail.len().saturating_sub(self.end_bytes / 2));
            let line = self.tail.get(first..half).and_then(|lines| lines.find('\n'));
            self.discard(line.map_or(first, |end| first + end + 1));
        }
        let mut text = std::mem::take(&mut self.head);
        if let Some(mut middle) = self.middle.take() {
            middle.mark(&mut text);
        }
        if !self.is_head_only {
            text.push_str(&self.tail);
        }
        self.tail.clear();
        text
    }
}

/// The text between head and tail. The lines that are kept are appended to the head.
#[derive(Debug, Default)]
struct Middle {
    /// End of the head.
    from: usize,
    /// Size of the text since the last line that was kept.
    missing: Missing,
    /// True if the last line was incomplete.
    is_in_line: bool,
    /// Sizes of the error lines and of the summary lines in bytes.
    errors: usize,
    summaries: usize,
}

impl Middle {
    fn take(&mut self, text: &str, shown: &mut String) {
        for line in text.split_inclusive('\n') {
            let start = first_characters(line, MIDDLE_LINE_CHARS);
            let is_start = !std::mem::replace(&mut self.is_in_line, !line.ends_with('\n'));
            let room = match line_kind(start).filter(|_| is_start) {
                Some(LineKind::Summary) => Some(&mut self.summaries),
                // The first errors are kept; later ones are often consequences.
                Some(LineKind::Error) => {
                    Some(&mut self.errors).filter(|used| **used + start.len() <= MIDDLE_BYTES)
                }
                None => None,
            };
            let is_kept = room.map(|used| *used += start.len()).is_some();
            self.add(line, is_kept, shown);
            if self.summaries > MIDDLE_BYTES {
                self.drop_summaries(shown);
            }
        }
    }

    /// Keeps the start of a line, or counts the line as missing.
    fn add(&mut self, line: &str, is_kept: bool, shown: &mut String) {
        let mut rest = line;
        if is_kept {
            self.mark(shown);
            let start = first_characters(line, MIDDLE_LINE_CHARS);
            shown.push_str(start);
            rest = line.get(start.len()..).unwrap_or_default();
        }
        self.missing.chars += rest.chars().count();
        self.missing.lines += usize::from(rest.ends_with('\n'));
    }

    /// Drops the first summary lines. The last ones usually cover the whole run.
    fn drop_summaries(&mut self, shown: &mut String) {
        let after = std::mem::take(&mut self.missing);
        for line in shown.split_off(self.from).split_inclusive('\n') {
            if let Some(Missing { chars, lines }) = read_mark(line.trim_end()) {
                self.missing.chars += chars;
                self.missing.lines += lines;
                continue;
            }
            let is_dropped = self.summaries > MIDDLE_BYTES / 2 && line_kind(line) == Some(LineKind::Summary);
            self.summaries -= if is_dropped { line.len().min(self.summaries) } else { 0 };
            self.add(line, !is_dropped, shown);
        }
        self.missing.chars += after.chars;
        self.missing.lines += after.lines;
    }

    /// Appends a marker for the missing text.
    fn mark(&mut self, shown: &mut String) {
        let Missing { chars, lines } = std::mem::take(&mut self.missing);
        // If only the start of a line is shown, its newline does not count as a missing line.
        let is_within = !shown.is_empty() && !shown.ends_with('\n');
        mark(shown, Missing { chars, lines: lines.saturating_sub(usize::from(is_within)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::{count_lines, is_cut_mark};
    use crate::cut_output;
    use proptest::prelude::*;

    fn excerpt(text: &str, end_bytes: usize, piece: usize) -> String {
        let mut excerpt = Excerpt::with_ends(end_bytes);
        let mut rest = text;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.ceil_char_boundary(piece.min(rest.len())));
            excerpt.push(now);
            rest = later;
        }
        excerpt.finish()
    }

    #[test]
    fn short_text_is_unchanged() {
        for bytes in [0, 1, 100, 300] {
            let text = "é\n".repeat(bytes / 3);
            assert_eq!(excerpt(&text, 100, 7), text);
        }
        let long = "line\n".repeat(100_000);
        let mut whole = Excerpt::with_ends(usize::MAX);
        whole.push(&long);
        assert!(whole.finish() == long && whole.finish().is_empty());
    }

    #[test]
    fn keeps_head_tail_errors_and_summaries() {
        let noise = "compiling é something or other\n";
        let text = format!(
            "first\n{}error[E0308]: mismatched types\n{}test result: FAILED. 3 passed; 1 failed\n{}last",
            noise.repeat(300),
            noise.repeat(400),
            noise.repeat(500)
        );
        let kept = excerpt(&text, 2_000, 777);
        assert!(kept.len() < 5_000 && kept.starts_with("first\n") && kept.ends_with("\nlast"), "{kept}");
        for line in ["error[E0308]: mismatched types", "test result: FAILED. 3 passed; 1 failed"] {
            assert_eq!(kept.lines().filter(|kept| *kept == line).count(), 1, "{kept}");
        }
        assert!(
            kept.lines().all(|line| text.contains(line) || line.starts_with("[... truncated ")),
            "{kept}"
        );
        // Truncating the excerpt again counts missing characters once.
        let (shown, direct) = (cut_output(&kept).into_owned(), text.chars().count());
        assert_eq!(present(&shown) + missing(&shown), direct);
    }

    #[test]
    fn overlong_lines_and_many_errors_are_bounded() {
        let kept = excerpt(&"x".repeat(500_000), 1_000, 9_999);
        let kept_characters = kept.bytes().filter(|byte| *byte == b'x').count();
        assert_eq!((kept.len() < 3_000, missing(&kept) + kept_characters), (true, 500_000));
        let errors: String = (0..20_000).map(|number| format!("error: number {number}\n")).collect();
        let kept = excerpt(&errors, 1_000, 9_999);
        assert!(kept.contains("error: number 100\n") && kept.len() < 3 * MIDDLE_BYTES, "{}", kept.len());
        let counts: String = (0..20_000).map(|number| format!("{number} passed\n")).collect();
        let kept = excerpt(&counts, 1_000, 9_999);
        assert!(kept.contains("\n19500 passed\n") && kept.len() < 3 * MIDDLE_BYTES, "{}", kept.len());
    }

    /// Returns the number of characters that the markers of a text count.
    fn missing(text: &str) -> usize {
        marks(text).map(|(_, count)| count).sum()
    }

    /// Returns the number of original characters in a text.
    fn present(text: &str) -> usize {
        text.chars().count() - marks(text).map(|(line, _)| line.len() + 1).sum::<usize>()
    }

    fn marks(text: &str) -> impl Iterator<Item = (&str, usize)> {
        text.lines().filter(|line| is_cut_mark(line)).map(|line| {
            let count = line.strip_prefix("[... truncated ").unwrap().split(' ').next().unwrap();
            (line, count.parse().unwrap())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn markers_count_all_missing_characters_and_lines(lines in prop::collection::vec("[a-zé ]{0,30}(error: x)?\n", 0..400), ends in 200..2_000_usize, piece in 1..3_000_usize) {
            let text = lines.concat();
            let kept = excerpt(&text, ends, piece);
            prop_assert_eq!(missing(&kept) + present(&kept), text.chars().count());
            prop_assert_eq!(count_lines(&kept), text.lines().count());
        }

        #[test]
        fn markers_count_long_lines(lines in prop::collection::vec("(error: é|[a-z ]{0,9})( x{380,500})?\n", 0..120), ends in 1_500..4_000_usize, piece in 1..3_000_usize) {
            let text = lines.concat();
            prop_assert_eq!(count_lines(&excerpt(&text, ends, piece)), text.lines().count());
        }
    }
}
