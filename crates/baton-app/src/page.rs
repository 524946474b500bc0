//! Pagination of lists: limits, offsets and cursors.

use std::ops::RangeInclusive;

use baton_core::{Cursor, Fault, Ulid};
use baton_store::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum bytes of free-form JSON in a page, unless a single row has more.
pub(crate) const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum page size of any list.
pub(crate) const MAX_LIMIT: u32 = 200;

/// Cursor of the next page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pagination {
    /// Cursor of the next page, or null on the last page.
    pub next_cursor: Option<String>,
}

/// Validates a `limit`.
pub(crate) fn limit_of(limit: Option<i64>, default: u32) -> Result<u32, Fault> {
    number_within("limit", limit, default, 1..=MAX_LIMIT)
}

/// Validates an optional number.
pub(crate) fn number_within(
    name: &str,
    number: Option<i64>,
    default: u32,
    range: RangeInclusive<u32>,
) -> Result<u32, Fault> {
    let Some(number) = number else { return Ok(default) };
    let number = u32::try_from(number).ok().filter(|number| range.contains(number));
    number.ok_or_else(|| Fault::invalid(name, format!("must be from {} to {}", range.start(), range.end())))
}

/// Page of a list by offset.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub(crate) limit: u32,
    pub(crate) offset: u32,
}

impl Window {
    const DEFAULT_LIMIT: u32 = 20;
    const MAX_LIMIT: u32 = 100;

    /// Validates `limit` and `offset`.
    pub(crate) fn of(limit: Option<i64>, offset: Option<i64>) -> Result<Self, Fault> {
        let (limit, offset) = Fault::both(
            number_within("limit", limit, Self::DEFAULT_LIMIT, 1..=Self::MAX_LIMIT),
            u32::try_from(offset.unwrap_or(0))
                .map_err(|_| Fault::invalid("offset", "must be a whole number from 0")),
        )?;
        Ok(Self { limit, offset })
    }
}

/// The page of a list that a caller requests.
#[derive(Debug, Clone, Copy)]
pub struct RequestedPage {
    list: &'static str,
    limit: u32,
    before: Option<Cursor>,
}

impl RequestedPage {
    /// Validates the `limit` and `cursor` of a list.
    pub(crate) fn of(
        list: &'static str,
        default: u32,
        limit: Option<i64>,
        cursor: Option<&str>,
    ) -> Result<Self, Fault> {
        let decode = |text: &str| Cursor::decode(list, text).map_err(|error| Fault::invalid("cursor", error));
        let (limit, before) = Fault::both(limit_of(limit, default), cursor.map(decode).transpose())?;
        Ok(Self { list, limit, before })
    }

    /// Returns the rows to read: one more than requested, to see whether there is a next page.
    pub(crate) const fn rows(self) -> Page {
        Page { before: self.before, limit: self.limit + 1 }
    }

    /// Removes the rows after the page and returns the cursor of the next page.
    pub(crate) fn cut<T>(self, found: &mut Vec<T>, id: impl Fn(&T) -> Ulid) -> Pagination {
        self.cut_to(self.limit, found, id)
    }

    /// Like [`cut`](Self::cut), for rows with free-form JSON of the given size. The page has at least one row.
    pub(crate) fn cut_by_size<T>(
        self,
        found: &mut Vec<T>,
        size: impl Fn(&T) -> usize,
        id: impl Fn(&T) -> Ulid,
    ) -> Pagination {
        let mut total = 0;
        let fits = found.iter().take_while(|row| {
            total += size(row);
            total <= MAX_PAGE_BYTES
        });
        let limit = u32::try_from(fits.count()).unwrap_or(u32::MAX).clamp(1, self.limit);
        self.cut_to(limit, found, id)
    }

    fn cut_to<T>(self, limit: u32, found: &mut Vec<T>, id: impl Fn(&T) -> Ulid) -> Pagination {
        let before = cut(found, limit, id);
        Pagination { next_cursor: before.map(|before| Cursor { before }.encode(self.list)) }
    }
}

/// Removes the rows after the first `limit`. Returns the position of the last row if rows were removed.
pub(crate) fn cut<T, P>(found: &mut Vec<T>, limit: u32, position: impl Fn(&T) -> P) -> Option<P> {
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    found.last().filter(|_| has_more).map(position)
}
