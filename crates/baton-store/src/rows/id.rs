//! Ids of stored objects by their beginning.

use baton_core::{IdKind, PartialId, Venture};

use crate::error::StoreError;
use crate::sql::{QueryBuilder, RowReader};
use crate::tx::Tx;

const fn table(kind: IdKind) -> &'static str {
    match kind {
        IdKind::Session => "sessions",
        IdKind::Handoff => "handoffs",
        IdKind::Checkpoint => "checkpoints",
        IdKind::Note => "notes",
        IdKind::Observation => "observations",
    }
}

impl dyn Tx + '_ {
    /// Lists the ids that start with a text, oldest first, in the given ventures or in all.
    pub fn ids_with_prefix(
        &mut self,
        prefix: &PartialId,
        ventures: Option<&[Venture]>,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        let table = table(prefix.kind());
        // `~` sorts after every character of an id.
        let below = format!("{}~", prefix.as_str());
        let select = format!("SELECT id FROM {table} WHERE ");
        let mut query = QueryBuilder::new(&select);
        query.with(" id >= $?", prefix.as_str());
        query.with(" AND id < $?", &below);
        query.in_ventures("venture", ventures);
        query.with(" ORDER BY id LIMIT $?", limit);
        self.query(query.sql(), query.params(), &mut |columns| RowReader { table, columns }.text(0))
    }
}
