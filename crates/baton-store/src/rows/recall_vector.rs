//! Rows of vectors: which documents have none of a model, and which are the nearest to a query.
//!
//! A vector is deleted with its document, and when the words of the document change.

use std::collections::HashMap;

use baton_core::recall::{Candidate, Embedding, Vector};

use super::recall::select_candidates;
use super::recall_scope::{RecallFilter, conditions, touches};
use crate::column::Row;
use crate::error::StoreError;
use crate::record::replacing;
use crate::sql::{QueryBuilder, parts};
use crate::tx::Tx;

/// Number of vectors that are read at a time.
const PAGE: u32 = 4_096;

impl dyn Tx + '_ {
    /// Lists the newest documents below a number that have no vector of a model.
    pub fn documents_without_vector(
        &mut self,
        model: &str,
        below: i64,
        limit: u32,
    ) -> Result<Vec<Candidate>, StoreError> {
        let numbers: Vec<i64> = self.query(
            "SELECT d.number FROM recall_documents d WHERE d.number < $1 AND NOT EXISTS (SELECT 1 FROM \
             recall_vectors v WHERE v.number = d.number AND v.model = $2) ORDER BY d.number DESC LIMIT $3",
            &[below.into(), model.into(), limit.into()],
        )?;
        let mut found = self.documents_numbered(&numbers)?;
        found.sort_by_key(|candidate| std::cmp::Reverse(candidate.number));
        Ok(found)
    }

    /// Finds documents by number, in no particular order.
    pub fn documents_numbered(&mut self, numbers: &[i64]) -> Result<Vec<Candidate>, StoreError> {
        self.query_among(&select_candidates("WHERE number"), numbers, "")
    }

    /// Stores vectors of documents. Skips documents that were deleted or whose words changed since they were read.
    /// Deletes the vectors of the model if they have another dimension: the model of this name is another one now.
    pub fn put_vectors(&mut self, model: &str, made: &[(Candidate, Vector)]) -> Result<(), StoreError> {
        self.lock_index()?;
        let numbers: Vec<i64> = made.iter().map(|(candidate, _)| candidate.number).collect();
        let current: HashMap<i64, Candidate> = self
            .documents_numbered(&numbers)?
            .into_iter()
            .map(|candidate| (candidate.number, candidate))
            .collect();
        let is_current = |candidate: &Candidate| {
            let found = current.get(&candidate.number);
            found.is_some_and(|found| found.document.text.has_same_words(&candidate.document.text))
        };
        let made: Vec<&(Candidate, Vector)> = made.iter().filter(|(one, _)| is_current(one)).collect();
        if let Some(dimension) = made.iter().map(|(_, vector)| vector.dimension()).find(|one| *one > 0) {
            self.delete_other_dimensions(model, dimension)?;
        }
        for part in parts(&made) {
            let rows = part.iter().map(|(candidate, vector)| {
                [
                    ("number", candidate.number.into()),
                    ("model", model.into()),
                    ("dimension", vector.dimension().into()),
                    ("vector", vector.as_bytes().into()),
                ]
            });
            let mut query = QueryBuilder::insert("recall_vectors", rows);
            query.text(&replacing("number", &["model", "dimension", "vector"]));
            self.run(query.sql(), query.params())?;
        }
        Ok(())
    }

    /// Deletes the vectors of a model if the newest has another dimension than a new one.
    fn delete_other_dimensions(&mut self, model: &str, dimension: u64) -> Result<(), StoreError> {
        let stored: Option<u64> = self.query_one(
            "SELECT dimension FROM recall_vectors WHERE model = $1 AND dimension > 0 ORDER BY number DESC LIMIT 1",
            &[model.into()],
        )?;
        if stored.is_none_or(|stored| stored == dimension) {
            return Ok(());
        }
        self.run("DELETE FROM recall_vectors WHERE model = $1", &[model.into()])
    }

    /// Deletes the vectors of documents.
    pub(super) fn delete_vectors(&mut self, numbers: &[i64]) -> Result<(), StoreError> {
        self.delete_among("DELETE FROM recall_vectors WHERE number", numbers)
    }

    /// Compares the vectors of all documents that match a filter, and returns the numbers of the nearest ones with their
    /// similarity, best first.
    pub fn nearest(
        &mut self,
        filter: &RecallFilter,
        to: &Embedding,
        limit: usize,
    ) -> Result<Vec<(i64, f64)>, StoreError> {
        let mut best: Vec<(i64, f64)> = Vec::new();
        if filter.ventures.is_empty() || to.vector.dimension() == 0 {
            return Ok(best);
        }
        let mut after = 0;
        loop {
            let mut query = QueryBuilder::new("SELECT v.number, v.vector, ");
            query.text(if filter.file.is_some() { "files" } else { "'[]'" });
            query.text(" FROM recall_vectors v JOIN recall_documents d ON d.number = v.number WHERE ");
            // Both tables have the condition, so that a merge join begins at the page.
            query.with("v.number > $?", after).with(" AND d.number > $?", after);
            query.with(" AND v.model = $?", &to.model);
            query.with(" AND v.dimension = $?", to.vector.dimension());
            // The vectors are read in their order, and the documents by number.
            conditions(&mut query, filter, self.pick("+", ""));
            query.text(" ORDER BY v.number").with(" LIMIT $?", PAGE);
            let mut found: Vec<(i64, f64)> = Vec::new();
            // One vector at a time is in memory.
            self.each_row(query.sql(), query.params(), &mut |columns| {
                let mut row = Row::new(query.sql(), columns);
                let (number, vector, files): (i64, Vec<u8>, Vec<String>) = row.get()?;
                let is_match = touches(&files, filter.file.as_ref());
                found.push((number, if is_match { to.vector.similarity(&vector) } else { 0.0 }));
                Ok(())
            })?;
            let is_last = found.len() < PAGE as usize;
            after = found.last().map_or(after, |(number, _)| *number);
            best.extend(found.into_iter().filter(|(_, similarity)| *similarity > 0.0));
            best.sort_by(|left, right| right.1.total_cmp(&left.1).then(right.0.cmp(&left.0)));
            best.truncate(limit);
            if is_last {
                return Ok(best);
            }
        }
    }
}
