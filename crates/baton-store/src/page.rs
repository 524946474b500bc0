//! A page of a list that goes by id, newest first.

use baton_core::Cursor;

/// Which rows of a list are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Where the page before ended; none for the first page.
    pub before: Option<Cursor>,
    /// How many rows at the most.
    pub limit: u32,
}

impl Page {
    /// The first `limit` rows.
    pub const fn first(limit: u32) -> Self {
        Self { before: None, limit }
    }

    /// The id below which this page starts, as stored text.
    pub(crate) fn below(&self, prefix: &str) -> String {
        match self.before {
            Some(cursor) => format!("{prefix}{}", cursor.before),
            // Sorts after every ULID, which start with 0 to 7.
            None => format!("{prefix}~"),
        }
    }
}
