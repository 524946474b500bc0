//! Excerpt of a text that is too long for memory: head, tail, and error and summary lines from the middle.

use std::borrow::Cow;

use super::truncate::{Budget, truncate};

/// Builds an excerpt of a text that arrives in pieces. The text is truncated whenever its size has doubled.
#[derive(Debug)]
pub(super) struct Excerpt {
    text: String,
    budget: Budget,
    /// Size in bytes from which on the text is truncated.
    enough: usize,
}

impl Excerpt {
    pub(super) const fn new(budget: Budget) -> Self {
        Self { text: String::new(), budget, enough: 2 * budget.total }
    }

    pub(super) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        if self.text.len() >= self.enough {
            self.truncate();
            self.enough = 2 * self.budget.total.max(self.text.len());
        }
    }

    /// Returns the excerpt with truncation markers and resets the builder.
    pub(super) fn finish(&mut self) -> String {
        self.truncate();
        self.enough = 2 * self.budget.total;
        std::mem::take(&mut self.text)
    }

    fn truncate(&mut self) {
        if let Cow::Owned(excerpt) = truncate(&self.text, self.budget) {
            self.text = excerpt;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truncate::{count_lines, is_truncation_marker};
    use crate::truncate_output;
    use proptest::prelude::*;

    fn excerpt(text: &str, total: usize, middle: usize, piece: usize) -> String {
        let mut excerpt = Excerpt::new(Budget { total, middle, counts_lines: true });
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
            assert_eq!(excerpt(&text, 200, 0, 7), text);
        }
        let long = "line\n".repeat(100_000);
        let mut whole = Excerpt::new(Budget { total: long.len(), middle: 0, counts_lines: true });
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
        let kept = excerpt(&text, 4_000, 600, 777);
        assert!(kept.len() < 5_000 && kept.starts_with("first\n") && kept.ends_with("\nlast"), "{kept}");
        for line in ["error[E0308]: mismatched types", "test result: FAILED. 3 passed; 1 failed"] {
            assert_eq!(kept.lines().filter(|kept| *kept == line).count(), 1, "{kept}");
        }
        assert!(
            kept.lines().all(|line| text.contains(line) || line.starts_with("[... truncated ")),
            "{kept}"
        );
        // Truncating the excerpt again counts missing characters once.
        let (shown, direct) = (truncate_output(&kept).into_owned(), text.chars().count());
        assert_eq!(present(&shown) + missing(&shown), direct);
    }

    #[test]
    fn overlong_lines_and_many_errors_are_bounded() {
        let kept = excerpt(&"x".repeat(500_000), 2_000, 200, 9_999);
        let kept_characters = kept.bytes().filter(|byte| *byte == b'x').count();
        assert_eq!((kept.len() < 3_000, missing(&kept) + kept_characters), (true, 500_000));
        let errors: String = (0..20_000).map(|number| format!("error: number {number}\n")).collect();
        let kept = excerpt(&errors, 40_000, 38_000, 9_999);
        assert!(kept.contains("error: number 100\n") && kept.len() < 50_000, "{}", kept.len());
        let counts: String = (0..20_000).map(|number| format!("{number} passed\n")).collect();
        let kept = excerpt(&counts, 40_000, 38_000, 9_999);
        assert!(kept.contains("\n19500 passed\n") && kept.len() < 50_000, "{}", kept.len());
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
        text.lines().filter(|line| is_truncation_marker(line)).map(|line| {
            let count = line.strip_prefix("[... truncated ").unwrap().split(' ').next().unwrap();
            (line, count.parse().unwrap())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn markers_count_all_missing_characters_and_lines(lines in prop::collection::vec("[a-zé ]{0,30}(error: x)?\n", 0..400), ends in 200..2_000_usize, piece in 1..3_000_usize) {
            let text = lines.concat();
            let kept = excerpt(&text, 2 * ends, ends / 2, piece);
            prop_assert_eq!(missing(&kept) + present(&kept), text.chars().count());
            prop_assert_eq!(count_lines(&kept), text.lines().count());
        }

        #[test]
        fn markers_count_long_lines(lines in prop::collection::vec("(error: é|[a-z ]{0,9})( x{380,500})?\n", 0..120), ends in 1_500..4_000_usize, piece in 1..3_000_usize) {
            let text = lines.concat();
            prop_assert_eq!(count_lines(&excerpt(&text, 2 * ends, ends / 2, piece)), text.lines().count());
        }
    }
}
