//! Detects formats of values with little information: times, ids, logs, traces, listings, base64 data.
//!
//! Each function inspects a bounded part of a text. None of them allocates for short texts; together they take far less
//! than a microsecond per kilobyte.

use baton_core::starts_with_any;

/// Number of lines of a text that are inspected.
const MAX_LINES: usize = 60;
/// Maximum length of a scalar in bytes.
const MAX_SCALAR_BYTES: usize = 64;
/// Minimum length of base64 data in bytes.
const MIN_BASE64_BYTES: usize = 160;
/// Minimum length of JSON in a string that counts as tool output.
const MIN_NESTED_JSON_BYTES: usize = 100;

/// Returns true if a text is a date, a time of day or both, in a common notation.
pub(super) fn is_timestamp(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || text.len() > 40 || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let (mut dates, mut words, mut numbers) = (0, 0, 0);
    // A `T` separates date and time, but is also the first letter of `Tuesday`.
    let parts = text.split([' ', ',']).flat_map(|part| {
        let (date, clock) = part.split_once('T').filter(|(date, _)| is_date(date)).unwrap_or((part, ""));
        [date, clock]
    });
    for part in parts.filter(|part| !part.is_empty()) {
        match part {
            _ if is_date(part) || is_clock(part) => dates += 1,
            _ if is_calendar_word(part) || is_zone(part) => words += 1,
            _ if part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit()) => numbers += 1,
            _ => return false,
        }
    }
    dates > 0 || (words > 0 && numbers >= 2)
}

/// Returns true if a number is a time from 2001 to 2039, in seconds or milliseconds since 1970.
pub(super) fn is_epoch(number: &str) -> bool {
    const SECONDS: std::ops::Range<u64> = 1_000_000_000..2_200_000_000;
    number.parse::<u64>().is_ok_and(|number| SECONDS.contains(&number) || SECONDS.contains(&(number / 1000)))
}

/// Returns true if a text is a duration such as `12 ms`, `1h30m` or `PT5M`.
pub(super) fn is_duration(text: &str) -> bool {
    let text = text.trim();
    let body = text.strip_prefix("PT").unwrap_or(text);
    if body.len() > 24 || !body.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    const UNITS: &str = "ms|us|µs|ns|s|m|h|d|sec|secs|min|seconds|minutes|hours";
    let is_unit = |unit: &str| UNITS.split('|').any(|known| unit.eq_ignore_ascii_case(known));
    let units = body.split(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | ' '));
    let mut units = units.filter(|unit| !unit.is_empty()).peekable();
    units.peek().is_some() && units.all(is_unit)
}

/// Returns true if a text is an opaque identifier: a UUID, a hash, a prefixed random id.
pub(super) fn is_identifier(text: &str) -> bool {
    let text = text.trim();
    if text.len() > 2 * MAX_SCALAR_BYTES || text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return false;
    }
    is_uuid(text) || random_part(text).is_some_and(|part| is_hex_hash(part) || is_random(part))
}

/// Returns true if a text is an IPv4 address, with or without a port.
pub(super) fn is_address(text: &str) -> bool {
    let host = text.trim().split_once(':').map_or(text.trim(), |(host, _)| host);
    host.split('.').count() == 4 && host.split('.').all(|part| part.parse::<u8>().is_ok())
}

/// Returns true if a text is a URL without other text.
pub(super) fn is_url(text: &str) -> bool {
    let text = text.trim();
    starts_with_any(text, "https://|http://|file://") && !text.contains(' ')
}

/// Returns true if a text is base64 data.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim().rsplit_once(";base64,").map_or(text.trim(), |(_, body)| body);
    let head = &body.as_bytes()[..body.len().min(1024)];
    let is_symbol =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    body.len() >= MIN_BASE64_BYTES
        && head.iter().all(|byte| is_symbol(byte) || matches!(byte, b'\n' | b'\r'))
        && head.iter().any(u8::is_ascii_uppercase)
        && head.iter().any(u8::is_ascii_digit)
}

/// Returns true if most lines of a text start with a time or a log level.
pub(super) fn is_log(text: &str) -> bool {
    let count = LineCount::of(text, is_log_line);
    count.lines >= 3 && count.share_is_at_least(60)
}

/// Returns true if a text is a stack trace or thread dump.
pub(super) fn is_stack_trace(text: &str) -> bool {
    let head = floor_boundary(text, 4096);
    let frames = LineCount::of(head, |line| {
        let line = line.trim_start();
        (line.starts_with("at ") && line.contains(['(', ':']))
            || (line.starts_with("File \"") && line.contains(", line "))
            || (line.starts_with('#') && line.contains(" in "))
            || line.starts_with("goroutine ")
    });
    frames.hits >= 3
        || (frames.hits >= 1 && (head.contains("Traceback (most") || head.contains("panicked at")))
}

/// Returns true if a text is a patch.
pub(super) fn is_diff(text: &str) -> bool {
    let head = floor_boundary(text, 2048);
    head.starts_with("diff --git ") || (head.contains("\n@@ -") && head.contains("+++ "))
}

/// Returns true if a text is tool output: a shell session, an HTTP exchange, a table, compiler errors, nested JSON.
pub(super) fn is_tool_output(text: &str) -> bool {
    let head = floor_boundary(text, 4096);
    let trimmed = text.trim();
    let is_nested_json = trimmed.len() >= MIN_NESTED_JSON_BYTES
        && ((trimmed.starts_with("{\"") && trimmed.ends_with('}'))
            || (trimmed.starts_with("[{") && trimmed.ends_with(']')));
    let is_shell = head.starts_with("$ ") && head.contains('\n');
    let is_table = || {
        let rules =
            LineCount::of(head, |line| line.len() > 20 && line.bytes().all(|byte| b"+-=| ".contains(&byte)));
        rules.hits >= 2
    };
    let is_exchange = || {
        let marks = LineCount::of(head, |line| line.starts_with(['>', '<']));
        marks.lines >= 4 && marks.share_is_at_least(70) && head.contains("HTTP/")
    };
    let is_compiler = || {
        LineCount::of(head, |line| line.trim_start().starts_with("--> ") || line.starts_with("error[")).hits
            >= 2
    };
    is_nested_json || is_shell || is_table() || is_exchange() || is_compiler()
}

/// Returns true if a text is a list of files, one per line.
pub(super) fn is_listing(text: &str) -> bool {
    let count = LineCount::of(text, |line| {
        let is_mode = |byte: &u8| b"drwx-lst".contains(byte);
        let is_long = line.len() > 10 && line.as_bytes()[..10].iter().all(is_mode) && line.contains(' ');
        let is_path = !line.trim().contains(' ') && line.contains(['/', '.']);
        is_long || is_path || line.starts_with("total ")
    });
    count.lines >= 4 && count.share_is_at_least(80)
}

/// Numbers of non-empty lines at the start of a text, and of lines among them that match a predicate.
#[derive(Default)]
struct LineCount {
    lines: usize,
    hits: usize,
}

impl LineCount {
    fn of(text: &str, is_hit: impl Fn(&str) -> bool) -> Self {
        let mut count = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()).take(MAX_LINES) {
            count.lines += 1;
            count.hits += usize::from(is_hit(line));
        }
        count
    }

    const fn share_is_at_least(&self, percent: usize) -> bool {
        self.lines > 0 && self.hits * 100 >= self.lines * percent
    }
}

fn is_log_line(line: &str) -> bool {
    const LEVELS: [&str; 12] = [
        "TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL", "NOTICE", "FEHLER",
        "ERREUR", "ERRO",
    ];
    let start = floor_boundary(line, 80);
    let words =
        || start.split([' ', '[', ']', '|', '\t', '(', ')', '=', ':']).filter(|word| !word.is_empty());
    let starts_with_time = || {
        let is_time = |word: &str| is_clock(word) || is_date(word.split('T').next().unwrap_or(word));
        start.split([' ', '[', ']', '|', '\t', ',']).filter(|word| !word.is_empty()).take(2).any(is_time)
    };
    words().take(5).any(|word| LEVELS.contains(&word)) || starts_with_time() || is_access_log_line(start)
}

/// Recognises the date of the common log format: `[03/Feb/2024:14:05:09 +0000]`.
fn is_access_log_line(start: &str) -> bool {
    start.split_once('[').is_some_and(|(_, rest)| {
        let bytes = rest.as_bytes();
        bytes.get(2) == Some(&b'/') && bytes.get(6) == Some(&b'/') && bytes.get(11) == Some(&b':')
    })
}

/// Recognises `2024-05-21`, `2024/05/21`, `21.05.2024` and `05/21/24`.
fn is_date(part: &str) -> bool {
    let mut lengths = [0; 3];
    let mut fields = 0;
    for field in part.split(['-', '/', '.']) {
        let is_number =
            !field.is_empty() && field.len() <= 4 && field.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || fields == lengths.len() {
            return false;
        }
        lengths[fields] = field.len();
        fields += 1;
    }
    fields == 3 && matches!(lengths, [4, 2, 2] | [2, 2, 4] | [2, 2, 2] | [1, 1 | 2, 4] | [2, 1, 4])
}

/// Recognises `10:14`, `10:14:25`, `10:14:25.118Z` and `10:14:25+02:00`.
fn is_clock(part: &str) -> bool {
    let part = part.strip_suffix('Z').unwrap_or(part);
    let end = part.find(['+', '-']).unwrap_or(part.len());
    let (clock, zone) = part.split_at(end);
    let mut fields = clock.split(':');
    let is_pair =
        |field: &str| (1..=2).contains(&field.len()) && field.bytes().all(|byte| byte.is_ascii_digit());
    let starts = fields.next().is_some_and(is_pair) && fields.next().is_some_and(is_pair);
    let seconds = fields.next().is_none_or(|field| is_pair(field.split(['.', ',']).next().unwrap_or("")));
    starts && seconds && fields.next().is_none() && (zone.is_empty() || is_zone(zone))
}

fn is_zone(part: &str) -> bool {
    let offset = part.strip_prefix(['+', '-']).map(|digits| digits.replace(':', ""));
    matches!(part, "Z" | "UTC" | "GMT" | "CET" | "CEST" | "EST" | "PST" | "AM" | "PM")
        || offset.is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_calendar_word(part: &str) -> bool {
    const WORDS: [&str; 19] = [
        "mon", "tue", "wed", "thu", "fri", "sat", "sun", "jan", "feb", "mar", "apr", "may", "jun", "jul",
        "aug", "sep", "oct", "nov", "dec",
    ];
    let is_word = part.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word && part.get(..3).is_some_and(|start| WORDS.iter().any(|word| start.eq_ignore_ascii_case(word)))
}

fn is_uuid(text: &str) -> bool {
    let text = text.trim_matches(['{', '}']);
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Returns the part after the prefix in `sess_01J1ZK6T4V9Q` or `sha256:9b1c…`, or the whole text without a prefix;
/// `None` if it is shorter than 8 bytes.
fn random_part(text: &str) -> Option<&str> {
    text.rsplit(['_', ':']).next().filter(|part| part.len() >= 8)
}

fn is_hex_hash(part: &str) -> bool {
    part.len() >= 16
        && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        && part.bytes().any(|byte| byte.is_ascii_digit())
        && part.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Returns true for random letters and digits, in which letters and digits alternate often.
fn is_random(part: &str) -> bool {
    let bytes = part.as_bytes();
    let changes =
        bytes.windows(2).filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit()).count();
    (12..=MAX_SCALAR_BYTES).contains(&bytes.len())
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && changes >= 3
        && changes * 5 >= bytes.len()
}

/// Truncates a text at the last character boundary that is not after `end`.
fn floor_boundary(text: &str, end: usize) -> &str {
    &text[..text.floor_char_boundary(end)]
}
