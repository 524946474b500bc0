//! Rows of branches that are not merged.

use baton_core::recall::UnmergedBranch;
use baton_core::{Repo, Venture};

use crate::error::StoreError;
use crate::record::{record, select};
use crate::sql::{QueryBuilder, parts};
use crate::tx::Tx;

record! {
    "unmerged_branches", UnmergedBranch { repo, branch }
}

impl dyn Tx + '_ {
    /// Replaces the branches of a repository.
    pub fn put_unmerged_branches(
        &mut self,
        venture: &Venture,
        repo: &Repo,
        branches: &[String],
    ) -> Result<(), StoreError> {
        self.run(
            "DELETE FROM unmerged_branches WHERE venture = $1 AND repo = $2",
            &[venture.into(), repo.into()],
        )?;
        for part in parts(branches) {
            let rows = part.iter().map(|branch| {
                [("venture", venture.into()), ("repo", repo.into()), ("branch", branch.into())]
            });
            let mut query = QueryBuilder::insert("unmerged_branches", rows);
            query.text(" ON CONFLICT DO NOTHING");
            self.run(query.sql(), query.params())?;
        }
        Ok(())
    }

    /// Lists the branches of ventures.
    pub fn unmerged_branches(&mut self, ventures: &[Venture]) -> Result<Vec<UnmergedBranch>, StoreError> {
        if ventures.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new(&select::<UnmergedBranch>("WHERE "));
        query.among("venture", ventures);
        self.query(query.sql(), query.params())
    }
}
