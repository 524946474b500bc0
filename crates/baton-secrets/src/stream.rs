//! Redacts secrets in texts that arrive in pieces and are too long to be kept in memory.
//!
//! Pieces are collected until there is enough text to divide. The part before the division is then redacted like a
//! text in memory. A text is divided after a line, unless a private key includes the end of the line: no other secret
//! spans lines. Within a long line, a text is divided where no secret is near. A text that consists of secrets is
//! collected until it can be divided.

use super::assignment::{is_assigned, redact_assigned, scan_assigned};
use super::context;
use super::json::redact_named;
use super::redact::{marker, redact_findings};
use super::rules::Rule;
use super::scan::{Finding, scan};
use super::shapes::{KEY_MAX, key_end, unclosed_key};

/// Number of bytes that are collected before a text is divided.
const WINDOW: usize = 512 * 1024;
/// Minimum number of bytes after a division; more than any rule inspects.
const AHEAD: usize = KEY_MAX + 8 * 1024;
/// Minimum distance of a division within a line from a secret; twice as many bytes as any rule inspects, except for
/// private keys.
const NEAR: usize = 16 * 1024;

/// Redacts the texts of a document one after the other, each in one or more pieces.
#[derive(Debug)]
pub struct Redactor {
    /// Collected text.
    text: String,
    window: usize,
    /// Size of the collected text at which it is divided.
    enough: usize,
    /// True if a part of the current text was written.
    is_begun: bool,
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
        Self::with_window(WINDOW)
    }
}

impl Redactor {
    const fn with_window(window: usize) -> Self {
        Self {
            text: String::new(),
            window,
            enough: window,
            is_begun: false,
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
            self.text.push_str(piece);
        }
        let name = name.filter(|_| !self.is_begun);
        if is_last {
            self.finish(name, clean);
        } else if self.text.len() >= self.enough {
            self.divide(name, clean);
        }
    }

    fn finish(&mut self, name: Option<&str>, clean: &mut String) {
        let unclosed = if self.is_in_list { unclosed_key(&self.text) } else { None };
        self.text.truncate(unclosed.unwrap_or(self.text.len()));
        clean.push_str(&redact_named(&self.text, name));
        if unclosed.is_some() {
            clean.push_str(&marker(Rule::PrivateKey));
            self.key_room = KEY_MAX;
        }
        self.text.clear();
        self.enough = self.window;
        (self.is_begun, self.drops_rest, self.is_marked) = (false, false, false);
    }

    /// Writes the part of the text before a division.
    fn divide(&mut self, name: Option<&str>, clean: &mut String) {
        if let Some(rule) = name.and_then(|name| secret_by_name(name, &self.text)) {
            clean.push_str(&marker(rule));
            self.text.clear();
            (self.is_begun, self.drops_rest) = (true, true);
            return;
        }
        let mut findings = scan(&self.text);
        let Some(at) = division(&self.text, &findings) else {
            self.enough = self.text.len() * 2;
            return;
        };
        let rest = self.text.split_off(at);
        findings.retain(|found| found.end <= at);
        clean.push_str(&redact_assigned(&redact_findings(&self.text, &findings)));
        self.text = rest;
        self.enough = self.window;
        self.is_begun = true;
    }

    /// Removes the part that belongs to a private key of an earlier text of the list, and returns the rest.
    fn without_open_key<'a>(&mut self, piece: &'a str, is_last: bool, clean: &mut String) -> &'a str {
        if self.key_room == 0 || piece.is_empty() {
            return piece;
        }
        if !std::mem::replace(&mut self.is_marked, true) {
            clean.push_str(&marker(Rule::PrivateKey));
        }
        // Half of a line may contain half of a secret.
        let beyond = piece.ceil_char_boundary(self.key_room);
        let next_line = piece.get(beyond..).and_then(|rest| rest.find('\n')).map(|end| beyond + end + 1);
        let end = key_end(piece).or(next_line);
        let room = self.key_room.saturating_sub(piece.len()).max(usize::from(!is_last));
        self.key_room = if end.is_some() { 0 } else { room };
        end.and_then(|end| piece.get(end..)).unwrap_or_default()
    }
}

/// Returns the rule if an incomplete text is one secret, judged by its name and its beginning.
fn secret_by_name(name: &str, text: &str) -> Option<Rule> {
    let shaped = context::entry(name.as_bytes(), text.as_bytes()).and_then(|found| found.rule);
    shaped.or_else(|| is_assigned(name, text).then_some(Rule::AssignedSecret))
}

/// Returns a position at which a text can be divided: its two parts are redacted like the whole.
fn division(text: &str, findings: &[Finding]) -> Option<usize> {
    let limit = text.floor_char_boundary(text.len().saturating_sub(AHEAD));
    let mut lines = text.get(..limit)?;
    while let Some(end) = lines.rfind('\n') {
        let next = findings.partition_point(|found| found.end <= end + 1);
        match findings.get(next).filter(|found| found.start <= end) {
            Some(key) => lines = lines.get(..key.start)?,
            None => return Some(end + 1),
        }
    }
    let mut secrets = [findings, &scan_assigned(text)].concat();
    secrets.sort_by_key(|secret| secret.end);
    let mut at = limit;
    for secret in secrets.iter().rev() {
        if secret.end + NEAR <= at {
            break;
        }
        at = at.min(secret.start.saturating_sub(NEAR));
    }
    let at = text.floor_char_boundary(at);
    // A part of a word may have another meaning than the word.
    let from = text.floor_char_boundary(at.saturating_sub(NEAR / 2));
    let blank = text.get(from..at)?.rfind(' ');
    Some(blank.map_or(at, |blank| from + blank + 1)).filter(|at| *at > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{redact, scan};
    use proptest::prelude::*;

    const SMALL: usize = AHEAD + NEAR + 40 * 1024;

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
        "2026-11-15 INFO request é handled in 12 ms, id=7\n".chars().cycle().take(bytes).collect()
    }

    #[test]
    fn a_secret_is_found_wherever_a_window_ends() {
        let (key, body) = ("RSA PRIVATE KEY", "MIIEowIBAAKCAQEAn6Zl1bH9f3".repeat(120));
        let secrets = [
            token(),
            format!("Authorization: Bearer {}", "a1B2".repeat(20)),
            format!("DB_PASSWORD={}", "hunter2x".repeat(4)),
            "postgres://app:s3cr3tpa55@db/x".to_owned(),
            format!("-----BEGIN {key}-----\n1: {body}\n2: -----END {key}-----"),
        ];
        let mut redactor = Redactor::with_window(SMALL);
        for secret in &secrets {
            for shift in (0..6_000).step_by(293) {
                let before = filler(SMALL - AHEAD - 3_000 + shift);
                let text = format!("{before} {secret}\n{}", filler(SMALL));
                let expected = redact_named(&text, None);
                let found = stream(&mut redactor, None, &text, 40_000);
                assert!(found == expected && found != text, "{secret} at {}", before.len());
            }
        }
    }

    #[test]
    fn long_line_is_divided_where_no_secret_is_near() {
        let mut redactor = Redactor::with_window(SMALL);
        let line = filler(30_000).replace('\n', " ");
        for part in [
            format!("{line} Authorization: Bearer {} {line}", "a1B2".repeat(20)),
            format!("{line}{{\"password\":\"{}\"}}{line}", "hunter2x".repeat(4)),
            format!("{line} curl -u me:hunter2hunter2 {line}"),
            line.replace(' ', ""),
        ] {
            let text = part.repeat(12);
            let expected = redact_named(&text, None);
            assert!(stream(&mut redactor, None, &text, 20_000) == expected, "{}", &part[30_000..]);
            assert!(redactor.text.capacity() < 2 * SMALL, "{}", redactor.text.capacity());
        }
    }

    #[test]
    fn collected_text_is_bounded_if_every_line_contains_a_secret() {
        let mut redactor = Redactor::with_window(SMALL);
        let line = format!("INFO DB_PASSWORD={} {}\n", "hunter2x".repeat(4), token());
        let text = line.repeat(20_000);
        assert!(stream(&mut redactor, None, &text, 20_000) == redact_named(&text, None));
        assert!(redactor.text.capacity() < 3 * SMALL, "{}", redactor.text.capacity());
    }

    #[test]
    fn window_grows_for_a_secret_that_fills_it() {
        let mut redactor = Redactor::with_window(SMALL);
        let text = format!("{}\n{}{}\nafter", filler(50_000), token(), "x1".repeat(SMALL));
        let expected = redact(&text);
        assert!(stream(&mut redactor, None, &text, 30_000) == expected);
        assert!(stream(&mut redactor, None, "again", 30_000) == "again");
    }

    #[test]
    fn long_text_of_a_secret_name_is_redacted_completely() {
        let mut redactor = Redactor::with_window(SMALL);
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
        let mut redactor = Redactor::with_window(SMALL);
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
            let clean = stream(&mut Redactor::with_window(SMALL), None, &text, piece);
            prop_assert_eq!(scan(&clean), []);
            prop_assert_eq!(&clean, &redact_named(&text, None));
        }
    }
}
