//! Rows of branches that are not merged.

use baton_core::recall::UnmergedBranch;
use baton_core::{Repo, Venture};

use crate::error::StoreError;
use crate::sql::{QueryBuilder, RowReader, parts};
use crate::tx::Tx;

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
            &[venture.as_str().into(), repo.as_str().into()],
        )?;
        for part in parts(branches) {
            let mut query =
                QueryBuilder::new("INSERT INTO unmerged_branches (venture, repo, branch) VALUES ");
            query.rows(
                part.iter().map(|branch| [venture.as_str().into(), repo.as_str().into(), branch.into()]),
            );
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
        let mut query = QueryBuilder::new("SELECT repo, branch FROM unmerged_branches WHERE ");
        query.among("venture", ventures.iter().map(Venture::as_str));
        self.query(query.sql(), query.params(), &mut |columns| {
            let row = RowReader { table: "unmerged_branches", columns };
            Ok(UnmergedBranch { repo: row.parsed(0)?, branch: row.text(1)? })
        })
    }
}
