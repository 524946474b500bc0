//! Text for a terminal: tables that fit its width and times relative to now. Pipes and files get the same lines with exact
//! times for every width, so that programs can read them.

use std::io::{IsTerminal, stdout};
use std::sync::OnceLock;
use std::time::Duration;

use baton_app::{Clock, Pagination, SystemClock};
use baton_core::{Timestamp, one_line};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Narrowest width of a shortened column, and of one with text. If that is not enough, rows are wrapped.
const MIN_COLUMN: usize = 8;
const MIN_TEXT: usize = 12;

/// Width of an exact time.
const MAX_TIME: usize = "2026-11-15T23:16:46.123Z".len();

/// Width of a terminal that does not report it.
const DEFAULT_WIDTH: usize = 80;

/// Age above which a date is printed instead of a number of days.
const MAX_RELATIVE: Duration = Duration::from_secs(60 * 86_400);

/// Where the text of a verb goes.
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

/// Lists items: as a table with a header on a terminal, otherwise one text per item.
pub(crate) fn list_items<T, const N: usize>(
    items: &[T],
    line: impl Fn(&T) -> String,
    header: [&str; N],
    cells: impl Fn(&T) -> [String; N],
) -> Vec<String> {
    match terminal().width {
        Some(width) if !items.is_empty() => {
            let rows = items.iter().map(|item| cells(item).map(|cell| one_line(&cell, width)));
            table(&[vec![header.map(str::to_owned)], rows.collect()].concat(), width)
        }
        _ => items.iter().map(line).collect(),
    }
}

/// Joins the lines of a list and says how to continue it.
pub(crate) fn page_text(mut lines: Vec<String>, pagination: &Pagination) -> String {
    if let Some(cursor) = &pagination.next_cursor {
        lines.push(format!("more: --cursor {cursor}"));
    }
    lines.join("\n")
}

/// Aligns the columns of rows and shortens them to a width. The first column, the id, is never shortened. On a terminal
/// that is too narrow for that, each row is wrapped instead.
fn table<const N: usize>(rows: &[[String; N]], width: usize) -> Vec<String> {
    let mut widths: Vec<usize> =
        (0..N).map(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0)).collect();
    let mut excess = (widths.iter().sum::<usize>() + 2 * N.saturating_sub(1)).saturating_sub(width);
    // Texts are shortened first, because a part of a name, number or time says little.
    let is_text: Vec<bool> = widths.iter().map(|width| *width > MAX_TIME).collect();
    for (text, narrowest) in [(true, MIN_TEXT), (false, MIN_COLUMN)] {
        while excess > 0 {
            let columns = (1..N).filter(|column| is_text[*column] == text && widths[*column] > narrowest);
            let Some(widest) = columns.max_by_key(|column| widths[*column]) else { break };
            widths[widest] -= 1;
            excess -= 1;
        }
    }
    if excess > 0 {
        return rows.iter().flat_map(|row| wrapped(row, width)).collect();
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
fn wrapped(row: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for cell in row.iter().filter(|cell| !cell.is_empty()) {
        match lines.last_mut() {
            Some(last) if last.width() + 2 + cell.width() <= width => *last += &format!("  {cell}"),
            Some(_) => lines.push(format!("  {}", shortened(cell, width.saturating_sub(2)))),
            None => lines.push(shortened(cell, width)),
        }
    }
    lines
}

/// Cuts a text to a width, with `…` at the end.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for character in text.chars() {
        if cut.width() + character.width().unwrap_or(0) + 1 > width {
            break;
        }
        cut.push(character);
    }
    cut + "…"
}

#[cfg(test)]
mod tests {
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
        let rows = [
            ["ID", "AGENT", "TITLE"].map(str::to_owned),
            ["sess_01M7H6D3AHF4", "claude-1", "接力棒 fixes the login of the shop for everybody"]
                .map(str::to_owned),
        ];
        for width in [30, 40, 60, 200] {
            let lines = table(&rows, width);
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
        }
        let lines = table(&rows, 46);
        assert_eq!(lines[0], "ID                 AGENT     TITLE");
        assert_eq!(lines[1], "sess_01M7H6D3AHF4  claude-1  接力棒 fixes the…");
    }

    #[test]
    fn rows_are_wrapped_if_the_columns_do_not_fit() {
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
        assert_eq!(table(&rows, 60), expected);
        let lines = table(&rows, 80);
        assert_eq!((lines.len(), lines[1].width() <= 80), (2, true), "{lines:?}");
    }

    #[test]
    fn texts_are_shortened_before_times() {
        let time = "2026-11-15T23:16:46.123Z";
        let lines =
            table(&[["obs_1", "a title with more characters than a time", time].map(str::to_owned)], 50);
        assert_eq!(lines, [format!("obs_1  a title with mor…  {time}")]);
    }

    #[test]
    fn pipes_get_the_lines_unchanged() {
        let items = ["a long line that is never cut", "b"];
        assert_eq!(list_items(&items, |item| (*item).to_owned(), ["ITEM"], |_| [String::new()]), items);
    }
}
