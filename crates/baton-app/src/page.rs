//! Pagination of lists: limits, offsets and cursors.

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
    limit_within(limit, default, MAX_LIMIT)
}

/// Validates a `limit` with its own maximum.
pub(crate) fn limit_within(limit: Option<i64>, default: u32, max: u32) -> Result<u32, Fault> {
    let Some(limit) = limit else { return Ok(default) };
    let limit = u32::try_from(limit).ok().filter(|limit| (1..=max).contains(limit));
    limit.ok_or_else(|| Fault::invalid("limit", format!("must be from 1 to {max}")))
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
            limit_within(limit, Self::DEFAULT_LIMIT, Self::MAX_LIMIT),
            u32::try_from(offset.unwrap_or(0))
                .map_err(|_| Fault::invalid("offset", "must be a whole number from 0")),
        )?;
        Ok(Self { limit, offset })
    }
}

/// Validates the `limit` and `cursor` of a list.
pub(crate) fn page_of(
    limit: Option<i64>,
    cursor: Option<&str>,
    default: u32,
    list: &str,
) -> Result<RequestedPage, Fault> {
    let decode = |text: &str| Cursor::decode(list, text).map_err(|error| Fault::invalid("cursor", error));
    let (limit, before) = Fault::both(limit_of(limit, default), cursor.map(decode).transpose())?;
    Ok(RequestedPage { limit, before })
}

/// The page of a list that a caller requests.
#[derive(Debug, Clone, Copy)]
pub struct RequestedPage {
    pub(crate) limit: u32,
    before: Option<Cursor>,
}

impl RequestedPage {
    /// Returns the rows to read: one more than requested, to see whether there is a next page.
    pub(crate) const fn rows(self) -> Page {
        Page { before: self.before, limit: self.limit + 1 }
    }
}

/// Returns the number of rows that fit into a page: at least one and at most `limit`. The next page continues there.
pub(crate) fn fitting<T>(found: &[T], limit: u32, size: impl Fn(&T) -> usize) -> u32 {
    let mut total = 0;
    let fits = found.iter().take_while(|row| {
        total += size(row);
        total <= MAX_PAGE_BYTES
    });
    u32::try_from(fits.count()).unwrap_or(u32::MAX).clamp(1, limit)
}

/// Removes the extra row, if it was found, and returns the cursor of the next page.
pub(crate) fn paginate<T>(found: &mut Vec<T>, limit: u32, list: &str, id: impl Fn(&T) -> Ulid) -> Pagination {
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| Cursor { before: id(last) }.encode(list));
    Pagination { next_cursor }
}
