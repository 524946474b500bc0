//! Credentials that are recognized by their own format.
//!
//! Owns the formats. `scan` calls these functions when it finds a literal: `at` is the start of the literal
//! and `after` its end. Every format, here and in `context`, has two guarantees. It inspects a bounded part
//! of the text unless it matches, so hostile input takes linear time. If it does not match a text, it does
//! not match the text truncated by a marker either, so redacted text has no findings.

use super::rules::{Class, Rule, Run};

/// The example token of jwt.io and many manuals, signed with `your-256-bit-secret`.
const JWT_EXAMPLE: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNT\
                           E2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";

/// Maximum distance between the opening and the closing line of a private key.
pub(super) const KEY_MAX: usize = 64 * 1024;

/// A matched span. Without a rule, it is a marker to skip.
#[derive(Clone, Copy)]
pub(super) struct Match {
    pub(super) rule: Option<Rule>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Match {
    pub(super) const fn of(rule: Rule, start: usize, end: usize) -> Self {
        Self { rule: Some(rule), start, end }
    }
}

/// Matches a literal and a run, unless the run is a mask.
pub(super) fn token(text: &[u8], at: usize, after: usize, run: Run) -> Option<Match> {
    pattern(text, at, after, run).filter(|found| !text.get(after..found.end).is_some_and(is_mask))
}

/// Matches a literal and a run, unless the run is an example from documentation.
pub(super) fn pattern(text: &[u8], at: usize, after: usize, run: Run) -> Option<Match> {
    let end = run_end(text, after, run.class);
    let is_match = end - after >= run.min && !is_aws_example(run, text.get(after..end)?);
    is_match.then_some(Match::of(run.rule, at, end))
}

/// Returns true if a run is an example from the documentation of AWS, whose keys end in `EXAMPLE` or
/// `EXAMPLEKEY`. It has the minimum length, so its beginning before a marker does not match either.
fn is_aws_example(run: Run, value: &[u8]) -> bool {
    let ending: &[u8] = match run.rule {
        Rule::AwsAccessKey => b"EXAMPLE",
        Rule::AwsSecretKey => b"EXAMPLEKEY",
        _ => return false,
    };
    value.len() == run.min && value.ends_with(ending)
}

/// Returns true if a value is masked: `xxxx`, `****`, `....`, `••••`.
pub(super) fn is_mask(value: &[u8]) -> bool {
    const GLYPHS: [&[u8]; 2] = ["•".as_bytes(), "…".as_bytes()];
    value.iter().all(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.' | b'-' | b'_' | b'='))
        || value.chunks(3).all(|glyph| GLYPHS.contains(&glyph))
}

/// Returns the end of the run of `class` that begins at `from`.
pub(super) fn run_end(text: &[u8], from: usize, class: Class) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| class.contains(**byte)).count()
}

/// Matches a JWT. Otherwise returns the position before which no other JWT can begin, because it would share
/// the first segment.
pub(super) fn jwt(text: &[u8], at: usize, after: usize) -> Result<Match, usize> {
    let header_end = run_end(text, after, Class::Slug);
    let payload = header_end + b".eyJ".len();
    let payload_end = run_end(text, payload, Class::Slug);
    let is_jwt = header_end > after
        && text.get(header_end..payload) == Some(b".eyJ")
        && payload_end > payload
        && text.get(payload_end) == Some(&b'.');
    let end = run_end(text, payload_end + 1, Class::Slug);
    if is_jwt && text.get(at..end) != Some(JWT_EXAMPLE.as_bytes()) {
        Ok(Match::of(Rule::Jwt, at, end))
    } else {
        Err(header_end)
    }
}

/// Matches a Slack token, which has a number among its first parts; `xoxb-your-token` has none.
pub(super) fn slack_token(text: &[u8], at: usize, after: usize) -> Option<Match> {
    let run = Run { rule: Rule::SlackToken, class: Class::Dashed, min: 10 };
    text.get(after..after + run.min)?.iter().find(|byte| byte.is_ascii_digit())?;
    pattern(text, at, after, run)
}

/// Matches `T…/B…/…` after the address of Slack's webhooks.
pub(super) fn slack_webhook(text: &[u8], at: usize, after: usize) -> Option<Match> {
    let workspace_end = run_end(text, after, Class::Alnum);
    let channel = workspace_end + 1;
    let channel_end = run_end(text, channel, Class::Alnum);
    let has_parts = text.get(after) == Some(&b'T')
        && text.get(workspace_end..=channel) == Some(b"/B")
        && text.get(channel_end) == Some(&b'/');
    let secret = Run { rule: Rule::SlackWebhook, class: Class::Alnum, min: 16 };
    if has_parts { token(text, at, channel_end + 1, secret) } else { None }
}

/// Matches the id and secret of a Baton token: 43 characters of base64url or 64 hexadecimal digits.
pub(super) fn baton_token(text: &[u8], at: usize, after: usize) -> Option<Match> {
    let id_end = run_end(text, after, Class::Alnum);
    let has_id = (8..=32).contains(&(id_end - after)) && text.get(id_end) == Some(&b'_');
    let secret = Run { rule: Rule::BatonToken, class: Class::Slug, min: 43 };
    if has_id { token(text, at, id_end + 1, secret) } else { None }
}

/// Matches a private key up to its closing line or, if that line is missing, to the end of its probable body.
/// `at` is the position of `BEGIN`; `floor` is the end of the previous secret.
pub(super) fn private_key(text: &[u8], at: usize, after: usize, floor: usize) -> Option<Match> {
    const DASHES: &[u8] = b"-----";
    if !text.get(..at)?.ends_with(DASHES) {
        return None;
    }
    let label = text.get(after..)?.iter().take(40).take_while(|byte| is_label(**byte)).count();
    let label = text.get(after..after + label)?;
    let is_private = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    let body = after + label.len() + DASHES.len();
    if !is_private || !text.get(..body)?.ends_with(DASHES) {
        return None;
    }
    let rest = text.get(body..)?;
    let length = closing_line(rest, label).unwrap_or_else(|| body_length(rest));
    Some(Match::of(Rule::PrivateKey, (at - DASHES.len()).max(floor), body + length))
}

/// Returns the start of a private key that is not closed in this text. The next text may contain its end.
pub(super) fn unclosed_key(text: &str) -> Option<usize> {
    const OPENING: &str = "-----BEGIN ";
    let start = text.rfind(OPENING)?;
    let key = text.get(start + OPENING.len()..)?;
    let label = key.bytes().take(40).take_while(|byte| is_label(*byte)).count();
    let (label, rest) = key.split_at_checked(label)?;
    let is_private = label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK");
    (is_private && rest.starts_with("-----") && !rest.contains("-END ")).then_some(start)
}

/// Returns the end of a private key that began in an earlier text: after its closing line, or before the next
/// block.
pub(super) fn key_end(text: &str) -> Option<usize> {
    let closing = text.find("-END ").map(|at| {
        let label = at + "-END ".len();
        let dashes = text.get(label..).and_then(|rest| rest.find("-----"));
        dashes.map_or(text.len(), |dashes| label + dashes + "-----".len())
    });
    let opening = text.find("-----BEGIN ");
    match (closing, opening) {
        (Some(closing), Some(opening)) => Some(closing.min(opening)),
        (closing, opening) => closing.or(opening),
    }
}

const fn is_label(byte: u8) -> bool {
    byte == b' ' || byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// Returns the length of `rest` up to the end of the `END` line for `label`, unless another block comes first.
fn closing_line(rest: &[u8], label: &[u8]) -> Option<usize> {
    let rest = rest.get(..KEY_MAX).unwrap_or(rest);
    let boundary = rest.array_windows().position(|part: &[u8; 5]| part == b"-END " || part == b"-BEGI")?;
    let closing =
        rest.get(boundary..)?.strip_prefix(b"-END ")?.strip_prefix(label)?.strip_prefix(b"-----")?;
    Some(rest.len() - closing.len())
}

/// Returns the length of the armoured lines at the start of `rest`; line breaks may be escaped and
/// lines quoted, as in source code.
fn body_length(rest: &[u8]) -> usize {
    const FULL_LINE_MIN: usize = 32;
    let mut body = 0;
    loop {
        let line = line_start(rest, body);
        let unread = rest.get(line..).unwrap_or_default();
        if unread.starts_with(b"Proc-Type:") || unread.starts_with(b"DEK-Info:") {
            body = line + unread.iter().take_while(|byte| !matches!(byte, b'\n' | b'\\')).count();
            continue;
        }
        let end = run_end(rest, line, Class::PaddedBase64);
        let is_full = end - line >= FULL_LINE_MIN;
        let breaks =
            rest.get(body..line).unwrap_or_default().iter().any(|byte| matches!(byte, b'\n' | b'\\'));
        // Only the last line of a body is short, and a body has more than one line.
        if is_full || (body > 0 && breaks && end > line) {
            body = end;
        }
        if !is_full {
            return body;
        }
    }
}

/// Returns the start of the text of the next line, after the marker of a removed line in a diff.
fn line_start(rest: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        at += match rest.get(at..) {
            Some([b'\\', b'n' | b'r', ..]) => 2,
            Some([b'\n', b'-', next, ..]) if *next != b'-' => 2,
            Some([b' ' | b'\t' | b'\r' | b'\n' | b'"', ..]) => 1,
            _ => return at,
        };
    }
}

/// Matches the rest of a marker.
pub(super) fn marker(text: &[u8], at: usize, after: usize) -> Option<Match> {
    let rest = text.get(after..)?;
    let rule = Rule::ALL.iter().copied().find(|rule| {
        rest.strip_prefix(rule.id().as_bytes()).is_some_and(|closing| closing.starts_with(b"]"))
    })?;
    Some(Match { rule: None, start: at, end: after + rule.id().len() + 1 })
}
