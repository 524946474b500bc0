//! Rows of marks: items that are rejected, superseded or pinned.

use baton_core::recall::{Mark, MarkKind};
use baton_core::{Repo, Venture};

use crate::error::StoreError;
use crate::record::{Record, record, replacing, select};
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// Condition that excludes rejected and superseded items of a list. The argument is the id of the item.
macro_rules! and_visible {
    ($item:literal) => {
        concat!(
            " AND NOT EXISTS (SELECT 1 FROM item_marks WHERE item_marks.item = ",
            $item,
            " AND item_marks.kind <> 'pinned')"
        )
    };
}
pub(super) use and_visible;

/// Filter for marks. Absent conditions match every mark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkFilter {
    /// Ventures, any of these.
    pub ventures: Option<Vec<Venture>>,
    pub repo: Option<Repo>,
    pub kind: Option<MarkKind>,
}

record! {
    "item_marks", Mark { item, venture, repo, kind, replaced_by, created_at, actor_key_id }
}

impl dyn Tx + '_ {
    /// Adds the mark of an item, or replaces it.
    pub fn put_mark(&mut self, mark: &Mark) -> Result<(), StoreError> {
        self.insert("item_marks", mark.values()?, &replacing("item", Mark::COLUMNS))
    }

    /// Deletes the mark of an item. Returns false if it has none.
    pub fn delete_mark(&mut self, item: &str) -> Result<bool, StoreError> {
        Ok(self.execute("DELETE FROM item_marks WHERE item = $1", &[item.into()])? == 1)
    }

    /// Finds the marks of items.
    pub fn marks_of(&mut self, items: &[&str]) -> Result<Vec<Mark>, StoreError> {
        self.query_among(&select::<Mark>("WHERE item"), items, "")
    }

    /// Finds the marks of the items that an item replaces.
    pub fn marks_replaced_by(&mut self, item: &str) -> Result<Vec<Mark>, StoreError> {
        self.records("WHERE replaced_by = $1 ORDER BY item", &[item.into()])
    }

    /// Lists marks, newest first.
    pub fn marks(&mut self, filter: &MarkFilter, limit: u32) -> Result<Vec<Mark>, StoreError> {
        let mut query = QueryBuilder::new(&select::<Mark>("WHERE 1 = 1"));
        query.in_ventures("venture", filter.ventures.as_deref());
        query.with_some(" AND repo = $?", filter.repo.as_ref());
        query.with_some(" AND kind = $?", filter.kind);
        query.with(" ORDER BY created_at DESC, item LIMIT $?", limit);
        self.query(query.sql(), query.params())
    }
}
