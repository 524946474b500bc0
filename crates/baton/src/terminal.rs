//! Text for a terminal: tables that fit its width and times relative to now. Pipes and files get the same lines with exact
//! times for every width, so that programs can read them.

use std::fmt::Display;
use std::io::{IsTerminal, stdout};
use std::iter;
use std::sync::OnceLock;
use std::time::Duration;

use baton_app::{Clock, SystemClock};
use baton_core::{Timestamp, one_line};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Narrowest width of a shortened column. If that is not enough, rows are wrapped.
const MIN_COLUMN: usize = 8;
/// Narrowest width of a shortened column with long text.
const MIN_TEXT: usize = 12;

/// Longest name in a column. A column that is wider contains sentences, which are shortened before names.
const MAX_NAME: usize = 24;

/// Programs whose command lines are not broken in a sentence.
const COMMANDS: [&str; 3] = ["baton", "chmod", "chown"];
/// Words that end a command line in a sentence.
const AFTER_COMMANDS: [&str; 9] = ["to", "and", "or", "again", "keeps", "shows", "if", "on", "#"];

/// Width of a terminal that does not report it.
const DEFAULT_WIDTH: usize = 80;

/// Age above which a date is printed instead of a number of days.
const MAX_RELATIVE: Duration = Duration::from_secs(60 * 86_400);

/// Properties of standard output that decide how text is formatted.
#[derive(Debug, Clone, Copy)]
struct Terminal {
    /// Width in columns; `None` for a pipe or a file.
    width: Option<usize>,
    /// Current time, or `None` to print exact times.
    now: Option<Timestamp>,
}

static TERMINAL: OnceLock<Terminal> = OnceLock::new();

/// Reads the properties of standard output. With `exact_times`, times are printed in UTC also on a terminal.
pub(crate) fn start(exact_times: bool) {
    let is_terminal = stdout().is_terminal();
    let size = rustix::termios::tcgetwinsize(stdout()).ok().map(|size| usize::from(size.ws_col));
    let width = is_terminal.then(|| size.filter(|width| *width > 0).unwrap_or(DEFAULT_WIDTH));
    let now = (is_terminal && !exact_times).then(|| SystemClock.now());
    // The first call wins; there is only one.
    let _ = TERMINAL.set(Terminal { width, now });
}

fn terminal() -> Terminal {
    TERMINAL.get().copied().unwrap_or(Terminal { width: None, now: None })
}

/// Formats a time for a table: `5 min ago`, or exactly.
pub(crate) fn when(time: Timestamp) -> String {
    terminal().now.map_or_else(|| time.to_string(), |now| relative(time, now))
}

/// Formats a time for a sentence: `5 min ago`, or `at` and the exact time.
pub(crate) fn at(time: Timestamp) -> String {
    terminal().now.map_or_else(|| format!("at {time}"), |now| relative(time, now))
}

/// Formats a deadline for a sentence: `in 5 min`, or `before` and the exact time.
pub(crate) fn before(time: Timestamp) -> String {
    terminal().now.map_or_else(|| format!("before {time}"), |now| relative(time, now))
}

/// Formats a size with a unit.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn relative(time: Timestamp, now: Timestamp) -> String {
    let millis = now.as_millis() - time.as_millis();
    let age = Duration::from_millis(millis.unsigned_abs());
    if age > MAX_RELATIVE {
        return time.day();
    }
    let seconds = age.as_secs();
    let text = match seconds {
        0..=4 => return "just now".to_owned(),
        5..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min", seconds / 60),
        3_600..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    };
    if millis >= 0 { format!("{text} ago") } else { format!("in {text}") }
}

/// Column of a table: its header, and the cell of an item.
pub(crate) type Column<T> = (Header, fn(&T) -> String);

/// Header of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Header {
    /// Ids, times and numbers, which are never shortened.
    Whole(&'static str),
    /// Names and texts.
    Text(&'static str),
}

impl Header {
    fn text(self) -> String {
        match self {
            Self::Whole(header) | Self::Text(header) => header.to_owned(),
        }
    }

    const fn is_whole(self) -> bool {
        matches!(self, Self::Whole(_))
    }
}

/// Lists items: as a table with a header on a terminal, otherwise one text per item. Without items, the list is the text
/// `empty`.
pub(crate) fn list_items<T, const N: usize>(
    items: &[T],
    empty: &str,
    line: impl Fn(&T) -> String,
    columns: [Column<T>; N],
) -> Vec<String> {
    match terminal().width {
        _ if items.is_empty() => vec![empty.to_owned()],
        Some(width) => {
            // One character more than fits, so that a shortened text ends with `…`.
            let limit = |header: Header| if header.is_whole() { usize::MAX } else { width + 1 };
            let row = |item: &T| columns.map(|(header, cell)| one_line(&cell(item), limit(header)));
            let headers = columns.map(|(header, _)| header);
            let rows: Vec<_> = iter::once(headers.map(Header::text)).chain(items.iter().map(row)).collect();
            table(headers, &rows, width)
        }
        None => items.iter().map(line).collect(),
    }
}

/// Joins the lines of a list and says how to continue it with an option, whose value is `next`.
pub(crate) fn page_text(mut lines: Vec<String>, option: &str, next: Option<impl Display>) -> String {
    lines.extend(next.map(|next| more(option, next)));
    lines.join("\n")
}

/// Says how to continue a list: on a terminal with the next command on a line of its own, otherwise with its option.
fn more(option: &str, value: impl Display) -> String {
    if terminal().width.is_none() {
        return format!("more: {option} {value}");
    }
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    format!("more:\n{}", next_page(arguments, option, &value.to_string()))
}

/// Returns the command that was given, with another value of an option.
fn next_page(arguments: impl Iterator<Item = String>, option: &str, value: &str) -> String {
    let mut command = "baton".to_owned();
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        if argument == option {
            arguments.next();
        } else if !argument.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')) {
            command += &format!(" {}", quoted(&argument));
        }
    }
    format!("{command} {option} {}", quoted(value))
}

/// Quotes a word for a shell if it needs quotes.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Wraps each line of a text at the width of the terminal; continued lines are indented by `indent` columns. Command
/// lines in sentences are never broken, and words only if they are longer than a line.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let Some(width) = terminal().width else { return text.to_owned() };
    text.split('\n').map(|line| wrapped_line(line, indent, width)).collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str, indent: usize, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut lines = Vec::new();
    let mut current = String::new();
    for (gap, part) in parts(line) {
        if current.trim_start().is_empty() || current.width() + gap + part.width() <= width {
            current += &" ".repeat(gap);
        } else {
            lines.push(std::mem::replace(&mut current, " ".repeat(indent)));
        }
        current += &part;
        while !part.contains(' ') && current.width() > width && width > indent + 1 {
            let rest = current.split_off(fitting(&current, width));
            lines.push(std::mem::replace(&mut current, " ".repeat(indent) + &rest));
        }
    }
    lines.push(current);
    lines.join("\n")
}

/// Splits a line into words and command lines, each with the number of spaces before it.
fn parts(line: &str) -> Vec<(usize, String)> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    let mut gap = 0;
    let mut in_command = false;
    for (position, word) in line.split(' ').enumerate() {
        gap += usize::from(position > 0);
        if word.is_empty() {
            continue;
        }
        in_command = in_command && gap == 1 && !AFTER_COMMANDS.contains(&word);
        match parts.last_mut() {
            Some((_, command)) if in_command => *command += &format!(" {word}"),
            _ => {
                parts.push((gap, word.to_owned()));
                in_command = COMMANDS.contains(&word.trim_start_matches(['`', '(', '\'']));
            }
        }
        in_command &= !word.ends_with([',', ';', ':', '.', ')', '`']);
        gap = 0;
    }
    parts
}

/// Aligns the columns of rows and shortens texts to a width. On a terminal that is too narrow for that, each row is
/// wrapped instead.
fn table<const N: usize>(columns: [Header; N], rows: &[[String; N]], width: usize) -> Vec<String> {
    let mut widths: Vec<usize> =
        (0..N).map(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0)).collect();
    let mut excess = (widths.iter().sum::<usize>() + 2 * N.saturating_sub(1)).saturating_sub(width);
    let is_long: Vec<bool> = widths.iter().map(|width| *width > MAX_NAME).collect();
    for (long, narrowest) in [(true, MIN_TEXT), (false, MIN_COLUMN)] {
        while excess > 0 {
            let texts = (0..N).filter(|column| !columns[*column].is_whole());
            let texts = texts.filter(|column| is_long[*column] == long && widths[*column] > narrowest);
            let Some(widest) = texts.max_by_key(|column| widths[*column]) else { break };
            widths[widest] -= 1;
            excess -= 1;
        }
    }
    if excess > 0 {
        return rows.iter().flat_map(|row| wrapped_row(columns, row, width)).collect();
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let cell = shortened(cell, *width);
            let padding = " ".repeat(width - cell.width());
            cell + &padding
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Distributes the cells of a row over lines; all but the first line are indented.
fn wrapped_row<const N: usize>(columns: [Header; N], row: &[String; N], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (column, cell) in columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
        let fitted = |width| if column.is_whole() { cell.clone() } else { shortened(cell, width) };
        match lines.last_mut() {
            Some(last) if last.width() + 2 + cell.width() <= width => *last += &format!("  {cell}"),
            Some(_) => lines.push(format!("  {}", fitted(width.saturating_sub(2)))),
            None => lines.push(fitted(width)),
        }
    }
    lines
}

/// Cuts a text to a width, with `…` at the end.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let end = fitting(text, width.saturating_sub(1));
    format!("{}…", &text[..end])
}

/// Returns the length in bytes of the longest beginning of a text that fits a width.
fn fitting(text: &str, width: usize) -> usize {
    let mut used = 0;
    let too_wide = |(_, character): &(usize, char)| {
        used += character.width().unwrap_or(0);
        used > width
    };
    text.char_indices().find(too_wide).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::Header::{Text, Whole};
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_768_644_000_000);

    #[test]
    fn relative_times_name_the_largest_unit() {
        let seconds = |seconds: i64| relative(Timestamp::from_millis(NOW.as_millis() - seconds * 1_000), NOW);
        assert_eq!(seconds(2), "just now");
        assert_eq!(seconds(59), "59 s ago");
        assert_eq!(seconds(60), "1 min ago");
        assert_eq!(seconds(3_600), "1 h ago");
        assert_eq!(seconds(47 * 3_600), "47 h ago");
        assert_eq!(seconds(49 * 3_600), "2 days ago");
        assert_eq!(seconds(-540), "in 9 min");
        assert_eq!(seconds(90 * 86_400), "2025-10-19");
    }

    #[test]
    fn tables_fit_the_width_and_keep_the_ids() {
        let columns = [Whole("ID"), Text("AGENT"), Text("TITLE")];
        let rows = [
            ["ID", "AGENT", "TITLE"].map(str::to_owned),
            ["sess_01M7H6D3AHF4", "claude-1", "接力棒 fixes the login of the shop for everybody"]
                .map(str::to_owned),
        ];
        for width in [30, 40, 60, 200] {
            let lines = table(columns, &rows, width);
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
        }
        let lines = table(columns, &rows, 46);
        assert_eq!(lines[0], "ID                 AGENT     TITLE");
        assert_eq!(lines[1], "sess_01M7H6D3AHF4  claude-1  接力棒 fixes the…");
    }

    #[test]
    fn rows_are_wrapped_if_the_columns_do_not_fit() {
        let columns =
            [Whole("SESSION"), Text("AGENT"), Text("REPOSITORY"), Text("BRANCH"), Whole("HEARTBEAT")];
        let rows = [
            ["SESSION", "AGENT", "REPOSITORY", "BRANCH", "HEARTBEAT"],
            [
                "sess_01M7H6D3AHF4DP3YJEERGQ2KGT",
                "claude-1",
                "acme/webshop",
                "feature/stay-signed-in",
                "5 min ago",
            ],
        ];
        let rows = rows.map(|row| row.map(str::to_owned));
        let expected = [
            "SESSION  AGENT  REPOSITORY  BRANCH  HEARTBEAT",
            "sess_01M7H6D3AHF4DP3YJEERGQ2KGT  claude-1  acme/webshop",
            "  feature/stay-signed-in  5 min ago",
        ];
        assert_eq!(table(columns, &rows, 60), expected);
        let lines = table(columns, &rows, 80);
        assert_eq!((lines.len(), lines[1].width() <= 80), (2, true), "{lines:?}");
        let lines = table(columns, &rows, 20);
        assert_eq!(lines[3], "sess_01M7H6D3AHF4DP3YJEERGQ2KGT", "an id is never cut: {lines:?}");
    }

    #[test]
    fn times_are_never_shortened() {
        let time = "2026-11-15T23:16:46.123Z";
        let columns = [Whole("ITEM"), Text("TITLE"), Whole("TIME")];
        let row = ["obs_1", "a title with more characters than a time", time].map(str::to_owned);
        assert_eq!(
            table(columns, std::slice::from_ref(&row), 50),
            [format!("obs_1  a title with mor…  {time}")]
        );
        assert_eq!(
            table(columns, &[row], 40),
            ["obs_1", "  a title with more characters than a t…", &format!("  {time}")]
        );
    }

    #[test]
    fn sentences_are_wrapped_between_words_and_around_commands() {
        let line = "ok       worker: not running; run baton worker start to process the queue";
        let expected =
            "ok       worker: not running; run\n         baton worker start to process the\n         queue";
        assert_eq!(wrapped_line(line, 9, 42), expected);
        assert_eq!(wrapped_line("    indented words", 4, 14), "    indented\n    words");
        assert_eq!(wrapped_line("short", 4, 14), "short");
        assert_eq!(wrapped_line("on feature/very-long", 2, 10), "on\n  feature/\n  very-lon\n  g");
        let command = "next: baton queue list --errors   # see failures";
        assert_eq!(wrapped_line(command, 6, 33), "next: baton queue list --errors\n      # see failures");
    }

    #[test]
    fn the_next_page_repeats_the_command() {
        let arguments = ["session", "list", "--cursor", "old", "--agent", "it's", "--cursor=older"];
        let command = next_page(arguments.into_iter().map(str::to_owned), "--cursor", "new");
        assert_eq!(command, r"baton session list --agent 'it'\''s' --cursor new");
    }

    #[test]
    fn pipes_get_the_lines_unchanged() {
        let items = ["a long line that is never cut", "b"];
        let list = |items: &[&str]| {
            list_items(items, "no items", |item| (*item).to_owned(), [(Whole("ITEM"), |_| String::new())])
        };
        assert_eq!(list(&items), items);
        assert_eq!(list(&[]), ["no items"]);
    }
}
