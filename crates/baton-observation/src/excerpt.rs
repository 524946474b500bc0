//! Excerpt of a text that is too long for memory: head, tail, and error and summary lines from the middle.

use std::collections::VecDeque;

use baton_core::first_characters;

use super::cut::{LineKind, MIDDLE_LINE_CHARS, Missing, line_kind, mark};

/// Maximum size of the head, and of the tail, in bytes.
const END_BYTES: usize = 1024 * 1024;
/// Maximum size in bytes of summary lines, and of error lines, from the middle.
const MIDDLE_BYTES: usize = 64 * 1024;

/// Builds an excerpt of a text that arrives in pieces.
#[derive(Debug)]
pub(super) struct Excerpt {
    end_bytes: usize,
    head: String,
    /// Text after the head that is not yet known to be in the middle.
    tail: String,
    middle: Option<Middle>,
}

impl Excerpt {
    /// Keeps the whole text.
    pub(super) const fn whole() -> Self {
        Self::with_ends(usize::MAX)
    }

    /// Keeps head, tail and selected lines.
    pub(super) const fn bounded() -> Self {
        Self::with_ends(END_BYTES)
    }

    const fn with_ends(end_bytes: usize) -> Self {
        Self { end_bytes, head: String::new(), tail: String::new(), middle: None }
    }

    pub(super) fn push(&mut self, piece: &str) {
        let room = self.end_bytes.saturating_sub(self.head.len());
        let (head, tail) = piece.split_at(piece.floor_char_boundary(room));
        // Once there is text after the head, the head does not grow.
        if self.tail.is_empty() && self.middle.is_none() {
            self.head.push_str(head);
            self.tail.push_str(tail);
        } else {
            self.tail.push_str(piece);
        }
        if self.tail.len() / 2 > self.end_bytes {
            let keep_from = self.tail.floor_char_boundary(self.tail.len() - self.end_bytes);
            self.discard(keep_from);
        }
    }

    /// Moves the start of the tail to the middle, where only error and summary lines are kept.
    fn discard(&mut self, until: usize) {
        let middle = self.middle.get_or_insert_with(|| Middle::after(&mut self.head));
        middle.take(self.tail.get(..until).unwrap_or_default());
        self.tail.drain(..until);
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
        if let Some(middle) = self.middle.take() {
            middle.write(&mut text);
        }
        text.push_str(&self.tail);
        self.tail.clear();
        text
    }
}

/// The text between head and tail.
#[derive(Debug)]
struct Middle {
    /// Position after the head.
    from: Position,
    /// Position of the next character.
    at: Position,
    /// Start of the current line, and its position.
    line: String,
    line_at: Position,
    /// Last summary lines, which usually cover the whole run.
    summaries: VecDeque<Line>,
    /// First error lines; later ones are often consequences.
    errors: Vec<Line>,
    /// Remaining bytes for summary lines and for error lines.
    room: [usize; 2],
}

/// Position in a text: number of characters and of newlines before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    chars: usize,
    line_ends: usize,
}

impl Position {
    fn after(self, text: &str) -> Self {
        let line_ends = text.bytes().filter(|byte| *byte == b'\n').count();
        Self { chars: self.chars + text.chars().count(), line_ends: self.line_ends + line_ends }
    }
}

#[derive(Debug)]
struct Line {
    at: Position,
    text: String,
}

impl Middle {
    /// Starts after a head. An incomplete last line of the head is moved to the middle, if it starts in the second
    /// half.
    fn after(head: &mut String) -> Self {
        let half = head.floor_char_boundary(head.len() / 2);
        let end = head.get(half..).and_then(|rest| rest.rfind('\n')).map_or(head.len(), |end| half + end + 1);
        let cut_off = head.split_off(end);
        let from = Position { chars: 0, line_ends: 0 }.after(head);
        let mut middle = Self {
            from,
            at: from,
            line: String::new(),
            line_at: from,
            summaries: VecDeque::new(),
            errors: Vec::new(),
            room: [MIDDLE_BYTES; 2],
        };
        middle.take(&cut_off);
        middle
    }

    fn take(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            // The rest of a long line is ignored.
            if self.line.len() < 4 * MIDDLE_LINE_CHARS {
                self.line.push_str(first_characters(part, MIDDLE_LINE_CHARS));
            }
            self.at = self.at.after(part);
            if part.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let shown = first_characters(&self.line, MIDDLE_LINE_CHARS);
        let [summary_room, error_room] = &mut self.room;
        let line = || Line { at: self.line_at, text: shown.to_owned() };
        match line_kind(shown) {
            Some(LineKind::Summary) => {
                self.summaries.push_back(line());
                *summary_room = summary_room.saturating_sub(shown.len());
                while *summary_room == 0
                    && let Some(oldest) = self.summaries.pop_front()
                {
                    *summary_room += oldest.text.len();
                }
            }
            Some(LineKind::Error) if shown.len() <= *error_room => {
                self.errors.push(line());
                *error_room -= shown.len();
            }
            Some(LineKind::Error) | None => {}
        }
        self.line.clear();
        self.line_at = self.at;
    }

    fn write(mut self, text: &mut String) {
        if !self.line.is_empty() {
            self.end_line();
        }
        let mut lines: Vec<Line> = self.summaries.into_iter().chain(self.errors).collect();
        lines.sort_by_key(|line| line.at);
        let mut at = self.from;
        for line in lines {
            mark_between(text, at, line.at);
            text.push_str(&line.text);
            at = line.at.after(&line.text);
        }
        mark_between(text, at, self.at);
    }
}

/// Appends a marker for the text between two positions.
fn mark_between(text: &mut String, from: Position, to: Position) {
    // If only the start of a line is shown, its newline does not count as a missing line.
    let is_within = !text.is_empty() && !text.ends_with('\n');
    let lines = (to.line_ends - from.line_ends).saturating_sub(usize::from(is_within));
    mark(text, Missing { chars: to.chars - from.chars, lines });
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
        let mut whole = Excerpt::whole();
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
