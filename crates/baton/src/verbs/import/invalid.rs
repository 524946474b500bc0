//! Lines and other records that could not be imported.

use baton_core::counted;
use serde::Serialize;

/// Maximum number of lines that are listed.
const MAX_LISTED: usize = 100;
/// Maximum number of lines in the text output.
const MAX_SHOWN: usize = 10;

/// Invalid lines: their number, and the first of them with the reason.
#[derive(Debug, Default, Serialize)]
pub(super) struct InvalidLines {
    #[serde(rename = "invalid")]
    count: u64,
    #[serde(rename = "invalid_lines")]
    listed: Vec<InvalidLine>,
}

#[derive(Debug, Serialize)]
struct InvalidLine {
    file: String,
    line: u64,
    reason: String,
}

impl InvalidLines {
    pub(super) fn add(&mut self, file: &str, line: u64, reason: String) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(InvalidLine { file: file.to_owned(), line, reason });
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.listed.extend(other.listed);
        self.listed.truncate(MAX_LISTED);
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Describes the lines; empty if there are none.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        if self.count > 0 {
            text += &format!("\nskipped {}:", counted(self.count, "invalid record"));
        }
        for InvalidLine { file, line, reason } in self.listed.iter().take(MAX_SHOWN) {
            text += &format!("\n  {file}:{line}: {reason}");
        }
        let more = self.count.saturating_sub(MAX_SHOWN as u64);
        if more > 0 {
            text += &format!("\n  and {more} more");
        }
        text
    }
}
