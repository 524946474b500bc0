//! Credentials that are recognized by the words before them: header values, assigned secrets, URL passwords.
//!
//! Owns how a name, a separator and a value are distinguished, and which values are placeholders. Satisfies
//! the two guarantees of `shapes`; for the second, a value is inspected only by its length, its first bytes,
//! or the set of its bytes.

use super::rules::{Class, MARKER_OPEN, Rule, Run};
use super::shapes::{Match, is_mask, token};

/// Maximum length of a name, or of a part of a name, that is inspected.
const NAME_MAX: usize = 64;
const SEPARATOR_MAX: usize = 16;
const USER_MAX: usize = 128;
const PASSWORD_MAX: usize = 512;

const HEADER_VALUE: Run = Run { rule: Rule::BearerHeader, class: Class::Token68, min: 16 };
const AWS_SECRET: Run = Run { rule: Rule::AwsSecretKey, class: Class::Base64, min: 40 };

/// Matches the credential after the name of the `Authorization` header.
pub(super) fn authorization(text: &[u8], after: usize) -> Option<Match> {
    let separator = separator(text, after).filter(|separator| separator.assigns)?;
    header_value(text, scheme_end(text, separator.end)?)
}

/// Matches the value after the name of a header whose value is a key.
pub(super) fn key_header(text: &[u8], after: usize) -> Option<Match> {
    let separator = separator(text, after).filter(|separator| separator.assigns)?;
    let mut value = text.iter().skip(separator.end).take(NAME_MAX).take_while(|byte| is_token(**byte));
    // A bare word after a quoted name is a variable in source code, unless it has a digit as keys do.
    let is_literal = separator.quotes_value || !separator.quotes_name || value.any(u8::is_ascii_digit);
    if is_literal { header_value(text, separator.end) } else { None }
}

/// Matches the value assigned to a name such as `aws_secret_access_key`. `before` ends where `secret` begins
/// in the name; `after` starts after it.
pub(super) fn aws_secret(text: &[u8], before: &[u8], after: usize) -> Option<Match> {
    let prefix = before.iter().rev().take(NAME_MAX).take_while(|byte| is_name(**byte)).count();
    let prefix = before.get(before.len() - prefix..)?;
    let spaced = before.last_chunk::<4>().is_some_and(|word| word.eq_ignore_ascii_case(b"aws "));
    let words_end = access_key_end(text, after);
    let name = if words_end.is_some() {
        AwsName::AccessKey
    } else if spaced || holds(prefix, b"aws") {
        AwsName::Secret
    } else {
        return None;
    };
    let words_end = words_end.unwrap_or(after);
    let tail = text.iter().skip(words_end).take(NAME_MAX).take_while(|byte| Class::Slug.contains(**byte));
    let value = separator(text, prompt_end(text, words_end + tail.count()))?.end;
    aws_value(text, value, name)
}

/// How clearly a name denotes a secret access key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AwsName {
    /// The name contains `secret` and `access key`.
    AccessKey,
    /// The name contains `aws` and `secret`.
    Secret,
}

/// Matches an AWS secret. With a less specific name, paths and commit ids are excluded by their lower case.
fn aws_value(text: &[u8], start: usize, name: AwsName) -> Option<Match> {
    let first = text.get(start..start + AWS_SECRET.min)?;
    let plausible = name == AwsName::AccessKey || first.iter().any(u8::is_ascii_uppercase);
    if plausible { token(text, start, start, AWS_SECRET) } else { None }
}

/// Skips `access key` in any spelling: `_access_key`, `AccessKey`, ` access key`.
fn access_key_end(text: &[u8], from: usize) -> Option<usize> {
    let mut end = from;
    for word in [&b"access"[..], b"key"] {
        end += usize::from(matches!(text.get(end), Some(b'_' | b'-' | b'.' | b' ')));
        end += text.get(end..end + word.len()).filter(|part| part.eq_ignore_ascii_case(word))?.len();
    }
    Some(end)
}

/// Skips the current value that a prompt shows, as in `AWS Secret Access Key [None]:`.
fn prompt_end(text: &[u8], from: usize) -> usize {
    let Some([b' ', b'[', shown @ ..]) = text.get(from..) else { return from };
    let length =
        shown.iter().take(NAME_MAX).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'*').count();
    if shown.get(length) == Some(&b']') { from + b" []".len() + length } else { from }
}

/// Matches the password of `scheme://user:password@host`. `before` ends where `://` begins.
pub(super) fn url_password(text: &[u8], before: &[u8], after: usize) -> Option<Match> {
    before.last().filter(|byte| byte.is_ascii_alphanumeric())?;
    let user = text.iter().skip(after).take(USER_MAX).take_while(|byte| is_user(**byte)).count();
    text.get(after + user).filter(|byte| **byte == b':')?;
    let start = after + user + 1;
    let authority = text.iter().skip(start).take(PASSWORD_MAX).take_while(|byte| is_password(**byte)).count();
    // A password may contain an unescaped `@`; a host cannot.
    let end = start + text.get(start..start + authority)?.iter().rposition(|byte| *byte == b'@')?;
    let password = text.get(start..end).filter(|password| !password.is_empty() && !is_placeholder(password));
    // An image pinned by its digest, `docker://name:tag@sha256:…`, has no password.
    let is_digest = text.get(end..)?.starts_with(b"@sha256:");
    // `postgres:postgres@localhost` and similar URLs are defaults of local development.
    let is_default = password == text.get(after..after + user) && is_loopback(text.get(end + 1..)?);
    if is_digest || is_default { None } else { password.map(|_| Match::of(Rule::UrlPassword, start, end)) }
}

/// Returns true if a text begins with a host name of this machine.
fn is_loopback(text: &[u8]) -> bool {
    const HOSTS: [&str; 4] = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];
    let plain = text.iter().take(NAME_MAX).take_while(|byte| is_name(**byte)).count();
    let host = if text.starts_with(b"[") { text.get(..5) } else { text.get(..plain) };
    host.is_some_and(|host| HOSTS.iter().any(|known| host.eq_ignore_ascii_case(known.as_bytes())))
}

/// Matches a value that is recognized by the name of its object entry.
pub(super) fn entry(key: &[u8], value: &[u8]) -> Option<Match> {
    let is = |name: &str| key.eq_ignore_ascii_case(name.as_bytes());
    let start = value.len() - value.trim_ascii_start().len();
    let credential = if is("authorization") || is("proxy-authorization") {
        header_value(value, scheme_end(value, start).unwrap_or(start))
    } else if is("x-api-key") || is("x-relay-key") {
        header_value(value, start)
    } else {
        aws_name(key).and_then(|name| aws_value(value, start, name))
    };
    // Prose may begin with a long word; a credential is the whole value.
    credential.filter(|found| value.get(found.end..).is_some_and(|rest| rest.trim_ascii().is_empty()))
}

fn aws_name(key: &[u8]) -> Option<AwsName> {
    let secret = key.windows(6).position(|part| part.eq_ignore_ascii_case(b"secret"))?;
    if !key.iter().all(|byte| is_name(*byte) || *byte == b' ') {
        None
    } else if access_key_end(key, secret + 6).is_some() {
        Some(AwsName::AccessKey)
    } else {
        holds(key, b"aws").then_some(AwsName::Secret)
    }
}

fn holds(name: &[u8], word: &[u8]) -> bool {
    name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

/// Separator between a name and its value.
struct Separator {
    end: usize,
    assigns: bool,
    quotes_name: bool,
    quotes_value: bool,
}

/// Reads quotes, blanks and an assignment in any notation: `=`, `": "`, `=>`, `", "`, `>`.
fn separator(text: &[u8], from: usize) -> Option<Separator> {
    let is_separator = |byte: &u8| b" \t\"'`\\=:>,[](".contains(byte);
    let length = text.iter().skip(from).take(SEPARATOR_MAX).take_while(|byte| is_separator(byte)).count();
    let between = text.get(from..from + length)?;
    let quotes_name = matches!(between.first()?, b'"' | b'\'' | b'`' | b'\\');
    let assigns = |byte: &u8| matches!(byte, b'=' | b':' | b'>') || (quotes_name && *byte == b',');
    Some(Separator {
        end: from + length,
        assigns: between.iter().any(assigns),
        quotes_name,
        quotes_value: length > 1 && matches!(between.last()?, b'"' | b'\'' | b'`'),
    })
}

/// Skips `Bearer` or `Basic` and the blanks after it.
fn scheme_end(text: &[u8], from: usize) -> Option<usize> {
    let starts_with = |word: &&[u8]| {
        text.get(from..from + word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let value = from + [&b"bearer "[..], b"basic "].iter().find(|word| starts_with(word))?.len();
    Some(value + text.iter().skip(value).take(SEPARATOR_MAX).take_while(|byte| **byte == b' ').count())
}

fn header_value(text: &[u8], start: usize) -> Option<Match> {
    if is_instruction(text.get(start..)?) { None } else { token(text, start, start, HEADER_VALUE) }
}

/// Returns true for a placeholder that describes the expected value, such as `your-api-key` or
/// `ACCESS_TOKEN_GOES_HERE`.
fn is_instruction(value: &[u8]) -> bool {
    let opens_with =
        |word: &&[u8]| value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let upper = value.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_').count();
    let is_upper_snake_case = value.iter().take(upper).any(|byte| *byte == b'_')
        && !value.get(upper).is_some_and(|byte| is_token(*byte));
    is_upper_snake_case || [&b"your"[..], b"example", b"placeholder"].iter().any(opens_with)
}

fn is_placeholder(password: &[u8]) -> bool {
    // The last two are from the documentation of the PostgreSQL and MySQL images.
    const WORDS: [&str; 10] = [
        "password",
        "passwd",
        "pass",
        "pwd",
        "pw",
        "token",
        "x-oauth-basic",
        "changeme",
        "mysecretpassword",
        "my-secret-pw",
    ];
    let is_template = match password {
        [b'$', b'{' | b'(', ..] | [b'{', .., b'}'] | [b'[', .., b']'] | [b'%', .., b'%'] => true,
        [b'%', b's' | b'd' | b'v' | b'(' | b'{', ..] => true,
        [b'$', variable @ ..] => variable.iter().all(|byte| Class::Word.contains(*byte)),
        _ => false,
    };
    is_template
        || is_mask(password)
        || WORDS.iter().any(|word| password.eq_ignore_ascii_case(word.as_bytes()))
        || password.windows(MARKER_OPEN.len()).any(|part| part == MARKER_OPEN.as_bytes())
}

const fn is_token(byte: u8) -> bool {
    Class::Token68.contains(byte)
}

/// Returns true for the characters of a name.
pub(super) const fn is_name(byte: u8) -> bool {
    Class::Dotted.contains(byte)
}

const fn is_user(byte: u8) -> bool {
    Class::Slug.contains(byte)
        || matches!(byte, b'.' | b'~' | b'%' | b'!' | b'$' | b'&' | b'*' | b'+' | b';' | b'=')
}

/// Accepts anything that cannot end the authority of a URL, bytes outside ASCII included.
const fn is_password(byte: u8) -> bool {
    let ends = matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\');
    byte.is_ascii_graphic() && !ends || !byte.is_ascii()
}
