//! Cutting long output to what a model is shown: its head, its tail, and the lines between that say how it went.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::plain::first_characters;

/// How many characters of an output a model is shown.
pub const MAX_RAW_CHARS: usize = 32_000;

/// How many of them may go to lines between head and tail.
const MIDDLE_CHARS: usize = 4_000;

/// How many characters of one line between head and tail are shown.
pub(super) const MIDDLE_LINE_CHARS: usize = 400;

/// What a marker begins with, before the number of characters that are missing.
const MARK_START: &str = "[... truncated ";
const MARK_END: &str = " ...]";

/// What a marker costs at most, with the line ends around it.
const MARKER_CHARS: usize = 48;

/// Lines that count tests or tell how a build ended. Ends of words are those of ASCII: others make an expression slow on a text
/// that is not.
static SUMMARY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"(?x)
        ^test\ result: | ^Tests?:\s | ^Test\ Suites:\s | ^Ran\ \d+\ tests? | ^BUILD\ (SUCCESS|FAILED)
        | (?-u:\b)\d+\ (passed|failed|passing|failing|failures?|errors?)(?-u:\b)
        | ^(ok|FAIL)\s+\S+\s+[\d.]+s | ^---\ FAIL: | ^could\ not\ compile";
    Regex::new(pattern).ok()
});

/// Lines that tell of an error.
static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"(?x)
        (?i:error)(\[|(?-u:\b)) | Exception(?-u:\b) | ^Traceback\ \( | ^panic: | ^E\ {2,}\S
        | (?-u:\b)(panicked\ at|(?i:fatal)|FAIL(ED|URE)?|[Ff]ailed)(?-u:\b)
        | (?i:assertion|segmentation\ fault|permission\ denied|not\ found|no\ such\ file)";
    Regex::new(pattern).ok()
});

/// Cuts an output to [`MAX_RAW_CHARS`] characters and the markers that say what is missing.
///
/// Head and tail are cut on line boundaries; an overlong line is cut within. Error lines and test summaries between
/// them are kept as far as there is room.
pub fn cut_output(text: &str) -> Cow<'_, str> {
    cut(text, Budget { total: MAX_RAW_CHARS, middle: MIDDLE_CHARS })
}

/// Cuts a list of lines to [`MAX_RAW_CHARS`] characters and a marker by leaving out lines in the middle.
pub(super) fn cut_list(text: &str) -> Cow<'_, str> {
    cut(text, Budget { total: MAX_RAW_CHARS, middle: 0 })
}

/// How many characters may be kept, and how many of them between head and tail (with the markers around those).
#[derive(Debug, Clone, Copy)]
struct Budget {
    total: usize,
    middle: usize,
}

fn cut(text: &str, budget: Budget) -> Cow<'_, str> {
    let kept = kept(text, budget);
    if let [all] = kept.as_slice()
        && *all == (0..text.len())
    {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(budget.total * 2);
    let mut position = 0;
    for range in kept {
        mark(&mut shown, missing(&text[position..range.start]));
        shown.push_str(&text[range.clone()]);
        position = range.end;
    }
    mark(&mut shown, missing(&text[position..]));
    Cow::Owned(shown)
}

/// How much is missing somewhere: characters, and whole lines where these are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) chars: usize,
    pub(super) lines: usize,
}

/// Says on a line of its own how much is missing, if anything is.
pub(super) fn mark(shown: &mut String, missing: Missing) {
    let Missing { chars, lines } = missing;
    if chars == 0 {
        return;
    }
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    let lines = if lines == 0 { String::new() } else { format!(", {lines} lines") };
    shown.push_str(&format!("{MARK_START}{chars} chars{lines}{MARK_END}\n"));
}

/// Reads what a marker says, if the line is one.
fn read_mark(line: &str) -> Option<Missing> {
    let (chars, rest) = line.strip_prefix(MARK_START)?.strip_suffix(MARK_END)?.split_once(" chars")?;
    let lines = match rest {
        "" => 0,
        rest => rest.strip_prefix(", ")?.strip_suffix(" lines")?.parse().ok()?,
    };
    Some(Missing { chars: chars.parse().ok()?, lines })
}

/// Tells whether a line says that something was cut out there.
pub fn is_cut_mark(line: &str) -> bool {
    read_mark(line).is_some()
}

/// How many lines a text has, or had before some were cut out of it.
pub fn count_lines(text: &str) -> usize {
    let count = text.lines().count();
    if !text.contains(MARK_START) {
        return count;
    }
    text.lines().filter_map(read_mark).fold(count, |count, missing| (count + missing.lines).saturating_sub(1))
}

/// How many characters a part has that is left out, those included that were left out of it before.
fn missing(part: &str) -> Missing {
    let earlier = |line: &str| Some((read_mark(line)?.chars, line.len() + 1));
    let marks = if part.contains(MARK_START) { part } else { "" };
    let chars = marks
        .lines()
        .filter_map(earlier)
        .fold(part.chars().count(), |sum, (count, mark)| (sum + count).saturating_sub(mark));
    Missing { chars, lines: 0 }
}

/// What a line tells of how something went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// How many tests there were, or how a build ended.
    Summary,
    /// An error.
    Error,
}

/// What a line tells, if it tells something.
pub(super) fn telling(line: &str) -> Option<Telling> {
    if matches(&SUMMARY, line) {
        Some(Telling::Summary)
    } else {
        matches(&ERROR, line).then_some(Telling::Error)
    }
}

/// Finds the parts that are kept, in order, neither touching nor overlapping.
fn kept(text: &str, budget: Budget) -> Vec<Range<usize>> {
    let everything = 0..text.len();
    // As many bytes as that cannot be more characters.
    if text.len() <= budget.total || text.chars().nth(budget.total).is_none() {
        return vec![everything];
    }
    let first = (budget.total - budget.middle) / 2;
    let between = head(text, first)..tail(text, first);
    let middle = middle(text, between, budget.middle);
    let used: usize = middle.iter().map(|range| cost(text, range)).sum();
    let grown = (budget.total - used) / 2;
    let (head, tail) = (head(text, grown), tail(text, grown));

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

/// Where the first `max` characters end: after a whole line, unless half of them would be lost to that.
fn head(text: &str, max: usize) -> usize {
    let end = first_characters(text, max).len();
    let half = first_characters(text, max / 2).len();
    text[half..end].rfind('\n').map_or(end, |newline| half + newline + 1)
}

/// Where the last `max` characters begin: with a whole line, unless half of them would be lost to that.
fn tail(text: &str, max: usize) -> usize {
    let start = last_characters(text, max);
    let half = last_characters(text, max / 2);
    // The line end before the first character may make that one the first of a line.
    let from = start.saturating_sub(usize::from(text[..start].ends_with('\n')));
    text[from..half].find('\n').map_or(start, |newline| from + newline + 1)
}

fn last_characters(text: &str, max: usize) -> usize {
    match max.checked_sub(1) {
        None => text.len(),
        Some(before) => text.char_indices().rev().nth(before).map_or(0, |(start, _)| start),
    }
}

/// Picks the lines between head and tail that are worth showing: how tests ended first, then errors, the first before
/// the later ones, because the later are often its consequences.
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
        match telling(shown) {
            Some(Telling::Summary) => summaries.push(range),
            Some(Telling::Error) => errors.push(range),
            None => {}
        }
    }
    let mut picked = Vec::new();
    let mut room = max;
    // The last summaries are those of the whole.
    let half = take(text, summaries.into_iter().rev(), max / 2, &mut picked);
    room -= half;
    take(text, errors.into_iter(), room, &mut picked);
    picked.sort_by_key(|range| range.start);
    picked
}

/// Takes parts while there is room, and says how much was used.
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

/// What showing a part costs, with the marker before it.
fn cost(text: &str, part: &Range<usize>) -> usize {
    text[part.clone()].chars().count() + MARKER_CHARS
}

fn matches(pattern: &LazyLock<Option<Regex>>, line: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
