//! Secrets that are recognized only by their name: `DB_PASSWORD=…`, `"api_key": "…"`, `--token …`, `curl -u
//! user:…`, `setProperty("password", "…")`, `<password>…</password>`.
//!
//! This is a heuristic, so it is used only to redact text and never to reject a write. Owns which names
//! denote secrets, and which values are not secrets: placeholders, references, calls, types and words.

use std::borrow::Cow;
use std::ops::Range;

use super::context::is_name;
use super::redact::redact_findings;
use super::rules::{MARKER_OPEN, Rule};
use super::scan::Finding;
use super::shapes::is_mask;

/// Maximum length of a name.
const NAME_MAX: usize = 64;
/// Maximum length of white space next to a separator.
const BLANKS_MAX: usize = 4;
/// Maximum length of a value that is redacted.
const VALUE_MAX: usize = 4_096;
/// Number of bytes of a value that decide whether it is a secret, so that hostile text is not scanned repeatedly.
const INSPECTED_MAX: usize = 128;
/// Number of bytes before a value that are searched for the start of its line.
const LINE_MAX: usize = 256;

/// Replaces the values of assignments to secret names. Borrows the text if there are none.
pub(super) fn redact_assigned(text: &str) -> Cow<'_, str> {
    let found: Vec<Finding> = find(text.as_bytes())
        .into_iter()
        .map(|Range { start, end }| Finding {
            rule: Rule::AssignedSecret,
            start,
            // The maximum length may end within a character.
            end: text.ceil_char_boundary(end),
        })
        .collect();
    redact_findings(text, &found)
}

/// Returns true if the text of an object entry is a secret because of the name of the entry.
pub(super) fn is_assigned(name: &str, text: &str) -> bool {
    let style = if is_upper_case(name.as_bytes()) { Style::Environment } else { Style::Quoted };
    names_secret(name.as_bytes(), style) && is_secret(name.as_bytes(), text.as_bytes(), style)
}

/// Notation of an assignment. It determines how much the value must resemble a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `DB_PASSWORD=value`, as in an `.env` file or a shell.
    Environment,
    /// `password = "value"`, as in source code or JSON.
    Quoted,
    /// `password: value` alone on its line, as in YAML.
    Line,
    /// `token=value` or `--token value` within a line.
    Bare,
}

/// Whether a byte may separate a name and its value. A table is faster than comparisons, and every byte is looked up.
static SEPARATORS: [bool; 256] = {
    let mut separators = [false; 256];
    let mut rest: &[u8] = b"=:-,>";
    while let [separator, others @ ..] = rest {
        separators[*separator as usize] = true;
        rest = others;
    }
    separators
};

/// Finds the values of all assignments to secret names.
fn find(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    let next_separator = |from| text.get(from..)?.iter().position(|byte| SEPARATORS[usize::from(*byte)]);
    while let Some(offset) = next_separator(at) {
        at += offset;
        let secret = match text.get(at) {
            Some(b'-') => flag(text, at),
            Some(b',') => argument(text, at),
            Some(b'>') => element(text, at),
            _ => assignment(text, at),
        };
        at = match secret {
            Some(secret) => {
                let end = secret.end;
                found.push(secret);
                end
            }
            None => at + 1,
        };
    }
    found
}

/// Finds the value of an assignment whose separator is at `at`.
fn assignment(text: &[u8], at: usize) -> Option<Range<usize>> {
    let separator = *text.get(at)?;
    let next = text.get(at + 1).copied().unwrap_or(b'\n');
    let before = text.get(..at)?;
    // `==`, `=~`, `!=`, `<=`, `+=`, `::`, `://` assign nothing; `:=` and `=>` do.
    let assigns_nothing = matches!(before.last(), Some(b'=' | b'!' | b'<' | b'>' | b'+' | b'~'))
        || separator == b'=' && matches!(next, b'=' | b'~')
        || separator == b':' && matches!(next, b':' | b'=' | b'/')
        || separator == b':' && before.last() == Some(&b':');
    if assigns_nothing {
        return None;
    }
    // `:=`, and the assignments of Make and Ruby that keep an earlier value: `?=`, `||=`.
    let before =
        [&b":"[..], b"?", b"||"].iter().find_map(|mark| before.strip_suffix(*mark)).unwrap_or(before);
    let trimmed = trim_blanks_end(before);
    let (named, is_quoted_name) = without_quote_end(trimmed);
    let (named, is_quoted_name) = match separator {
        b'=' if !is_quoted_name => declared(named).map_or((named, false), |declared| (declared, true)),
        _ => (named, is_quoted_name),
    };
    let name = name_at_end(named);
    let in_front = named.get(..named.len() - name.len())?;
    // `${TOKEN:-…}` and `$TOKEN=` refer to a variable.
    if name.is_empty() || in_front.ends_with(b"$") || in_front.ends_with(b"${") {
        return None;
    }
    if !may_name_secret(name) || !names_secret(name, Style::Environment) {
        return None;
    }
    let arrow = usize::from(separator == b'=' && next == b'>');
    // `'password' => '…'` assigns, an arm of a match does not.
    if arrow == 1 && !is_quoted_name {
        return None;
    }
    let from = at + 1 + arrow;
    let start = from + blanks(text.get(from..)?);
    let is_tight = start == from && trimmed.len() == before.len();
    let style = if separator == b'=' && is_tight && is_upper_case(name) && !is_quoted_name {
        Style::Environment
    } else if opens_quote(text, start) {
        Style::Quoted
    } else if begins_line(in_front) && ends_line(text, value_at(text, start, VALUE_MAX)?.end) {
        Style::Line
    } else if is_tight && separator == b'=' {
        Style::Bare
    } else {
        return None;
    };
    secret_value(text, name, start, style)
}

/// Returns the text up to the declared name: without the type in `apiKey string` and `token: &str`, or without the rest of
/// `key="ApiKey" value`.
fn declared(text: &[u8]) -> Option<&[u8]> {
    const TYPES: [&[u8]; 8] =
        [b"string", b"String", b"str", b"text", b"char", b"SecretString", b"NSString", b"CharSequence"];
    let word = name_at_end(text);
    let in_front = trim_blanks_end(text.get(..text.len() - word.len())?);
    if word == b"value" {
        let (key, is_quoted) = without_quote_end(in_front);
        let attribute = key.get(..key.len() - name_at_end(key).len())?;
        let attribute = attribute.strip_suffix(b"\"").or_else(|| attribute.strip_suffix(b"'"))?;
        let is_key = [&b"key="[..], b"name=", b"id="].iter().any(|name| attribute.ends_with(name));
        return (is_quoted && is_key).then_some(key);
    }
    if !TYPES.contains(&word) || in_front.len() == text.len() - word.len() && !in_front.ends_with(b"&") {
        return None;
    }
    let in_front = trim_blanks_end(in_front.strip_suffix(b"&").unwrap_or(in_front));
    Some(trim_blanks_end(in_front.strip_suffix(b":").unwrap_or(in_front)))
}

/// Finds the value in `("name", "value")`, where `at` is the comma: `setProperty`, `setenv`, `put`.
fn argument(text: &[u8], at: usize) -> Option<Range<usize>> {
    let (named, is_quoted) = without_quote_end(text.get(..at)?);
    let name = name_at_end(named);
    if !is_quoted || !may_name_secret(name) {
        return None;
    }
    let in_front = named.get(..named.len() - name.len())?;
    let call = in_front.strip_suffix(b"\"").or_else(|| in_front.strip_suffix(b"'"))?;
    let start = at + 1 + blanks(text.get(at + 1..)?);
    let function = name_at_end(call.strip_suffix(b"(")?).to_ascii_lowercase();
    // `assert_eq("token", "…")` and `get("token", "…")` set nothing.
    let sets = [&b"set"[..], b"put", b"env", b"add", b"define", b"header", b"insert", b"store", b"property"];
    let is_setter = sets.iter().any(|verb| function.windows(verb.len()).any(|part| part == *verb));
    if !is_setter || !opens_quote(text, start) {
        return None;
    }
    secret_value(text, name, start, Style::Quoted)
}

/// Finds the value of `<name>value</name>`, where `at` is the first `>`.
fn element(text: &[u8], at: usize) -> Option<Range<usize>> {
    let name = name_at_end(text.get(..at)?);
    if !may_name_secret(name) {
        return None;
    }
    let in_front = text.get(..at - name.len())?;
    // The prefix of a namespace is not part of the name.
    let prefix = in_front
        .strip_suffix(b":")
        .map_or(in_front, |rest| rest.get(..rest.len() - name_at_end(rest).len()).unwrap_or_default());
    let start = at + 1 + blanks(text.get(at + 1..)?);
    let value = value_at(text, start, VALUE_MAX)?;
    let after = text.get(value.end..)?;
    let after = after.get(blanks(after)..)?;
    if !prefix.ends_with(b"<") || !after.starts_with(b"</") {
        return None;
    }
    secret_value(text, name, start, Style::Line)
}

/// Returns the value that begins at `start` if it is a secret because of its name and its form.
fn secret_value(text: &[u8], name: &[u8], start: usize, style: Style) -> Option<Range<usize>> {
    let beginning = value_at(text, start, INSPECTED_MAX)?;
    let is_secret_value = names_secret(name, style) && is_secret(name, text.get(beginning)?, style);
    if is_secret_value { value_at(text, start, VALUE_MAX) } else { None }
}

/// Finds the value of a flag that begins at `at`: `--api-key value`, or the password of `curl -u user:password`.
fn flag(text: &[u8], at: usize) -> Option<Range<usize>> {
    let in_front = text.get(..at)?;
    if in_front.last().is_some_and(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'')) {
        return None;
    }
    let rest = text.get(at..)?;
    if let Some(login) = ["-u ", "--user ", "--user="].iter().find(|login| rest.starts_with(login.as_bytes()))
    {
        let value = value_at(text, at + login.len(), INSPECTED_MAX)?;
        let colon = text.get(value.clone())?.iter().position(|byte| *byte == b':')?;
        let line = in_front.get(in_front.len().saturating_sub(LINE_MAX)..)?;
        let line = line.rsplit(|byte| *byte == b'\n').next()?;
        if !line.windows(4).any(|word| word == b"curl") {
            return None;
        }
        let password = value.start + colon + 1..value_at(text, at + login.len(), VALUE_MAX)?.end;
        let is_secret_value =
            !password.is_empty() && !is_placeholder(b"password", text.get(password.clone())?);
        return is_secret_value.then_some(password);
    }
    let name = rest.strip_prefix(b"--")?;
    let length = name.iter().take(NAME_MAX).take_while(|byte| is_name(**byte)).count();
    let name = name.get(..length)?;
    let blank = at + 2 + length;
    text.get(blank).filter(|byte| **byte == b' ' && may_name_secret(name))?;
    let style = if opens_quote(text, blank + 1) { Style::Quoted } else { Style::Bare };
    secret_value(text, name, blank + 1, style)
}

/// Returns the range of the value that begins at `start`, without its quotes and at most `max` bytes long. `None` if
/// there is none.
fn value_at(text: &[u8], start: usize, max: usize) -> Option<Range<usize>> {
    let escaped = usize::from(text.get(start) == Some(&b'\\'));
    let first = *text.get(start + escaped)?;
    let is_quote = matches!(first, b'"' | b'\'' | b'`');
    if !is_quote && escaped == 1 {
        return None;
    }
    let from = if is_quote { start + escaped + 1 } else { start };
    let rest = text.get(from..)?;
    let rest = rest.get(..max).unwrap_or(rest);
    let ends = |byte: &u8| match byte {
        b'\n' | b'\r' => true,
        _ if is_quote => *byte == first || *byte == b'\\',
        _ => byte.is_ascii_whitespace() || b"\"'`,;)<>}]|&\\".contains(byte),
    };
    let end = from + rest.iter().position(ends).unwrap_or(rest.len());
    Some(from..end)
}

/// Returns true if an assignment is at the start of its line, except for line numbers and markers.
fn begins_line(in_front: &[u8]) -> bool {
    let is_mark = |byte: u8| byte.is_ascii_whitespace() || byte.is_ascii_digit() || b"+-\"'|".contains(&byte);
    let marks = in_front.iter().rev().take(LINE_MAX).take_while(|byte| **byte != b'\n' && is_mark(**byte));
    let line = in_front.get(..in_front.len() - marks.count()).unwrap_or_default();
    matches!(line.last(), None | Some(b'\n'))
}

/// Returns true if a line ends at a position.
fn ends_line(text: &[u8], end: usize) -> bool {
    matches!(text.get(end), None | Some(b'\n' | b'\r' | b'\\'))
}

/// Returns true if a quote opens at a position, escaped or not.
fn opens_quote(text: &[u8], start: usize) -> bool {
    let escaped = usize::from(text.get(start) == Some(&b'\\'));
    matches!(text.get(start + escaped), Some(b'"' | b'\'' | b'`'))
}

/// Returns the number of blanks at the start of a text.
fn blanks(text: &[u8]) -> usize {
    text.iter().take(BLANKS_MAX).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn trim_blanks_end(text: &[u8]) -> &[u8] {
    let blanks = text.iter().rev().take(BLANKS_MAX).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    text.get(..text.len() - blanks).unwrap_or_default()
}

/// Removes the quote after a name, escaped or not. Also returns true if there was one.
fn without_quote_end(text: &[u8]) -> (&[u8], bool) {
    match text {
        [rest @ .., b'\\', b'"'] | [rest @ .., b'"' | b'\'' | b'`'] => (rest, true),
        _ => (text, false),
    }
}

fn name_at_end(text: &[u8]) -> &[u8] {
    let length = text.iter().rev().take(NAME_MAX).take_while(|byte| is_name(**byte)).count();
    text.get(text.len() - length..).unwrap_or_default()
}

fn is_upper_case(name: &[u8]) -> bool {
    name.iter().any(u8::is_ascii_uppercase) && !name.iter().any(u8::is_ascii_lowercase)
}

/// Quickly excludes most names that do not denote a secret.
fn may_name_secret(name: &[u8]) -> bool {
    const LAST: [&[u8]; 8] =
        [b"password", b"passwd", b"passphrase", b"secret", b"token", b"key", b"base", b"pass"];
    let marks = name.iter().rev().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
    let name = name.get(..name.len() - marks).unwrap_or_default();
    let ends_in = |word: &&[u8]| {
        let from = name.len().checked_sub(word.len());
        from.and_then(|from| name.get(from..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    matches!(
        name.last(),
        Some(b'd' | b'D' | b'e' | b'E' | b't' | b'T' | b'n' | b'N' | b'y' | b'Y' | b's' | b'S')
    ) && LAST.iter().any(ends_in)
}

/// Returns true if the last words of a name denote a secret.
fn names_secret(name: &[u8], style: Style) -> bool {
    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [.., "password" | "passwd" | "passphrase" | "secret" | "token" | "apikey" | "authtoken"] => true,
        [
            ..,
            "api" | "secret" | "access" | "private" | "auth" | "encryption" | "signing" | "master",
            "key",
        ]
        | [.., "secret", "key", "base"] => true,
        // `DB_PASS`, but not `PASS`, which tests print.
        [_, .., "pass"] => style == Style::Environment,
        _ => false,
    }
}

/// Splits a name into its words, in lower case: `DB_PASSWORD`, `api-key`, `authToken`.
fn words(name: &[u8]) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for byte in name {
        let begins = byte.is_ascii_uppercase() && was_lower;
        if (!byte.is_ascii_alphanumeric() || begins) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && byte.is_ascii_alphanumeric()
        {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
        was_lower = byte.is_ascii_lowercase() || byte.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns true if a value resembles a secret as much as its notation requires.
fn is_secret(name: &[u8], value: &[u8], style: Style) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == 0 && style != Style::Environment {
        return false;
    }
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let is_mixed = digits > 0 && letters > 0;
    let is_word =
        value.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_');
    let is_strong_enough = match style {
        Style::Environment => value.len() >= 6 && (letters > 0 || digits >= 8),
        Style::Quoted => value.len() >= 8 && is_mixed,
        Style::Line => value.len() >= 6 && is_mixed,
        Style::Bare => value.len() >= 8 && is_mixed && (!is_word || value.len() >= 16),
    };
    // In an environment, the value is literal; elsewhere it may be an identifier.
    let is_identifier = style != Style::Environment && (is_path(value) || is_constant(value));
    let is_call = value.iter().any(|byte| b"({}<>[".contains(byte) || byte.is_ascii_whitespace());
    is_strong_enough && !is_identifier && !is_call && !is_placeholder(name, value)
}

/// Returns true if a value is a path of identifiers: `config.secret`, `Token::New`.
fn is_path(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':'))
        && value.windows(2).any(|pair| matches!(pair, [a, b'.' | b':'] if a.is_ascii_alphanumeric()))
        && value.first().is_some_and(u8::is_ascii_alphabetic)
        && value.split(|byte| matches!(byte, b'.' | b':')).all(|part| part.len() < 24)
}

/// Returns true if a value is the name of a constant: `CLIENT_SECRET_0`.
fn is_constant(value: &[u8]) -> bool {
    value.contains(&b'_') && is_upper_case(value) && value.iter().all(|byte| is_name(*byte))
}

/// Returns true if a value is only a placeholder: a reference, a mask, an instruction, or the name itself.
fn is_placeholder(name: &[u8], value: &[u8]) -> bool {
    const STARTS: [&str; 17] = [
        "your",
        "example",
        "placeholder",
        "changeme",
        "change-me",
        "change_me",
        "dummy",
        "sample",
        "insert-",
        "insert_",
        "replace-",
        "replace_",
        "redacted",
        "process.env",
        "os.environ",
        "getenv",
        "xxx",
    ];
    // Tests use these words as values, also with a number: `password1`.
    const WHOLE: [&str; 9] =
        ["none", "null", "undefined", "true", "false", "password", "secret", "insert", "replace"];
    let digits = value.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let without_number = value.get(..value.len() - digits).unwrap_or_default();
    let starts = |word: &&str| {
        value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    matches!(value.first(), None | Some(b'$' | b'%' | b'<' | b'{' | b'[' | b'(' | b'*' | b'#'))
        || is_mask(value)
        || STARTS.iter().any(starts)
        || WHOLE.iter().any(|word| without_number.eq_ignore_ascii_case(word.as_bytes()))
        // Suffix of the example keys in the documentation of AWS.
        || value.ends_with(b"EXAMPLE")
        || value.ends_with(b"EXAMPLEKEY")
        || value.eq_ignore_ascii_case(name)
        || value.windows(2).any(|pair| matches!(pair, b"${" | b"{{" | b"$("))
        || value.windows(MARKER_OPEN.len()).any(|part| part == MARKER_OPEN.as_bytes())
}

#[cfg(test)]
#[path = "assignment_tests.rs"]
mod tests;
