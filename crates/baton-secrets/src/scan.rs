//! The single pass over the text that finds every rule's secrets.
//!
//! Owns the table of heads, word boundaries and the order of findings. The formats of the rules are in
//! `rules`, `shapes` and `context`.

use super::context;
use super::rules::{ANCHORS, Anchor, Case, Edge, Rule, Shape};
use super::shapes::{self, Match};

/// Rule and byte span of a match in the scanned text, never the matched text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that matched.
    pub rule: Rule,
    /// The first byte of the secret.
    pub start: usize,
    /// The byte after the secret.
    pub end: usize,
}

/// Finds the secrets in `text`, in order and without overlap. Spans begin and end on character boundaries.
#[must_use]
pub fn scan(text: &str) -> Vec<Finding> {
    scan_bytes(text.as_bytes())
}

/// Finds the secrets in bytes that need not be UTF-8, in order and without overlap.
#[must_use]
pub fn scan_bytes(bytes: &[u8]) -> Vec<Finding> {
    let mut scanner = Scanner::new(bytes, usize::MAX);
    scanner.sweep(0, bytes.len());
    scanner.findings
}

/// Returns true if `text` contains a secret. Stops at the first one.
#[must_use]
pub fn contains_secret(text: &str) -> bool {
    let mut scanner = Scanner::new(text.as_bytes(), 1);
    scanner.sweep(0, text.len());
    !scanner.findings.is_empty()
}

/// Finds the secrets in `text`, the value of an object entry or header whose name is `key`.
pub(super) fn scan_entry(key: &str, text: &str) -> Vec<Finding> {
    let mut scanner = Scanner::new(text.as_bytes(), usize::MAX);
    let resume = match context::entry(key.as_bytes(), text.as_bytes()) {
        Some(found) => scanner.keep(0, found, text.len()),
        None => 0,
    };
    scanner.sweep(resume, text.len());
    scanner.findings
}

const HEAD_LENGTH: usize = 4;

/// Maximum overlap of a secret with a following one that ends later. Bounds the work for hostile text.
const JOINED_MAX: usize = 256;

/// For each of a head's four positions and each byte, the anchors whose literal allows that byte there.
static HEADS: [[u128; 256]; HEAD_LENGTH] = heads();

const fn heads() -> [[u128; 256]; HEAD_LENGTH] {
    assert!(ANCHORS.len() <= 128, "more anchors than bits of a u128");
    let mut heads = [[0; 256]; HEAD_LENGTH];
    let mut position = 0;
    while position < HEAD_LENGTH {
        let mut index = 0;
        while index < ANCHORS.len() {
            let literal = ANCHORS[index].literal.as_bytes();
            let ignore_case = matches!(ANCHORS[index].case, Case::Ignored);
            let mut byte = 0;
            while byte < 256 {
                let allowed = position >= literal.len()
                    || literal[position] == byte as u8
                    || (ignore_case && literal[position].eq_ignore_ascii_case(&(byte as u8)));
                if allowed {
                    heads[position][byte] |= 1 << index;
                }
                byte += 1;
            }
            index += 1;
        }
        position += 1;
    }
    heads
}

/// Returns the anchors that may begin with these four bytes, one bit each.
fn anchors_at(head: &[u8; HEAD_LENGTH]) -> u128 {
    let [first, second, third, fourth] = *head;
    let [firsts, seconds, thirds, fourths] = &HEADS;
    let bits = firsts[usize::from(first)] & thirds[usize::from(third)];
    // Most positions are excluded here, with half of the lookups.
    if bits == 0 {
        return 0;
    }
    bits & seconds[usize::from(second)] & fourths[usize::from(fourth)]
}

/// Returns the next position at or after `from` where an anchor may begin. Every secret has at least four
/// bytes, so the last three positions are skipped.
fn next_head(text: &[u8], from: usize) -> Option<(usize, u128)> {
    let heads = text.get(from..)?.array_windows::<HEAD_LENGTH>();
    heads.enumerate().map(|(offset, head)| (from + offset, anchors_at(head))).find(|(_, bits)| *bits != 0)
}

struct Scanner<'a> {
    bytes: &'a [u8],
    findings: Vec<Finding>,
    limit: usize,
    /// End of the last secret or marker. It is a word boundary, and no rule inspects text before it.
    floor: usize,
    /// No JWT begins before this position. Without this, text that consists of JWT heads would take quadratic
    /// time.
    jwt_from: usize,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8], limit: usize) -> Self {
        Self { bytes, findings: Vec::new(), limit, floor: 0, jwt_from: 0 }
    }

    /// Scans from `from` as if the text ended at `to`.
    fn sweep(&mut self, from: usize, to: usize) {
        let bytes = self.bytes;
        let text = bytes.get(..to).unwrap_or(bytes);
        let mut at = from;
        while self.findings.len() < self.limit
            && let Some((place, bits)) = next_head(text, at)
        {
            at = match self.match_at(text, place, bits) {
                Some(found) => self.keep(place + 1, found, to),
                None => place + 1,
            };
        }
    }

    /// Records the findings between `gap_start` and a match, then the match, and returns the position to continue
    /// at.
    ///
    /// The gap is the text before the secret, such as the user name of a URL, and may contain a secret
    /// itself.
    fn keep(&mut self, gap_start: usize, found: Match, to: usize) -> usize {
        let text = self.bytes.get(..to).unwrap_or(self.bytes);
        let mut found = found;
        if gap_start <= found.start {
            self.sweep(gap_start, found.start);
            found = self.match_whole(text, found).unwrap_or(found);
        }
        if let Some(rule) = found.rule
            && self.findings.len() < self.limit
        {
            found.end = self.outlasting_end(text, found);
            self.findings.push(Finding { rule, start: found.start, end: found.end });
        }
        self.floor = found.end;
        found.end
    }

    /// Returns a match of the same secret by its own format instead of the text before it.
    fn match_whole(&mut self, text: &[u8], found: Match) -> Option<Match> {
        let head = text.get(found.start..)?.first_chunk()?;
        let precise = self.match_at(text, found.start, anchors_at(head))?;
        (precise.start == found.start && precise.end >= found.end).then_some(precise)
    }

    /// Returns the end of `found`, or of a secret that begins within it and ends later, for example if two
    /// secrets are joined by a dash.
    fn outlasting_end(&mut self, text: &[u8], found: Match) -> usize {
        let mut end = found.end;
        let mut at = found.start + 1;
        loop {
            at = at.max(end.saturating_sub(JOINED_MAX));
            let near = text.get(..end + HEAD_LENGTH - 1).unwrap_or(text);
            let Some((place, bits)) = next_head(near, at) else { return end };
            if let Some(joined) = self.match_at(text, place, bits).filter(|joined| joined.rule.is_some()) {
                end = end.max(joined.end);
            }
            at = place + 1;
        }
    }

    /// Returns the first match of the anchors in `bits` at a position.
    fn match_at(&mut self, text: &[u8], at: usize, bits: u128) -> Option<Match> {
        let mut rest = bits;
        while rest != 0 {
            let index = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if let Some(anchor) = ANCHORS.get(index)
                && let Some(found) = self.match_anchor(text, at, anchor)
            {
                return Some(found);
            }
        }
        None
    }

    fn match_anchor(&mut self, text: &[u8], at: usize, anchor: &Anchor) -> Option<Match> {
        let literal = anchor.literal.as_bytes();
        let after = at + literal.len();
        let present = text.get(at..after)?;
        let matches = match anchor.case {
            Case::Exact => present == literal,
            Case::Ignored => present.eq_ignore_ascii_case(literal),
        };
        let before = text.get(self.floor..at)?;
        if !matches || (anchor.edge == Edge::Word && !at_word_edge(before)) {
            return None;
        }
        match anchor.shape {
            Shape::Token(run) => shapes::token(text, at, after, run),
            Shape::Pattern(run) => shapes::pattern(text, at, after, run),
            Shape::Jwt if at < self.jwt_from => None,
            Shape::Jwt => match shapes::jwt(text, at, after) {
                Ok(found) => Some(found),
                Err(next_possible) => {
                    self.jwt_from = next_possible;
                    None
                }
            },
            Shape::PrivateKey => shapes::private_key(text, at, after, self.floor),
            Shape::SlackToken => shapes::slack_token(text, at, after),
            Shape::SlackWebhook => shapes::slack_webhook(text, at, after),
            Shape::BatonToken => shapes::baton_token(text, at, after),
            Shape::Authorization => context::authorization(text, after),
            Shape::KeyHeader => context::key_header(text, after),
            Shape::AwsSecret => context::aws_secret(text, before, after),
            Shape::UrlPassword => context::url_password(text, before, after),
            Shape::Marker => shapes::marker(text, at, after),
        }
    }
}

/// Returns true if a word may begin after `before`: it does not end with a letter or digit, except one of an
/// escape (`\n`, `\u001b`, `%20`) or of a terminal colour code.
fn at_word_edge(before: &[u8]) -> bool {
    match before {
        [] => true,
        [.., last] if !last.is_ascii_alphanumeric() => true,
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f' | b'0' | b'e'] => true,
        [.., b'%', high, low] | [.., b'\\', b'x', high, low] => is_hex(&[*high, *low]),
        [.., b'\\', b'u', a, b, c, d] => is_hex(&[*a, *b, *c, *d]),
        _ => ends_in_colour_code(before),
    }
}

fn is_hex(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_hexdigit)
}

/// Recognises colour codes such as `ESC [ 1 ; 31 m`, with the escape byte raw or escaped.
fn ends_in_colour_code(before: &[u8]) -> bool {
    let Some((b'm' | b'K', rest)) = before.split_last() else { return false };
    let parameters = rest.iter().rev().take(16).take_while(|byte| byte.is_ascii_digit() || **byte == b';');
    let introducer = rest.get(..rest.len() - parameters.count()).unwrap_or_default();
    [&b"\x1b["[..], b"\\u001b[", b"\\u001B[", b"\\x1b[", b"\\x1B[", b"\\033[", b"\\e["]
        .iter()
        .any(|opening| introducer.ends_with(opening))
}
