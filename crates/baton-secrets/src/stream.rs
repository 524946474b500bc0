//! Redacts secrets in texts that arrive in pieces and are too long to be kept in memory.
//!
//! A long text is redacted in blocks of lines, because no secret except a private key spans lines. A block ends before a
//! private key that may continue after it.

use super::assignment::is_assigned;
use super::context;
use super::json::{redact_found, redact_named};
use super::redact::marker;
use super::rules::Rule;
use super::scan::{Finding, scan};
use super::shapes::{KEY_MAX, key_end, unclosed_key};

/// Number of bytes of a text that are collected before a block is redacted.
const BLOCK: usize = 512 * 1024;
/// Minimum number of bytes after a block; more than any rule inspects.
const AHEAD: usize = KEY_MAX + 8 * 1024;
/// Number of bytes before and after a position at which a line is divided; more than any rule inspects within a line.
const NEAR: usize = 16 * 1024;
/// Maximum number of positions at which the division of a line is tried.
const DIVISIONS: usize = 4;

/// Redacts the texts of a document one after the other, each in one or more pieces. The result is the same as for texts
/// in memory, except that more may be redacted after the start of a private key in a list.
#[derive(Debug)]
pub struct Redactor {
    /// The part of the current text that was not redacted yet.
    held: String,
    block: usize,
    /// Number of held bytes from which on a block is redacted.
    enough: usize,
    /// True if a block of the current text was redacted.
    is_divided: bool,
    /// True if the rest of the current text is dropped, because all of it is one secret.
    drops_rest: bool,
    is_in_list: bool,
    /// Remaining number of bytes that may belong to a private key that began in an earlier text of the list.
    key_room: usize,
    /// True if the current text was marked as a part of such a key.
    is_marked: bool,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::with_block(BLOCK)
    }
}

impl Redactor {
    const fn with_block(block: usize) -> Self {
        Self {
            held: String::new(),
            block,
            enough: block,
            is_divided: false,
            drops_rest: false,
            is_in_list: false,
            key_room: 0,
            is_marked: false,
        }
    }

    /// Sets whether the next texts belong to a list. A private key may span the texts of a list: it is then redacted
    /// up to its closing line, or up to the maximum length of a key.
    pub fn set_in_list(&mut self, is_in_list: bool) {
        if std::mem::replace(&mut self.is_in_list, is_in_list) != is_in_list {
            self.key_room = 0;
        }
    }

    /// Processes the next piece of the text of the entry `name`, and writes the part that is final.
    pub fn push(&mut self, name: Option<&str>, piece: &str, is_last: bool, clean: &mut String) {
        let piece = self.without_open_key(piece, is_last, clean);
        if !self.drops_rest {
            self.held.push_str(piece);
        }
        if is_last {
            self.finish(name, clean);
        } else if self.held.len() >= self.enough {
            self.redact_block(name, clean);
        }
    }

    fn finish(&mut self, name: Option<&str>, clean: &mut String) {
        let unclosed = if self.is_in_list { unclosed_key(&self.held) } else { None };
        self.held.truncate(unclosed.unwrap_or(self.held.len()));
        clean.push_str(&redact_named(&self.held, name.filter(|_| !self.is_divided)));
        if unclosed.is_some() {
            clean.push_str(&marker(Rule::PrivateKey));
            self.key_room = KEY_MAX;
        }
        self.held.clear();
        self.enough = self.block;
        (self.is_divided, self.drops_rest, self.is_marked) = (false, false, false);
    }

    fn redact_block(&mut self, name: Option<&str>, clean: &mut String) {
        if !self.is_divided
            && let Some(rule) = name.and_then(|name| secret_by_name(name, &self.held))
        {
            clean.push_str(&marker(rule));
            self.held.clear();
            self.drops_rest = true;
            return;
        }
        let findings = scan(&self.held);
        let Some(end) = block_end(&self.held, &findings) else {
            self.enough = 2 * self.held.len();
            return;
        };
        let within = findings.partition_point(|found| found.end <= end);
        let (block, within) = (self.held.get(..end), findings.get(..within));
        clean.push_str(&redact_found(block.unwrap_or_default(), within.unwrap_or_default(), None));
        self.held.drain(..end);
        self.enough = self.block;
        self.is_divided = true;
    }

    /// Removes the lines that belong to a private key of an earlier text of the list, and returns the rest.
    fn without_open_key<'a>(&mut self, piece: &'a str, is_last: bool, clean: &mut String) -> &'a str {
        let mut rest = piece;
        while self.key_room > 0 && !rest.is_empty() {
            if !std::mem::replace(&mut self.is_marked, true) {
                clean.push_str(&marker(Rule::PrivateKey));
            }
            let (line, after) = rest.split_at(rest.find('\n').map_or(rest.len(), |end| end + 1));
            if let Some(end) = key_end(line) {
                self.key_room = 0;
                return rest.get(end..).unwrap_or_default();
            }
            // Half of a line may contain half of a secret, so its other half in the next piece is removed as well.
            let is_whole = is_last || line.ends_with('\n');
            self.key_room = self.key_room.saturating_sub(line.len()).max(usize::from(!is_whole));
            rest = after;
        }
        rest
    }
}

/// Returns the rule if an incomplete text is one secret, judged by its name and its beginning.
fn secret_by_name(name: &str, text: &str) -> Option<Rule> {
    let shaped = context::entry(name.as_bytes(), text.as_bytes()).and_then(|found| found.rule);
    shaped.or_else(|| is_assigned(name, text).then_some(Rule::AssignedSecret))
}

/// Returns a position at which a text can be divided into parts that are redacted like the whole: the end of a line, or
/// a position in a line that is longer than a block. Returns `None` if one secret is longer than a block.
fn block_end(text: &str, findings: &[Finding]) -> Option<usize> {
    let last = text.floor_char_boundary(text.len().saturating_sub(AHEAD));
    let around = |at: usize| findings.iter().find(|found| found.start < at && at < found.end);
    let mut until = last;
    while let Some(end) = text.get(..until)?.rfind('\n').filter(|end| *end > 0) {
        match around(end) {
            Some(key) => until = key.start,
            None => return Some(end),
        }
    }
    let marks = text.get(..last)?.rmatch_indices([' ', ',', ';']).map(|(at, _)| at);
    let mut positions = marks.take(DIVISIONS).chain([last]).filter(|at| *at > 0);
    positions.find(|at| around(*at).is_none() && is_divisible(text, *at))
}

/// Returns true if the parts before and after a position are redacted as they are together.
fn is_divisible(text: &str, at: usize) -> bool {
    let start = text.floor_char_boundary(at.saturating_sub(NEAR));
    let end = text.floor_char_boundary(at + NEAR);
    let redacted = |from: usize, to: usize| redact_named(text.get(from..to).unwrap_or_default(), None);
    redacted(start, end).strip_prefix(&*redacted(start, at)) == Some(&redacted(at, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{redact, scan};
    use proptest::prelude::*;

    const SMALL: usize = AHEAD + 56 * 1024;

    fn stream(redactor: &mut Redactor, name: Option<&str>, text: &str, piece: usize) -> String {
        let mut clean = String::new();
        let mut rest = text;
        loop {
            let (now, later) = rest.split_at(rest.ceil_char_boundary(piece.min(rest.len())));
            redactor.push(name, now, later.is_empty(), &mut clean);
            if later.is_empty() {
                return clean;
            }
            rest = later;
        }
    }

    fn token() -> String {
        format!("ghp_{}", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A")
    }

    fn filler(bytes: usize) -> String {
        repeat("2026-11-15 INFO request é handled in 12 ms, id=7\n", bytes)
    }

    fn repeat(text: &str, characters: usize) -> String {
        text.chars().cycle().take(characters).collect()
    }

    #[test]
    fn a_secret_is_found_wherever_a_block_ends() {
        let (key, body) = ("RSA PRIVATE KEY", "MIIEowIBAAKCAQEAn6Zl1bH9f3".repeat(120));
        let secrets = [
            token(),
            format!("Authorization: Bearer {}", "a1B2".repeat(20)),
            format!("DB_PASSWORD={}", "hunter2x".repeat(4)),
            "postgres://app:s3cr3tpa55@db/x".to_owned(),
            format!("-----BEGIN {key}-----\n1: {body}\n2: -----END {key}-----"),
        ];
        let mut redactor = Redactor::with_block(SMALL);
        // Lines, a long line of words, and a long word.
        for filler in ["INFO request é handled in 12 ms, id=7\n", "é handled;", "iVBORw0KGgo+/"] {
            for (secret, shift) in
                secrets.iter().flat_map(|secret| (0..6_000).step_by(293).map(move |at| (secret, at)))
            {
                let before = repeat(filler, SMALL - AHEAD - 3_000 + shift);
                let text = format!("{before} {secret}\n{}", repeat(filler, 2 * SMALL));
                let expected = redact_named(&text, None);
                let found = stream(&mut redactor, None, &text, 40_000);
                assert!(found == expected && found != text, "{secret} at {}", before.len());
            }
        }
    }

    #[test]
    fn block_grows_for_a_secret_that_is_longer() {
        let mut redactor = Redactor::with_block(SMALL);
        let text = format!("{}\n{}{}\nafter", filler(50_000), token(), "x1".repeat(SMALL));
        let expected = redact(&text);
        assert!(stream(&mut redactor, None, &text, 30_000) == expected);
        assert!(stream(&mut redactor, None, "again", 30_000) == "again");
    }

    #[test]
    fn held_text_is_bounded_if_a_long_line_consists_of_secrets() {
        for secret in ["password=abcdEFGH1234ijkl ", "{\"password\":\"abcdEFGH1234ijkl\"},"] {
            let mut redactor = Redactor::with_block(SMALL);
            let text = secret.repeat(100_000);
            assert!(stream(&mut redactor, None, &text, 20_000) == redact_named(&text, None));
            let held = redactor.held.capacity();
            assert!(held < 8 * SMALL, "{held} of {}", text.len());
        }
    }

    #[test]
    fn long_text_of_a_secret_name_is_redacted_completely() {
        let mut redactor = Redactor::with_block(SMALL);
        for name in ["authorization", "client_secret"] {
            let text = "a1B2c3".repeat(SMALL);
            let clean = stream(&mut redactor, Some(name), &text, 50_000);
            assert!(clean.starts_with("[redacted:") && clean.len() < 40, "{name}: {}", clean.len());
        }
        let prose = filler(3 * SMALL);
        assert!(stream(&mut redactor, Some("client_secret"), &prose, 50_000) == prose);
    }

    #[test]
    fn key_that_spans_texts_of_a_list_is_redacted() {
        let lines = [
            "a",
            "1: -----BEGIN PRIVATE KEY----- x",
            "2: LEAK",
            "",
            "LEAK",
            "-----END PRIVATE KEY----- b",
            "c",
        ];
        let mut redactor = Redactor::with_block(SMALL);
        redactor.set_in_list(true);
        let clean = lines.map(|line| stream(&mut redactor, None, line, 100));
        assert_eq!(
            clean,
            [
                "a",
                "1: [redacted:private-key]",
                "[redacted:private-key]",
                "",
                "[redacted:private-key]",
                "[redacted:private-key] b",
                "c"
            ]
        );
        // A file in blocks, with a key that spans two of them.
        let body = "MIIEowIBAAKCAQEAn6Zl1bH9f3MIIEowIBAAKCAQEAn6Zl1bH9f3\n".repeat(8);
        let first = format!("{}-----BEGIN PRIVATE KEY-----\n{body}", filler(2 * SMALL));
        let second = format!("{body}-----END PRIVATE KEY-----\n{}", filler(2 * SMALL));
        let clean = [first, second].map(|block| stream(&mut redactor, None, &block, 60_000));
        assert!(!clean.concat().contains("MIIE"));
        assert!(clean[0].starts_with(&filler(2 * SMALL)) && clean[1].ends_with(&filler(2 * SMALL)));
        // A key that is never closed does not hide the rest of the list.
        stream(&mut redactor, None, "-----BEGIN PRIVATE KEY-----", 100);
        assert_eq!(stream(&mut redactor, None, &"y".repeat(KEY_MAX), 70_000), "[redacted:private-key]");
        assert_eq!(stream(&mut redactor, None, "seen", 100), "seen");
        // The piece ends with a line, because half of a line may contain half of a secret.
        for (piece, tail) in [(1_000, "\nseen"), (90_000, "\nseen"), (1_000, ""), (90_000, "")] {
            stream(&mut redactor, None, "-----BEGIN PRIVATE KEY-----", 100);
            let text = format!("{}DB_PASSWORD={}{tail}", "y\n".repeat(KEY_MAX / 2 - 10), "LEAK1".repeat(20));
            let clean = stream(&mut redactor, None, &text, piece);
            assert_eq!(clean, format!("[redacted:private-key]{}", tail.trim_start()), "{piece}");
            assert_eq!(stream(&mut redactor, None, "seen", 100), "seen");
        }
        stream(&mut redactor, None, "-----BEGIN PRIVATE KEY-----", 100);
        redactor.set_in_list(false);
        assert_eq!(stream(&mut redactor, None, "seen", 100), "seen");
    }

    #[test]
    fn limit_of_an_open_key_may_be_inside_a_character() {
        let mut redactor = Redactor::with_block(SMALL);
        redactor.set_in_list(true);
        stream(&mut redactor, None, "-----BEGIN PRIVATE KEY-----", 100);
        let text = format!("{}é", "a".repeat(KEY_MAX - 1));
        assert_eq!(stream(&mut redactor, None, &text, 2 * KEY_MAX), "[redacted:private-key]");
        assert_eq!(stream(&mut redactor, None, "seen", 100), "seen");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn redacted_text_contains_no_secret(parts in crate::properties::pieces(), gap in 1_000..90_000_usize, piece in 20_000..200_000_usize) {
            let mut text = String::new();
            for part in &parts {
                text.push_str(part);
                text.push_str(&filler(gap));
            }
            text.push_str(&parts.concat());
            let clean = stream(&mut Redactor::with_block(SMALL), None, &text, piece);
            prop_assert_eq!(scan(&clean), []);
            prop_assert_eq!(&clean, &redact_named(&text, None));
        }
    }
}
