//! Truncates long output for a model: keeps head, tail, and error and test summary lines from the middle.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use baton_core::first_characters;
use regex::Regex;

/// Maximum length of truncated output in characters, without markers.
pub const MAX_RAW_CHARS: usize = 32_000;

/// Part of [`MAX_RAW_CHARS`] for lines between head and tail.
const MIDDLE_CHARS: usize = 4_000;

/// Maximum length of a line between head and tail in characters.
const MIDDLE_LINE_CHARS: usize = 400;

/// Start of a truncation marker, before the number of missing characters.
const MARK_START: &str = "[... truncated ";
const MARK_END: &str = " ...]";

/// Maximum length of a marker with the newlines around it.
const MARKER_CHARS: usize = 48;

/// Matches test and build summary lines. Word boundaries are ASCII only, because Unicode boundaries are slow on
/// non-ASCII text.
static SUMMARY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"(?x)
        ^test\ result: | ^Tests?:\s | ^Test\ Suites:\s | ^Ran\ \d+\ tests? | ^BUILD\ (SUCCESS|FAILED)
        | (?-u:\b)\d+\ (passed|failed|passing|failing|failures?|errors?)(?-u:\b)
        | ^(ok|FAIL)\s+\S+\s+[\d.]+s | ^---\ FAIL: | ^could\ not\ compile";
    Regex::new(pattern).ok()
});

/// Matches error lines.
static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"(?x)
        (?i:error)(\[|(?-u:\b)) | Exception(?-u:\b) | ^Traceback\ \( | ^panic: | ^E\ {2,}\S
        | (?-u:\b)(panicked\ at|(?i:fatal)|FAIL(ED|URE)?|[Ff]ailed)(?-u:\b)
        | (?i:assertion|segmentation\ fault|permission\ denied|not\ found|no\ such\ file)";
    Regex::new(pattern).ok()
});

/// Truncates an output to [`MAX_RAW_CHARS`] characters, plus markers with the number of missing characters.
///
/// Head and tail end on line boundaries, except within an overlong line. Error lines and test summaries between them
/// are kept while there is room.
pub fn truncate_output(text: &str) -> Cow<'_, str> {
    truncate(text, Budget { total: MAX_RAW_CHARS, middle: MIDDLE_CHARS, counts_lines: false })
}

/// Truncates a list of lines to [`MAX_RAW_CHARS`] characters, plus a marker, by removing lines in the middle.
pub fn truncate_list(text: &str) -> Cow<'_, str> {
    truncate(text, Budget { total: MAX_RAW_CHARS, middle: 0, counts_lines: false })
}

/// Size limits of a truncated text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Maximum number of characters.
    pub(super) total: usize,
    /// Maximum number of characters between head and tail, with their markers.
    pub(super) middle: usize,
    /// True if markers state the number of missing lines.
    pub(super) counts_lines: bool,
}

/// Truncates a text. The result can be truncated again, with more text after it: missing characters are counted once.
pub(super) fn truncate(text: &str, budget: Budget) -> Cow<'_, str> {
    let kept = kept(text, budget);
    if let [all] = kept.as_slice()
        && *all == (0..text.len())
    {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(budget.total * 2);
    let mut position = 0;
    for range in kept {
        mark(&mut shown, &text[position..range.start], budget);
        shown.push_str(&text[range.clone()]);
        position = range.end;
    }
    mark(&mut shown, &text[position..], budget);
    Cow::Owned(shown)
}

/// Size of a removed part. `lines` is 0 if a marker does not state them.
struct Missing {
    chars: usize,
    lines: usize,
}

/// Appends a marker line for a removed part, if it is not empty.
fn mark(shown: &mut String, removed: &str, budget: Budget) {
    if removed.is_empty() {
        return;
    }
    let Missing { mut chars, mut lines } = missing(removed);
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
        // The rest of a line whose start is shown is not a missing line, and a newline that an earlier truncation added
        // here is not a missing character.
        lines = lines.saturating_sub(1);
        let is_added = removed.strip_prefix('\n').is_some_and(|rest| rest.starts_with(MARK_START));
        chars -= usize::from(is_added);
    }
    let lines = if lines == 0 || !budget.counts_lines { String::new() } else { format!(", {lines} lines") };
    shown.push_str(&format!("{MARK_START}{chars} chars{lines}{MARK_END}\n"));
}

/// Parses a marker line.
fn read_mark(line: &str) -> Option<Missing> {
    let (chars, rest) = line.strip_prefix(MARK_START)?.strip_suffix(MARK_END)?.split_once(" chars")?;
    let lines = match rest {
        "" => 0,
        rest => rest.strip_prefix(", ")?.strip_suffix(" lines")?.parse().ok()?,
    };
    Some(Missing { chars: chars.parse().ok()?, lines })
}

pub fn is_truncation_marker(line: &str) -> bool {
    read_mark(line).is_some()
}

/// Returns true if a text contains a truncation marker.
pub fn is_truncated(text: &str) -> bool {
    text.contains(MARK_START) && text.lines().any(is_truncation_marker)
}

/// Returns the number of lines of a text, including the lines that its markers count.
pub fn count_lines(text: &str) -> usize {
    let count = text.lines().count();
    if !text.contains(MARK_START) {
        return count;
    }
    text.lines().filter_map(read_mark).fold(count, |count, missing| (count + missing.lines).saturating_sub(1))
}

/// Returns the size of a removed part, including what markers in it count.
fn missing(part: &str) -> Missing {
    let mut missing = Missing { chars: part.chars().count(), lines: part.matches('\n').count() };
    let marked = if part.contains(MARK_START) { part } else { "" };
    for (line, earlier) in marked.lines().filter_map(|line| Some((line, read_mark(line)?))) {
        missing.chars = (missing.chars + earlier.chars).saturating_sub(line.len() + 1);
        missing.lines = (missing.lines + earlier.lines).saturating_sub(1);
    }
    missing
}

/// Kind of a line that is kept from the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Test or build summary.
    Summary,
    Error,
}

/// Returns the kind of a line; `None` if it is not worth keeping.
fn line_kind(line: &str) -> Option<LineKind> {
    if matches(&SUMMARY, line) {
        Some(LineKind::Summary)
    } else {
        matches(&ERROR, line).then_some(LineKind::Error)
    }
}

/// Returns the parts to keep, in order, without adjacent or overlapping parts.
fn kept(text: &str, budget: Budget) -> Vec<Range<usize>> {
    let everything = 0..text.len();
    // A text never has more characters than bytes.
    if text.len() <= budget.total || text.chars().nth(budget.total).is_none() {
        return vec![everything];
    }
    let first = (budget.total - budget.middle) / 2;
    let between = head(text, first)..tail(text, first);
    let middle = middle(text, between, budget.middle);
    let used: usize = middle.iter().map(|range| cost(text, range)).sum();
    // Head and tail share what the middle does not use.
    let share = (budget.total - used) / 2;
    let (head, tail) = (head(text, share), tail(text, share));

    let mut kept: Vec<Range<usize>> = Vec::with_capacity(middle.len() + 2);
    let parts = std::iter::once(0..head)
        .chain(middle.into_iter().map(|range| range.start.max(head)..range.end.min(tail)))
        .chain(std::iter::once(tail..text.len()));
    for part in parts.filter(|part| !part.is_empty()) {
        match kept.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => kept.push(part),
        }
    }
    kept
}

/// Returns the end of the head: after the last whole line in the first `max` characters, or after `max` characters if
/// that line ends in the first half.
fn head(text: &str, max: usize) -> usize {
    let end = first_characters(text, max).len();
    let half = first_characters(text, max / 2).len();
    text[half..end].rfind('\n').map_or(end, |newline| half + newline + 1)
}

/// Returns the start of the tail: the first whole line in the last `max` characters, or `max` characters before the end
/// if that line starts in the second half.
fn tail(text: &str, max: usize) -> usize {
    let start = last_characters(text, max);
    let half = last_characters(text, max / 2);
    // If a newline precedes `start`, the tail already starts with a whole line.
    let from = start.saturating_sub(usize::from(text[..start].ends_with('\n')));
    text[from..half].find('\n').map_or(start, |newline| from + newline + 1)
}

/// Returns the start of the last `max` characters.
fn last_characters(text: &str, max: usize) -> usize {
    first_characters(text, text.chars().count().saturating_sub(max)).len()
}

/// Selects lines between head and tail: summaries first, then errors. The first errors are preferred, because later
/// ones are often consequences.
fn middle(text: &str, between: Range<usize>, max: usize) -> Vec<Range<usize>> {
    if max == 0 {
        return Vec::new();
    }
    let mut summaries = Vec::new();
    let mut errors = Vec::new();
    let mut start = between.start;
    for line in text[between].split_inclusive('\n') {
        let shown = first_characters(line, MIDDLE_LINE_CHARS);
        let range = start..start + shown.len();
        start += line.len();
        match line_kind(shown) {
            Some(LineKind::Summary) => summaries.push(range),
            Some(LineKind::Error) => errors.push(range),
            None => {}
        }
    }
    let mut picked = Vec::new();
    // The last summaries usually cover the whole run.
    let used = take(text, summaries.into_iter().rev(), max / 2, &mut picked);
    take(text, errors.into_iter(), max - used, &mut picked);
    picked.sort_by_key(|range| range.start);
    picked
}

/// Adds parts while there is room and returns the number of characters used.
fn take(
    text: &str,
    parts: impl Iterator<Item = Range<usize>>,
    room: usize,
    picked: &mut Vec<Range<usize>>,
) -> usize {
    let mut used = 0;
    for part in parts {
        let cost = cost(text, &part);
        if used + cost > room {
            break;
        }
        used += cost;
        picked.push(part);
    }
    used
}

/// Returns the number of characters of a part and the marker before it.
fn cost(text: &str, part: &Range<usize>) -> usize {
    text[part.clone()].chars().count() + MARKER_CHARS
}

fn matches(pattern: &LazyLock<Option<Regex>>, line: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
}

#[cfg(test)]
#[path = "truncate_tests.rs"]
mod tests;
