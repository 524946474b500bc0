//! Rows of file versions: the content of files as agents saw it, by hash.

use baton_core::{Repo, Sha256Hash, Timestamp, Venture};

use super::forget::ForgetFilter;
use crate::error::StoreError;
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// A file of a repository.
#[derive(Debug, Clone, Copy)]
pub struct FileOf<'a> {
    pub venture: &'a Venture,
    pub repo: &'a Repo,
    /// Path, relative to the root of the checkout.
    pub path: &'a str,
}

impl dyn Tx + '_ {
    /// Records the content of a file at a time, if it differs from the last recorded one.
    pub fn record_file_version(
        &mut self,
        file: FileOf<'_>,
        hash: Sha256Hash,
        seen_at: Timestamp,
    ) -> Result<(), StoreError> {
        if self.file_version(file, seen_at)? == Some(hash) {
            return Ok(());
        }
        self.run(
            "INSERT INTO file_versions (venture, repo, path, seen_at, hash) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (venture, repo, path, seen_at) DO UPDATE SET hash = excluded.hash",
            &[file.venture.into(), file.repo.into(), file.path.into(), seen_at.into(), hash.into()],
        )
    }

    /// Finds the last content of a file that was recorded at or before a time.
    pub fn file_version(
        &mut self,
        file: FileOf<'_>,
        at: Timestamp,
    ) -> Result<Option<Sha256Hash>, StoreError> {
        self.query_one(
            "SELECT hash FROM file_versions WHERE venture = $1 AND repo = $2 AND path = $3 AND seen_at <= $4 \
             ORDER BY seen_at DESC LIMIT 1",
            &[file.venture.into(), file.repo.into(), file.path.into(), at.into()],
        )
    }

    /// Deletes the versions of a repository or a period. A filter with a session matches none.
    pub fn forget_file_versions(&mut self, filter: &ForgetFilter) -> Result<(), StoreError> {
        if filter.session_id.is_some() {
            return Ok(());
        }
        let mut query = QueryBuilder::new("DELETE FROM file_versions WHERE 1 = 1");
        query.in_ventures("venture", filter.ventures.as_deref());
        query.with_some(" AND repo = $?", filter.repo.as_ref());
        query.with_some(" AND seen_at < $?", filter.before);
        self.run(query.sql(), query.params())
    }
}
