//! Rows of marks: items that are rejected, superseded or pinned.

use baton_core::recall::{Mark, MarkKind};
use baton_core::{Repo, Venture};

use crate::error::StoreError;
use crate::sql::{Columns, QueryBuilder, RowReader};
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
    /// Repository.
    pub repo: Option<Repo>,
    /// Kind.
    pub kind: Option<MarkKind>,
}

const SELECT: &str =
    "SELECT item, venture, repo, kind, replaced_by, created_at, actor_key_id FROM item_marks WHERE ";

fn read(columns: &dyn Columns) -> Result<Mark, StoreError> {
    let row = RowReader { table: "item_marks", columns };
    Ok(Mark {
        item: row.text(0)?,
        venture: row.parsed(1)?,
        repo: row.opt_parsed(2)?,
        kind: MarkKind::from_wire(&row.text(3)?).ok_or_else(|| row.wrong(3, "unknown kind"))?,
        replaced_by: row.opt_text(4)?,
        created_at: row.time(5)?,
        actor_key_id: row.parsed(6)?,
    })
}

impl dyn Tx + '_ {
    /// Adds the mark of an item, or replaces it.
    pub fn put_mark(&mut self, mark: &Mark) -> Result<(), StoreError> {
        self.run(
            "INSERT INTO item_marks (item, venture, repo, kind, replaced_by, created_at, actor_key_id) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (item) DO UPDATE SET venture = excluded.venture, \
             repo = excluded.repo, kind = excluded.kind, replaced_by = excluded.replaced_by, \
             created_at = excluded.created_at, actor_key_id = excluded.actor_key_id",
            &[
                (&mark.item).into(),
                mark.venture.as_str().into(),
                mark.repo.as_ref().map(Repo::as_str).into(),
                mark.kind.as_str().into(),
                mark.replaced_by.as_ref().into(),
                mark.created_at.into(),
                mark.actor_key_id.as_str().into(),
            ],
        )
    }

    /// Deletes the mark of an item. Returns false if it has none.
    pub fn delete_mark(&mut self, item: &str) -> Result<bool, StoreError> {
        Ok(self.execute("DELETE FROM item_marks WHERE item = $1", &[item.into()])? == 1)
    }

    /// Finds the marks of items.
    pub fn marks_of(&mut self, items: &[&str]) -> Result<Vec<Mark>, StoreError> {
        self.query_among(&format!("{SELECT}item"), items, "", &mut read)
    }

    /// Lists marks, newest first.
    pub fn marks(&mut self, filter: &MarkFilter, limit: u32) -> Result<Vec<Mark>, StoreError> {
        let mut query = QueryBuilder::new(SELECT);
        query.text("1 = 1");
        query.in_ventures("venture", filter.ventures.as_deref());
        query.with_some(" AND repo = $?", filter.repo.as_ref().map(|repo| repo.as_str()));
        query.with_some(" AND kind = $?", filter.kind.map(|kind| kind.as_str()));
        query.with(" ORDER BY created_at DESC, item LIMIT $?", limit);
        self.query(query.sql(), query.params(), &mut read)
    }
}
