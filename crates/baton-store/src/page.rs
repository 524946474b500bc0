//! A page of a list that is sorted by id, newest first.

use baton_core::Cursor;

/// Position and size of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Cursor from the previous page; `None` for the first page.
    pub before: Option<Cursor>,
    /// Maximum number of rows.
    pub limit: u32,
}

impl Page {
    /// Returns the first page of `limit` rows.
    pub const fn first(limit: u32) -> Self {
        Self { before: None, limit }
    }

    /// Returns the exclusive upper bound of the ids on this page, as stored text.
    pub(crate) fn below(&self, prefix: &str) -> String {
        match self.before {
            Some(cursor) => format!("{prefix}{}", cursor.before),
            // Sorts after every ULID, because ULIDs start with 0 to 7.
            None => format!("{prefix}~"),
        }
    }
}
