//! Ids of stored objects by their beginning.

use baton_core::{IdKind, PartialId, Venture};

use crate::error::StoreError;
use crate::sql::QueryBuilder;
use crate::tx::Tx;

impl dyn Tx + '_ {
    /// Lists the ids that start with a text, oldest first, in the given ventures or in all. Archived checkpoints are not
    /// listed.
    pub fn ids_with_prefix(
        &mut self,
        prefix: &PartialId,
        ventures: Option<&[Venture]>,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        // `~` sorts after every character of an id.
        let below = format!("{}~", prefix.as_str());
        // Each kind has a table that is named after it.
        let mut query = QueryBuilder::new(&format!("SELECT id FROM {}s WHERE", prefix.kind().noun()));
        query.with(" id >= $?", prefix.as_str());
        query.with(" AND id < $?", below);
        if prefix.kind() == IdKind::Checkpoint {
            query.text(" AND status <> 'archived'");
        }
        query.in_ventures("venture", ventures);
        query.with(" ORDER BY id LIMIT $?", limit);
        self.query(query.sql(), query.params())
    }
}
