//! What is kept of a text that is too long to be held: its beginning, its end, and the lines between that say how it went.

use std::collections::VecDeque;

use super::cut::{MIDDLE_LINE_CHARS, Missing, Telling, mark, telling};
use super::plain::first_characters;

/// How much is kept of the beginning, and of the end.
const END_BYTES: usize = 1024 * 1024;
/// How much is kept of lines between that count tests or tell how a build ended, and of those that tell of errors.
const BETWEEN_BYTES: usize = 64 * 1024;

/// A text that comes in pieces.
#[derive(Debug)]
pub(super) struct Excerpt {
    end_bytes: usize,
    head: String,
    /// What follows the head, until it is known to lie between head and tail.
    tail: String,
    between: Option<Between>,
}

impl Excerpt {
    /// Keeps all of it.
    pub(super) const fn whole() -> Self {
        Self::with_ends(usize::MAX)
    }

    /// Keeps no more of it than it takes to understand it.
    pub(super) const fn bounded() -> Self {
        Self::with_ends(END_BYTES)
    }

    const fn with_ends(end_bytes: usize) -> Self {
        Self { end_bytes, head: String::new(), tail: String::new(), between: None }
    }

    pub(super) fn push(&mut self, piece: &str) {
        let room = self.end_bytes.saturating_sub(self.head.len());
        let (head, tail) = piece.split_at(piece.floor_char_boundary(room));
        // Once something follows the head, nothing is added to it.
        if self.tail.is_empty() && self.between.is_none() {
            self.head.push_str(head);
            self.tail.push_str(tail);
        } else {
            self.tail.push_str(piece);
        }
        if self.tail.len() / 2 > self.end_bytes {
            let keep_from = self.tail.floor_char_boundary(self.tail.len() - self.end_bytes);
            self.leave(keep_from);
        }
    }

    /// Lets go of the first of the tail, but for what it tells.
    fn leave(&mut self, until: usize) {
        let between = self.between.get_or_insert_with(|| Between::after(&mut self.head));
        between.take(self.tail.get(..until).unwrap_or_default());
        self.tail.drain(..until);
    }

    /// Gives what is kept, with marks that say how much is missing, and begins anew.
    pub(super) fn finish(&mut self) -> String {
        if self.between.is_some() {
            // The tail begins with a whole line, unless it has hardly any.
            let first = self.tail.floor_char_boundary(self.tail.len().saturating_sub(self.end_bytes));
            let half = self.tail.floor_char_boundary(self.tail.len().saturating_sub(self.end_bytes / 2));
            let line = self.tail.get(first..half).and_then(|lines| lines.find('\n'));
            self.leave(line.map_or(first, |end| first + end + 1));
        }
        let mut text = std::mem::take(&mut self.head);
        if let Some(between) = self.between.take() {
            between.write(&mut text);
        }
        text.push_str(&self.tail);
        self.tail.clear();
        text
    }
}

/// What lies between head and tail.
#[derive(Debug)]
struct Between {
    /// What the head has.
    from: Place,
    /// What came before the next character.
    at: Place,
    /// The beginning of the line at hand, and where it starts.
    line: String,
    line_at: Place,
    /// The last lines that sum up: they are those of the whole.
    summaries: VecDeque<Line>,
    /// The first errors: the later are often their consequences.
    errors: Vec<Line>,
    room: [usize; 2],
}

/// So many characters, and ends of lines among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    chars: usize,
    line_ends: usize,
}

impl Place {
    fn after(self, text: &str) -> Self {
        let line_ends = text.bytes().filter(|byte| *byte == b'\n').count();
        Self { chars: self.chars + text.chars().count(), line_ends: self.line_ends + line_ends }
    }
}

#[derive(Debug)]
struct Line {
    at: Place,
    text: String,
}

impl Between {
    /// Begins behind a head, which ends with a whole line, unless it has hardly any.
    fn after(head: &mut String) -> Self {
        let half = head.floor_char_boundary(head.len() / 2);
        let end = head.get(half..).and_then(|rest| rest.rfind('\n')).map_or(head.len(), |end| half + end + 1);
        let cut_off = head.split_off(end);
        let from = Place { chars: 0, line_ends: 0 }.after(head);
        let mut between = Self {
            from,
            at: from,
            line: String::new(),
            line_at: from,
            summaries: VecDeque::new(),
            errors: Vec::new(),
            room: [BETWEEN_BYTES; 2],
        };
        between.take(&cut_off);
        between
    }

    fn take(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            // The rest of a long line is not looked at.
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
        match telling(shown) {
            Some(Telling::Summary) => {
                self.summaries.push_back(line());
                *summary_room = summary_room.saturating_sub(shown.len());
                while *summary_room == 0
                    && let Some(oldest) = self.summaries.pop_front()
                {
                    *summary_room += oldest.text.len();
                }
            }
            Some(Telling::Error) if shown.len() <= *error_room => {
                self.errors.push(line());
                *error_room -= shown.len();
            }
            Some(Telling::Error) | None => {}
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

/// Says what is missing between two places.
fn mark_between(text: &mut String, from: Place, to: Place) {
    // The end of a line whose beginning is shown ends that line.
    let is_within = !text.is_empty() && !text.ends_with('\n');
    let lines = (to.line_ends - from.line_ends).saturating_sub(usize::from(is_within));
    mark(text, Missing { chars: to.chars - from.chars, lines });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::cut::{count_lines, is_cut_mark};
    use crate::observation::cut_output;
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
    fn what_is_short_stays_whole() {
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
    fn ends_stay_and_what_tells_how_it_went() {
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
        // However it is cut, what is missing is counted once.
        let (shown, direct) = (cut_output(&kept).into_owned(), text.chars().count());
        assert_eq!(present(&shown) + missing(&shown), direct);
    }

    #[test]
    fn lines_without_end_and_endless_errors_are_bounded() {
        let kept = excerpt(&"x".repeat(500_000), 1_000, 9_999);
        let kept_characters = kept.bytes().filter(|byte| *byte == b'x').count();
        assert_eq!((kept.len() < 3_000, missing(&kept) + kept_characters), (true, 500_000));
        let errors: String = (0..20_000).map(|number| format!("error: number {number}\n")).collect();
        let kept = excerpt(&errors, 1_000, 9_999);
        assert!(kept.contains("error: number 100\n") && kept.len() < 3 * BETWEEN_BYTES, "{}", kept.len());
        let counts: String = (0..20_000).map(|number| format!("{number} passed\n")).collect();
        let kept = excerpt(&counts, 1_000, 9_999);
        assert!(kept.contains("\n19500 passed\n") && kept.len() < 3 * BETWEEN_BYTES, "{}", kept.len());
    }

    /// How many characters the marks of a text speak of.
    fn missing(text: &str) -> usize {
        marks(text).map(|(_, count)| count).sum()
    }

    /// How many characters of the original a text has.
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
        fn nothing_is_lost_uncounted(lines in prop::collection::vec("[a-zé ]{0,30}(error: x)?\n", 0..400), ends in 200..2_000_usize, piece in 1..3_000_usize) {
            let text = lines.concat();
            let kept = excerpt(&text, ends, piece);
            prop_assert_eq!(missing(&kept) + present(&kept), text.chars().count());
            prop_assert_eq!(count_lines(&kept), text.lines().count());
        }

        #[test]
        fn long_lines_are_counted_too(lines in prop::collection::vec("(error: é|[a-z ]{0,9})( x{380,500})?\n", 0..120), ends in 1_500..4_000_usize, piece in 1..3_000_usize) {
            let text = lines.concat();
            prop_assert_eq!(count_lines(&excerpt(&text, ends, piece)), text.lines().count());
        }
    }
}
